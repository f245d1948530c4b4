package expr

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// The variables whose members [Reads] lists by name.
const (
	stepsName = "steps"
	varsName  = "vars"
)

// Reads lists the variables and members that expressions read, so that callers load only these. All lists are sorted and without duplicates.
type Reads struct {
	// Names are the variables of the environment.
	Names []string
	// Steps are the ids in steps.<id>, steps["id"], has(steps.<id>), steps.?id and "id" in steps.
	Steps []string
	// AllSteps says that steps are also read in other ways, so that an expression may read any of them.
	AllSteps bool
	// Vars and AllVars are the same for vars.
	Vars    []string
	AllVars bool
	// Tasks and AllTasks are the same for tasks, and Content and AllContent for entity.content.
	Tasks      []string
	AllTasks   bool
	Content    []string
	AllContent bool
}

// Merge returns the combined reads of two expressions.
func (r Reads) Merge(other Reads) Reads {
	return Reads{
		Names:    union(r.Names, other.Names),
		Steps:    union(r.Steps, other.Steps),
		AllSteps: r.AllSteps || other.AllSteps,
		Vars:     union(r.Vars, other.Vars),
		AllVars:  r.AllVars || other.AllVars,

		Tasks:      union(r.Tasks, other.Tasks),
		AllTasks:   r.AllTasks || other.AllTasks,
		Content:    union(r.Content, other.Content),
		AllContent: r.AllContent || other.AllContent,
	}
}

// Has reports whether a variable is among Names.
func (r Reads) Has(name string) bool { return slices.Contains(r.Names, name) }

func union(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// Reads returns the reads of the expression.
func (p *Program) Reads() Reads { return p.reads }

// Reads returns the combined reads of the template's expressions.
func (t *Template) Reads() Reads {
	var all Reads
	for _, part := range t.parts {
		if part.program != nil {
			all = all.Merge(part.program.reads)
		}
	}
	return all
}

// Reads returns the combined reads of the document's expressions.
func (d *Document) Reads() Reads {
	var all Reads
	for _, t := range d.Templates() {
		all = all.Merge(t.Reads())
	}
	return all
}

// Templates iterates over the strings of the document that contain expressions, in the order of the keys. The paths are as in [Problem].
func (d *Document) Templates() iter.Seq2[string, *Template] {
	return func(yield func(string, *Template) bool) { slots(d.root, yield) }
}

func slots(n node, yield func(string, *Template) bool) bool {
	var parts []node
	switch x := n.(type) {
	case *slot:
		return yield(x.at.String(), x.template)
	case []node:
		parts = x
	case *objectNode:
		parts = x.values
	}
	for _, part := range parts {
		if !slots(part, yield) {
			return false
		}
	}
	return true
}

// reader collects the reads of a checked expression. Names bound by macros hide variables of the same name.
type reader struct {
	bound   map[string]int
	names   map[string]bool
	steps   members
	vars    members
	tasks   members
	content members
}

// members holds the keys of a map that are read by name. all says that the map is also read in other ways.
type members struct {
	named map[string]bool
	all   bool
}

func (e *Env) readsOf(root ast.Expr) Reads {
	r := &reader{bound: map[string]int{}, names: map[string]bool{}}
	for _, m := range []*members{&r.steps, &r.vars, &r.tasks, &r.content} {
		m.named = map[string]bool{}
	}
	r.walk(root)
	declared := map[string]bool{}
	for _, v := range e.use.Variables {
		declared[v.Name] = r.names[v.Name]
	}
	maps.DeleteFunc(declared, func(_ string, read bool) bool { return !read })
	return Reads{
		Names: sortedSet(declared),
		Steps: sortedSet(r.steps.named), AllSteps: r.steps.all && declared[stepsName],
		Vars: sortedSet(r.vars.named), AllVars: r.vars.all && declared[varsName],
		Tasks: sortedSet(r.tasks.named), AllTasks: r.tasks.all && declared[tasksName],
		Content: sortedSet(r.content.named), AllContent: r.content.all && declared[entityName],
	}
}

func sortedSet(set map[string]bool) []string {
	if len(set) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(set))
}

func (r *reader) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		if name, ok := r.variable(e); ok {
			r.names[name] = true
			if m := r.membersOf(name); m != nil {
				m.all = true
			}
		}
	case ast.SelectKind:
		r.member(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.CallKind:
		r.call(e.AsCall())
	case ast.ListKind:
		r.walkAll(e.AsList().Elements())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.walk(entry.AsMapEntry().Key())
			r.walk(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.walk(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		r.comprehension(e.AsComprehension())
	case ast.LiteralKind, ast.UnspecifiedExprKind:
	}
}

func (r *reader) walkAll(all []ast.Expr) {
	for _, e := range all {
		r.walk(e)
	}
}

// variable returns the name of a variable, or false if a macro hides it. A name with a leading dot always means the variable.
func (r *reader) variable(e ast.Expr) (string, bool) {
	if e.Kind() != ast.IdentKind {
		return "", false
	}
	name, global := strings.CutPrefix(e.AsIdent(), ".")
	return name, global || r.bound[name] == 0
}

func (r *reader) membersOf(name string) *members {
	switch name {
	case stepsName:
		return &r.steps
	case varsName:
		return &r.vars
	case tasksName:
		return &r.tasks
	case entityName:
		return &r.content
	}
	return nil
}

// member records that a member of a value is read.
func (r *reader) member(operand ast.Expr, key string) {
	name, ok := r.variable(operand)
	m := r.membersOf(name)
	switch {
	case r.entityContent(operand):
		r.names[entityName] = true
		r.content.named[key] = true
	case !ok || m == nil:
		r.walk(operand)
	case name == entityName:
		r.entityMember(key)
	default:
		r.names[name] = true
		m.named[key] = true
	}
}

func (r *reader) call(c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		if key, ok := text(args[1]); ok {
			r.member(args[0], key)
			return
		}
	case operators.In:
		if key, ok := text(args[0]); ok {
			r.member(args[1], key)
			return
		}
	}
	if c.IsMemberFunction() {
		r.walk(c.Target())
	}
	r.walkAll(args)
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// comprehension walks a macro in the scopes of cel-go's checker: the accumulator is visible in the body and the result, the loop's
// variables only in the body.
func (r *reader) comprehension(c ast.ComprehensionExpr) {
	r.walk(c.IterRange())
	r.walk(c.AccuInit())
	r.bound[c.AccuVar()]++
	r.bound[c.IterVar()]++
	if c.HasIterVar2() {
		r.bound[c.IterVar2()]++
	}
	r.walk(c.LoopCondition())
	r.walk(c.LoopStep())
	if c.HasIterVar2() {
		r.bound[c.IterVar2()]--
	}
	r.bound[c.IterVar()]--
	r.walk(c.Result())
	r.bound[c.AccuVar()]--
}

// Members returns the members that the expression reads, in the notation of expressions: input.amount, tool.name, call.input.items. asked
// holds the members whose presence the expression tests with has(…), .? or in. Both lists are sorted.
func (p *Program) Members() (read, asked []string) {
	reads, asking := map[string]bool{}, map[string]bool{}
	ast.PostOrderVisit(p.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if member, ok := presenceTest(e); ok {
			asking[member] = true
			return
		}
		if e.Kind() == ast.SelectKind {
			reads[chain(e)] = true
		} else if args, ok := callOf(e, operators.Index); ok {
			if name, literal := text(args[1]); literal {
				reads[chain(args[0])+"."+name] = true
			}
		}
	}))
	return sortedSet(reads), sortedSet(asking)
}
