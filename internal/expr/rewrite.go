package expr

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// After type checking, every range of a comprehension is wrapped in a call of a function whose name no source can use. The call does two things.
// First, it puts the keys of a map in order: Go and cel-go iterate over maps in random order, which would make `m.map(k, …)` a source of
// randomness. Second, it charges the meter for all rounds of the loop (elements times nodes of the body) before the first round, because
// cel-go's own cost tracking searches a stack that grows with every round.
const (
	orderedName     = "@ordered"
	orderedOverload = "ordered_any"
)

func orderedFunction() cel.EnvOption {
	t := cel.TypeParamType("T")
	return cel.Function(orderedName, cel.Overload(orderedOverload, []*cel.Type{t, cel.IntType}, t,
		cel.BinaryBinding(func(v, _ ref.Val) ref.Val { return ordered(v) })))
}

// orderRanges wraps the range of each comprehension of a checked expression, in place.
func orderRanges(checked *ast.AST) {
	var loops []ast.ComprehensionExpr
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind && !emptyList(e.AsComprehension().IterRange()) {
			loops = append(loops, e.AsComprehension())
		}
	}))
	factory, next := ast.NewExprFactory(), ast.MaxID(checked)
	for _, loop := range loops {
		r := loop.IterRange()
		weight := nodes(loop.LoopCondition()) + nodes(loop.LoopStep())
		position, _ := checked.SourceInfo().GetOffsetRange(r.ID())
		inner := factory.NewUnspecifiedExpr(next + 1)
		inner.SetKindCase(r)
		checked.SourceInfo().SetOffsetRange(inner.ID(), position)
		checked.SetType(inner.ID(), checked.GetType(r.ID()))
		if reference, has := checked.ReferenceMap()[r.ID()]; has {
			checked.SetReference(inner.ID(), reference)
		}
		rounds := factory.NewLiteral(next+2, types.Int(weight))
		checked.SetType(rounds.ID(), types.IntType)
		next += 2
		// The node of the range keeps its id and its position and becomes the call.
		r.SetKindCase(factory.NewCall(r.ID(), orderedName, inner, rounds))
		checked.SetReference(r.ID(), ast.NewFunctionReference(orderedOverload))
	}
}

// rangeOf returns the range of a comprehension as it was written.
func rangeOf(c ast.ComprehensionExpr) ast.Expr {
	if args, ok := callOf(c.IterRange(), orderedName); ok {
		return args[0]
	}
	return c.IterRange()
}

// emptyList reports whether an expression is an empty list. That is the range of cel.bind, which is not a loop.
func emptyList(e ast.Expr) bool { return e.Kind() == ast.ListKind && e.AsList().Size() == 0 }

// nodes counts the nodes that each round of a loop evaluates. The body of an inner loop counts once; the inner loop charges for its own
// rounds.
func nodes(e ast.Expr) int {
	count := 0
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(ast.Expr) { count++ }))
	return count
}

// ordered returns a map whose iteration follows the order of its keys. It returns other values unchanged.
func ordered(v ref.Val) ref.Val {
	m, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	if _, done := v.(*orderedMap); done {
		return v
	}
	return &orderedMap{Mapper: m, keys: sortedKeys(m)}
}

// orderedMap is a map with ordered keys: booleans, numbers, then strings, each by value.
type orderedMap struct {
	traits.Mapper
	keys []ref.Val
}

func (m *orderedMap) Iterator() traits.Iterator {
	return types.NewRefValList(types.DefaultTypeAdapter, m.keys).Iterator()
}

// Fold implements traits.Foldable.
func (m *orderedMap) Fold(f traits.Folder) {
	for _, key := range m.keys {
		value, _ := m.Find(key)
		if !f.FoldEntry(key, value) {
			return
		}
	}
}

func sortedKeys(m traits.Mapper) []ref.Val {
	keys := make([]ref.Val, 0, sizeOf(m))
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortStableFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b ref.Val) int {
	if byRank := cmp.Compare(keyRank(a), keyRank(b)); byRank != 0 {
		return byRank
	}
	switch x := a.(type) {
	case types.String:
		if y, ok := b.(types.String); ok {
			return cmp.Compare(x, y)
		}
	case traits.Comparer:
		if order, ok := x.Compare(b).(types.Int); ok {
			return int(order)
		}
	}
	return 0
}

func keyRank(v ref.Val) int {
	switch v.(type) {
	case types.Bool:
		return 0
	case types.Int, types.Uint, types.Double:
		return 1
	}
	return 2
}

// Before an expression is checked, it is rewritten so that every type is known at once and no type is composed of two others: an empty list
// or map in the source, an optional.none() and a computed key of a map get the type dyn. Otherwise a few names could have types that are
// larger than memory, for example by nesting {x: x} repeatedly. The rewrite is undone afterwards.

// firstTemporaryID is the first id for nodes that exist only while a source is checked.
const firstTemporaryID = 1 << 40

// rewriter simplifies the types in one expression.
type rewriter struct {
	factory ast.ExprFactory
	parsed  *ast.AST
	next    int64
	// kept holds the ids of empty lists and maps that macros create, and of others that must not be rewritten.
	kept map[int64]bool
	undo []func(checked *ast.AST)
}

// simplifyTypes rewrites a parsed expression in place. The returned function undoes that in the checked expression.
func simplifyTypes(parsed *ast.AST) func(checked *ast.AST) {
	p := &rewriter{factory: ast.NewExprFactory(), parsed: parsed, next: firstTemporaryID, kept: map[int64]bool{}}
	var found []ast.Expr
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() { //nolint:exhaustive // nothing else is changed
		case ast.ComprehensionKind:
			p.macro(e.AsComprehension())
		case ast.CallKind:
			if e.AsCall().FunctionName() == "format" { // the checker counts its values
				for _, arg := range e.AsCall().Args() {
					p.kept[arg.ID()] = true
				}
			}
			found = append(found, e)
		case ast.ListKind, ast.MapKind:
			found = append(found, e)
		}
	}))
	for _, e := range found {
		p.change(e)
	}
	return func(checked *ast.AST) {
		for _, back := range p.undo {
			back(checked)
		}
	}
}

// unusedVariable is the loop variable of cel.bind and of the macros of optionals, whose expansions loop over an empty list.
const unusedVariable = "#unused"

func (p *rewriter) macro(c ast.ComprehensionExpr) {
	if c.IterVar() == unusedVariable {
		p.kept[c.IterRange().ID()] = true
		return
	}
	p.kept[c.AccuInit().ID()] = true
}

func (p *rewriter) change(e ast.Expr) {
	switch e.Kind() { //nolint:exhaustive // nothing else is changed
	case ast.ListKind:
		if e.AsList().Size() == 0 && !p.kept[e.ID()] {
			e.SetKindCase(p.factory.NewList(e.ID(), []ast.Expr{p.unknown(e)}, nil))
			p.undo = append(p.undo, func(*ast.AST) { e.SetKindCase(p.factory.NewList(e.ID(), nil, nil)) })
		}
	case ast.MapKind:
		p.changeMap(e)
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != "none" || len(c.Args()) > 0 || !isOptional(c) {
			return
		}
		e.SetKindCase(p.factory.NewMemberCall(e.ID(), "of", c.Target(), p.unknown(e)))
		p.undo = append(p.undo, func(checked *ast.AST) {
			if _, ok := callOf(e, "optional.of"); ok {
				e.SetKindCase(p.factory.NewCall(e.ID(), "optional.none"))
				checked.SetReference(e.ID(), ast.NewFunctionReference("optional_none"))
			}
		})
	}
}

func isOptional(c ast.CallExpr) bool {
	name, ok := "", false
	if c.IsMemberFunction() {
		name, ok = qualified(c.Target())
	}
	return ok && strings.TrimPrefix(name, ".") == "optional"
}

func (p *rewriter) changeMap(e ast.Expr) {
	if p.kept[e.ID()] {
		return
	}
	entries := e.AsMap().Entries()
	if len(entries) == 0 {
		only := p.factory.NewMapEntry(p.id(e), p.unknown(e), p.unknown(e), false)
		e.SetKindCase(p.factory.NewMap(e.ID(), []ast.EntryExpr{only}))
		p.undo = append(p.undo, func(*ast.AST) { e.SetKindCase(p.factory.NewMap(e.ID(), nil)) })
		return
	}
	changed, computed := make([]ast.EntryExpr, len(entries)), false
	for i, entry := range entries {
		changed[i] = entry
		if of := entry.AsMapEntry(); of.Key().Kind() != ast.LiteralKind {
			computed = true
			changed[i] = p.factory.NewMapEntry(entry.ID(), p.dyn(of.Key(), of.Key()), of.Value(), of.IsOptional())
		}
	}
	if computed {
		e.SetKindCase(p.factory.NewMap(e.ID(), changed))
		p.undo = append(p.undo, func(*ast.AST) { e.SetKindCase(p.factory.NewMap(e.ID(), entries)) })
	}
}

// id returns a new id with the position of an expression.
func (p *rewriter) id(of ast.Expr) int64 {
	p.next++
	if position, ok := p.parsed.SourceInfo().GetOffsetRange(of.ID()); ok {
		p.parsed.SourceInfo().SetOffsetRange(p.next, position)
	}
	return p.next
}

func (p *rewriter) unknown(at ast.Expr) ast.Expr { return p.factory.NewIdent(p.id(at), unknownName) }

func (p *rewriter) dyn(at, e ast.Expr) ast.Expr {
	return p.factory.NewCall(p.id(at), dynName, e)
}

const (
	dynName = "dyn"
	// unknownName is a variable of type dyn that is never read. It is not a valid name in a source.
	unknownName = "@unknown"
)
