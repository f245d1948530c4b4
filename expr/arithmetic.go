package expr

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// A JSON number is an int or a double by its value: a price is an int on the day that it has no cents. CEL computes with two
// ints or with two doubles and refuses one of each, so an expression would work until the first price with cents. Here the
// int of such a pair becomes a double. Two ints are computed with as CEL does: 7 / 2 is 3, and overflow is an error.

// mixedOperators are the operators that take an int and a double, with the prefix of their overloads.
func mixedOperators() map[string]string {
	return map[string]string{
		operators.Add: "add", operators.Subtract: "subtract", operators.Multiply: "multiply", operators.Divide: "divide",
	}
}

// doubleFunctions are the functions of CEL's math extension that take doubles alone, with what they give.
func doubleFunctions() map[string]*cel.Type {
	return map[string]*cel.Type{
		"math.ceil": cel.DoubleType, "math.floor": cel.DoubleType, "math.round": cel.DoubleType, "math.trunc": cel.DoubleType,
		"math.isNaN": cel.BoolType, "math.isInf": cel.BoolType, "math.isFinite": cel.BoolType,
	}
}

// mixedArithmetic declares the operators for an int and a double, and gives the functions of doubles to ints.
func mixedArithmetic() []cel.EnvOption {
	var options []cel.EnvOption
	for operator, prefix := range mixedOperators() {
		options = append(options, cel.Function(operator, // the guard computes them: see arithmetic
			cel.Overload(prefix+"_int_double", []*cel.Type{cel.IntType, cel.DoubleType}, cel.DoubleType),
			cel.Overload(prefix+"_double_int", []*cel.Type{cel.DoubleType, cel.IntType}, cel.DoubleType),
		))
	}
	for name, gives := range doubleFunctions() {
		options = append(options, cel.Function(name, cel.Overload(name+"_int", []*cel.Type{cel.IntType}, gives,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return ofInt(name, v) }))))
	}
	return options
}

// ofInt is a function of doubles applied to an int, which is whole and finite already.
func ofInt(name string, v ref.Val) ref.Val {
	switch name {
	case "math.isFinite":
		return types.True
	case "math.isNaN", "math.isInf":
		return types.False
	}
	n, ok := v.(types.Int)
	if !ok {
		return noOverload(name, []ref.Val{v})
	}
	return types.Double(n)
}

// widen makes a double of an int whose partner is a double; other pairs stay as they are.
func widen(a, b ref.Val) (left, right ref.Val) {
	switch x := a.(type) {
	case types.Int:
		if _, mixed := b.(types.Double); mixed {
			return types.Double(x), b
		}
	case types.Double:
		if y, mixed := b.(types.Int); mixed {
			return a, types.Double(y)
		}
	}
	return a, b
}

// arithmetic computes + - * / %.
func arithmetic(operator string, left, right ref.Val) ref.Val {
	a, b := widen(left, right)
	switch operator {
	case operators.Add:
		if x, ok := a.(traits.Adder); ok {
			return x.Add(b)
		}
	case operators.Subtract:
		if x, ok := a.(traits.Subtractor); ok {
			return x.Subtract(b)
		}
	case operators.Multiply:
		if x, ok := a.(traits.Multiplier); ok {
			return x.Multiply(b)
		}
	case operators.Divide:
		if x, ok := a.(traits.Divider); ok {
			return x.Divide(b)
		}
	case operators.Modulo: // of ints alone: a double has none
		if x, ok := a.(traits.Modder); ok {
			return x.Modulo(b)
		}
	}
	return noOverload(operator, []ref.Val{left, right})
}

// sorted sorts by keys that may be ints and doubles: cel-go compares keys of one type alone. The keys of sort are its items.
func (e *Env) sorted(apply applier) applier {
	return func(m *meter, args []ref.Val) ref.Val {
		keys, ok := args[len(args)-1].(traits.Lister)
		if !ok {
			return apply(m, args)
		}
		if wide := wideKeys(keys); wide != nil {
			return e.bindings["@sortByAssociatedKeys"].Binary(args[0], wide)
		}
		return apply(m, args)
	}
}

// wideKeys makes doubles of keys that are ints and doubles; nil when they are something else, or of one type.
func wideKeys(keys traits.Lister) traits.Lister {
	n := types.Int(sizeOf(keys))
	wide := make([]ref.Val, 0, n)
	ints, doubles := false, false
	for i := types.Int(0); i < n; i++ {
		switch key := keys.Get(i).(type) {
		case types.Int:
			ints, wide = true, append(wide, types.Double(key))
		case types.Double:
			doubles, wide = true, append(wide, key)
		default:
			return nil
		}
	}
	if !ints || !doubles {
		return nil
	}
	return types.NewRefValList(types.DefaultTypeAdapter, wide)
}
