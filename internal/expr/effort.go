package expr

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// cel-go's type checker copies all its type variables for every overload that it tries, and writes types out as texts to look them up. So
// its work grows with the square or the cube of the source's length. That work is estimated before it begins.
const (
	// maxLoops and maxBindings limit nested macros, and maxTypeDepth nested lists, maps and optionals.
	maxLoops     = 8
	maxBindings  = 32
	maxTypeDepth = 16
	maxArguments = 50
	// maxEffort limits the copies of type variables. One takes about 100 bytes and 50 ns.
	maxEffort = 200_000
	// nodeEffort is the effort for a node itself, and for each level of its type's depth when the type is written out.
	nodeEffort = 2
)

// load describes the checker's work for a call of a function: the overloads that it tries and the type variables that these add. The type of
// the result has at least depth least. If the result contains the arguments, it is at most growth levels deeper than the deepest argument.
type load struct {
	tried, brought int
	least, growth  int
	made           bool
}

type loadKey struct {
	name   string
	member bool
}

// loads computes the loads of all functions of an environment from their declarations.
func loads(env *cel.Env) map[loadKey]load {
	out := map[loadKey]load{}
	for name, f := range env.Functions() {
		for _, o := range f.OverloadDecls() {
			key := loadKey{name, o.IsMemberFunction()}
			have := out[key]
			have.tried++
			have.brought += len(o.TypeParams())
			before := map[string]int{}
			for _, arg := range o.ArgTypes() {
				variablesOf(arg, 0, func(name string, depth int) {
					if shallowest, has := before[name]; !has || depth < shallowest {
						before[name] = depth
					}
				})
			}
			have.least = max(have.least, variablesOf(o.ResultType(), 0, func(name string, depth int) {
				have.made = true
				have.growth = max(have.growth, depth-before[name])
			}))
			out[key] = have
		}
	}
	return out
}

// variablesOf calls found for each type variable in a type, with its depth, and returns how deep the type is nested.
func variablesOf(t *cel.Type, at int, found func(name string, depth int)) int {
	if t.Kind() == types.TypeParamKind {
		found(t.TypeName(), at)
		return at
	}
	deepest := at
	for _, p := range t.Parameters() {
		deepest = max(deepest, variablesOf(p, at+1, found))
	}
	return deepest
}

// estimator adds up the effort of checking a parsed expression.
type estimator struct {
	loads  map[loadKey]load
	scopes []estimated
	// variables counts the checker's type variables, and effort the copies made of them.
	variables, effort int
	// loops and bindings count the macros around the current node.
	loops, bindings int
	at              int64
	message         string
}

// estimated is a name bound by a macro, with the depth of its type.
type estimated struct {
	name  string
	depth int
}

// tooHard refuses a parsed expression whose type check would take too long.
func (e *Env) tooHard(source string, parsed *ast.AST) *IssueError {
	w := &estimator{loads: e.loads()}
	w.depth(parsed.Expr())
	if w.message == "" {
		return nil
	}
	return &IssueError{Source: source, Offset: offsetOf(parsed.SourceInfo(), w.at), Message: w.message}
}

func (w *estimator) refuse(e ast.Expr, format string, args ...any) {
	if w.message == "" {
		w.at, w.message = e.ID(), fmt.Sprintf(format, args...)
	}
}

func (w *estimator) try(times int) { w.effort += times * (w.variables + nodeEffort) }

// depth returns how deep the type of an expression may be, and charges for the expression's parts.
func (w *estimator) depth(e ast.Expr) int {
	if w.message != "" {
		return 0
	}
	deep := w.part(e)
	w.effort += nodeEffort + deep*deep/4
	switch {
	case deep > maxTypeDepth:
		w.refuse(e, "lists, maps and optionals are nested more than %d levels deep", maxTypeDepth)
	case w.effort > maxEffort:
		w.refuse(e, "the expression has too many parts to check; split it into smaller ones")
	}
	return deep
}

func (w *estimator) part(e ast.Expr) int {
	switch e.Kind() {
	case ast.IdentKind:
		for i := len(w.scopes) - 1; i >= 0; i-- {
			if w.scopes[i].name == e.AsIdent() {
				return w.scopes[i].depth
			}
		}
		return 1
	case ast.SelectKind:
		deep := w.depth(e.AsSelect().Operand())
		if e.AsSelect().IsTestOnly() {
			return 0
		}
		return deep
	case ast.CallKind:
		return w.call(e)
	case ast.ListKind:
		deep := 0
		for _, item := range e.AsList().Elements() {
			deep = max(deep, w.depth(item))
			w.try(1)
		}
		return deep + 1
	case ast.MapKind:
		deep := 0
		for _, entry := range e.AsMap().Entries() {
			w.depth(entry.AsMapEntry().Key())
			deep = max(deep, w.depth(entry.AsMapEntry().Value()))
			w.try(2)
			if entry.AsMapEntry().Key().Kind() != ast.LiteralKind { // see plain
				w.try(1)
				w.variables++
			}
		}
		return deep + 1
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			w.depth(field.AsStructField().Value())
			w.try(1)
		}
	case ast.ComprehensionKind:
		return w.comprehension(e)
	case ast.LiteralKind, ast.UnspecifiedExprKind:
	}
	return 0
}

func (w *estimator) call(e ast.Expr) int {
	c, deep := e.AsCall(), 0
	if c.IsMemberFunction() {
		deep = w.depth(c.Target())
	}
	for _, arg := range c.Args() {
		deep = max(deep, w.depth(arg))
	}
	if c.FunctionName() == operators.OptSelect {
		return deep + 1
	}
	if len(c.Args()) > maxArguments {
		w.refuse(e, "a call has more than %d arguments", maxArguments)
	}
	of := w.loads[loadKey{c.FunctionName(), c.IsMemberFunction()}]
	if c.IsMemberFunction() { // it may be a function whose name has dots
		if name, ok := qualified(c.Target()); ok {
			if global, has := w.loads[loadKey{name + "." + c.FunctionName(), false}]; has {
				of = global
			}
		}
	}
	w.try(of.tried)
	w.variables += of.brought
	if !of.made {
		return of.least
	}
	return max(of.least, deep+of.growth)
}

// qualified writes a chain of names with dots.
func qualified(e ast.Expr) (string, bool) {
	switch e.Kind() { //nolint:exhaustive // only these kinds can form a dotted name
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		name, ok := qualified(e.AsSelect().Operand())
		return name + "." + e.AsSelect().FieldName(), ok && !e.AsSelect().IsTestOnly()
	}
	return "", false
}

func (w *estimator) comprehension(e ast.Expr) int {
	c := e.AsComprehension()
	over := w.depth(c.IterRange())
	accumulator := w.depth(c.AccuInit())
	nesting, most := &w.loops, maxLoops
	if c.IterVar() == unusedVariable {
		nesting, most = &w.bindings, maxBindings
	}
	if *nesting++; *nesting > most {
		w.refuse(e, "macros are nested more than %d levels deep", most)
	}
	before := len(w.scopes)
	item := max(over-1, 0)
	w.scopes = append(w.scopes, estimated{c.AccuVar(), accumulator}, estimated{c.IterVar(), item})
	if c.HasIterVar2() {
		w.scopes = append(w.scopes, estimated{c.IterVar2(), item})
	}
	w.depth(c.LoopCondition())
	accumulator = max(accumulator, w.depth(c.LoopStep()))
	w.variables++ // the type of the list or map that the macro starts with
	w.try(2)
	w.scopes = append(w.scopes[:before], estimated{c.AccuVar(), accumulator})
	result := w.depth(c.Result())
	w.scopes = w.scopes[:before]
	*nesting--
	return result
}
