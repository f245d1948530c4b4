package expr

import (
	"cmp"
	"slices"

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
