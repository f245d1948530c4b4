package expr

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Whether a JSON number is an int or a double depends on its value: a price is an int if it happens to have no cents. CEL computes with two
// ints or two doubles but not with one of each, so an expression would work until the first price with cents. Here the int of such a pair
// becomes a double. Two ints are computed as in CEL: 7 / 2 is 3, and overflow is an error.

// mixedOperators maps the operators that take an int and a double to the prefix of their overloads.
func mixedOperators() map[string]string {
	return map[string]string{
		operators.Add: "add", operators.Subtract: "subtract", operators.Multiply: "multiply", operators.Divide: "divide",
	}
}

// doubleFunctions maps those functions of CEL's math extension that take only doubles to the types that they return.
func doubleFunctions() map[string]*cel.Type {
	return map[string]*cel.Type{
		"math.ceil": cel.DoubleType, "math.floor": cel.DoubleType, "math.round": cel.DoubleType, "math.trunc": cel.DoubleType,
		"math.isNaN": cel.BoolType, "math.isInf": cel.BoolType, "math.isFinite": cel.BoolType,
	}
}

// mixedArithmetic declares the operators for an int and a double, and makes the functions for doubles accept ints.
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

// ofInt applies a function for doubles to an int, which is always whole and finite.
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

// widen turns an int into a double if the other operand is a double. Other pairs stay as they are.
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
	case operators.Modulo: // only ints support it
		if x, ok := a.(traits.Modder); ok {
			return x.Modulo(b)
		}
	}
	return noOverload(operator, []ref.Val{left, right})
}

// sorted sorts by keys that may be both ints and doubles; cel-go only compares keys of one type. The keys of sort are its items.
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

// wideKeys converts keys that are both ints and doubles to doubles. It returns nil if they are anything else, or of one type.
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
