package expr

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// inferrer computes the possible shapes of the parts of a checked expression from the shapes of the values that they read. It collects
// mistakes, that is, operations that fail for every value that fits the schemas.
type inferrer struct {
	env    *Env
	shapes Shapes
	source []rune
	info   *ast.SourceInfo
	scopes []scope
	// tested holds the members whose presence the expression itself tests.
	tested map[string]bool
	issues []*IssueError
}

// scope is a name bound by a macro.
type scope struct {
	name  string
	value shape
}

func (e *Env) infer(source string, checked *ast.AST, shapes Shapes) (shape, []*IssueError) {
	in := &inferrer{env: e, shapes: shapes, source: []rune(source), info: checked.SourceInfo(), tested: map[string]bool{}}
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(in.recordTest))
	return in.infer(checked.Expr()), in.issues
}

// recordTest records the members whose presence an expression tests: has(a.b), a.?b, a[?"b"], "b" in a.
func (in *inferrer) recordTest(e ast.Expr) {
	if name, ok := presenceTest(e); ok {
		in.tested[name] = true
	}
}

// presenceTest returns the member whose presence a part of an expression tests.
func presenceTest(e ast.Expr) (member string, ok bool) {
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		return chain(e), true
	}
	if e.Kind() != ast.CallKind {
		return "", false
	}
	value, key := 0, 1
	switch e.AsCall().FunctionName() {
	case operators.OptSelect, operators.OptIndex:
	case operators.In:
		value, key = 1, 0
	default:
		return "", false
	}
	args := e.AsCall().Args()
	name, ok := text(args[key])
	return chain(args[value]) + "." + name, ok
}

// chain returns the notation of a value for messages: input.a.b, item, steps.x[…].
func chain(e ast.Expr) string {
	if e.Kind() == ast.IdentKind {
		return strings.TrimPrefix(e.AsIdent(), ".")
	}
	if e.Kind() == ast.SelectKind {
		return chain(e.AsSelect().Operand()) + "." + e.AsSelect().FieldName()
	}
	if args, ok := callOf(e, operators.Index); ok {
		if key, ok := text(args[1]); ok {
			return chain(args[0]) + "." + key
		}
		return chain(args[0]) + "[…]"
	}
	return "this value"
}

func (in *inferrer) report(offset int, format string, args ...any) {
	in.issues = append(in.issues, &IssueError{Source: string(in.source), Offset: offset, Message: fmt.Sprintf(format, args...)})
}

func (in *inferrer) infer(e ast.Expr) shape {
	switch e.Kind() {
	case ast.LiteralKind:
		if t, ok := e.AsLiteral().Type().(*types.Type); ok {
			return of(kindsOf(t))
		}
	case ast.IdentKind:
		return in.variable(e.AsIdent())
	case ast.SelectKind:
		return in.selected(e)
	case ast.CallKind:
		return in.call(e)
	case ast.ListKind:
		return in.list(e.AsList())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			in.infer(entry.AsMapEntry().Key())
			in.infer(entry.AsMapEntry().Value())
		}
		return of(kindMap)
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			in.infer(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		return in.comprehension(e.AsComprehension())
	case ast.UnspecifiedExprKind:
	}
	return anything()
}

func (in *inferrer) variable(name string) shape {
	name, global := strings.CutPrefix(name, ".")
	for i := len(in.scopes) - 1; i >= 0 && !global; i-- {
		if in.scopes[i].name == name {
			return in.scopes[i].value
		}
	}
	for _, v := range in.env.use.Variables {
		if v.Name == name {
			return in.at(name, of(kindsOf(v.Type.cel())))
		}
	}
	return anything() // the name of a type
}

// at returns the shape at a path, or known if the shapes do not have that path.
func (in *inferrer) at(path string, known shape) shape {
	if schema, ok := in.shapes[path]; ok {
		known = in.env.schemas.shape(schema)
	}
	known.path = path
	return known
}

func (in *inferrer) list(l ast.ListExpr) shape {
	var items shape
	optional := map[int32]bool{}
	for _, i := range l.OptionalIndices() {
		optional[i] = true
	}
	for i, e := range l.Elements() {
		item := in.infer(e)
		if optional[int32(i)] {
			item = anything()
		}
		items = join(items, item)
	}
	return listOf(items)
}

// selected returns the shape of a.b and has(a.b).
func (in *inferrer) selected(e ast.Expr) shape {
	s := e.AsSelect()
	operand := in.infer(s.Operand())
	if operand.kinds&(kindMap|kindOther) == 0 {
		in.report(in.fieldOffset(e, s.FieldName()), "%s is %s, which has no members", chain(s.Operand()), operand.kinds)
		return anything()
	}
	if s.IsTestOnly() {
		return of(kindBool)
	}
	found, may := in.member(operand, s.FieldName())
	if !may && !in.tested[chain(e)] {
		hint := nearestMember(s.FieldName(), operand.members())
		in.report(in.fieldOffset(e, s.FieldName()), "%s has no '%s'%s", chain(s.Operand()), s.FieldName(), hint)
	}
	return found
}

// member returns the shape of a member of a value, and whether the value may have that member.
func (in *inferrer) member(operand shape, name string) (shape, bool) {
	found, may := operand.member(name)
	if operand.path == "" {
		return found, may
	}
	path := operand.path + "." + name
	if _, told := in.shapes[path]; told {
		may = true
	} else if operand.path == stepsName {
		found = in.env.schemas.shape(ResultShape(nil))
		if _, told := in.shapes[path+".data"]; !told {
			found.kinds |= kindList // the step may be a loop, whose value is a list
		}
		return in.at(path, found), true
	}
	return in.at(path, found), may
}

// nearestMember suggests the member that was probably meant, or lists the known ones.
func nearestMember(wanted string, members []string) string {
	if hint := didYouMean(wanted, members); hint != "" || len(members) == 0 {
		return hint
	}
	const most = 8
	shown := members[:min(len(members), most)]
	if len(members) > most {
		return "; it has " + strings.Join(shown, ", ") + " and others"
	}
	return "; it has " + strings.Join(shown, ", ")
}

// start returns where an expression begins; cel-go gives the position of its operator.
func (in *inferrer) start(e ast.Expr) int {
	first := offsetOf(in.info, e.ID())
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(part ast.Expr) {
		if position, ok := in.info.GetOffsetRange(part.ID()); ok {
			first = min(first, int(position.Start))
		}
	}))
	return first
}

// fieldOffset returns the position of the field in a selection. cel-go gives the position of the dot before it.
func (in *inferrer) fieldOffset(e ast.Expr, field string) int {
	offset := offsetOf(in.info, e.ID())
	for i := offset; i < len(in.source) && i <= offset+maxGap; i++ {
		if strings.HasPrefix(string(in.source[i:min(len(in.source), i+len(field))]), field) {
			return i
		}
	}
	return offset
}

// maxGap limits how far after its dot a field is searched for, in characters.
const maxGap = 100

// comprehension returns the shape of a macro. The accumulator's shape depends on the macro's expansion: bind keeps its value, map and
// filter append to a list, and other macros keep the kind of the accumulator's first value.
func (in *inferrer) comprehension(c ast.ComprehensionExpr) shape {
	over := in.infer(rangeOf(c))
	accumulator := in.infer(c.AccuInit())
	if over.kinds&(kindList|kindMap) == 0 {
		in.report(in.start(rangeOf(c)), "%s is %s, which has no items to iterate over", chain(rangeOf(c)), over.kinds)
		over = anything()
	}
	isBind := isName(c.LoopStep(), c.AccuVar())
	if !isBind {
		accumulator = of(accumulator.kinds)
	}
	before := len(in.scopes)
	first, second := loopVariables(over, c.HasIterVar2())
	in.scopes = append(in.scopes, scope{c.AccuVar(), accumulator}, scope{c.IterVar(), first})
	if c.HasIterVar2() {
		in.scopes = append(in.scopes, scope{c.IterVar2(), second})
	}
	in.infer(c.LoopCondition())
	condition, appended := appending(c)
	switch {
	case appended != nil:
		if condition != nil {
			in.condition(condition)
		}
		accumulator = listOf(in.infer(appended))
	case !isBind:
		in.infer(c.LoopStep())
	}
	in.scopes = append(in.scopes[:before], scope{c.AccuVar(), accumulator})
	result := in.infer(c.Result())
	in.scopes = in.scopes[:before]
	return result
}

// appending recognizes the body of map and filter: accumulator + [x], perhaps with a condition.
func appending(c ast.ComprehensionExpr) (condition, appended ast.Expr) {
	step := c.LoopStep()
	if args, ok := callOf(step, operators.Conditional); ok && isName(args[2], c.AccuVar()) {
		condition, step = args[0], args[1]
	}
	args, ok := callOf(step, operators.Add)
	if !ok || !isName(args[0], c.AccuVar()) || args[1].Kind() != ast.ListKind {
		return nil, nil
	}
	list := args[1].AsList()
	if list.Size() != 1 || len(list.OptionalIndices()) > 0 {
		return nil, nil
	}
	return condition, list.Elements()[0]
}

func callOf(e ast.Expr, function string) ([]ast.Expr, bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != function {
		return nil, false
	}
	return e.AsCall().Args(), true
}

func isName(e ast.Expr, name string) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == name }

// loopVariables returns the shapes of a macro's variables: the item or, with two variables, the index or key and the item.
func loopVariables(over shape, two bool) (first, second shape) {
	goesOver := over.kinds & (kindList | kindMap)
	switch {
	case over.kinds&kindOther != 0:
		return anything(), anything()
	case goesOver == kindList && two:
		return of(kindInt), over.item()
	case goesOver == kindList:
		return over.item(), anything()
	case goesOver == kindMap && over.schema != nil:
		return of(kindString), anything()
	}
	return anything(), anything()
}
