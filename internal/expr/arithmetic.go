package expr

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
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

// bigInteger is an integer beyond 2^53 as it is written in JSON. CEL's numbers cannot hold all of these. An expression may pass it on, also
// within a text, and the digits stay the same. A call that would compute with it is an error.
type bigInteger string

// bigIntegerType has no traits: cel-go computes nothing with it.
var bigIntegerType = types.NewOpaqueType("integer beyond 2^53") // immutable

// integerOf returns the literal of a JSON number if it is an integer that would lose digits as a double.
func integerOf(literal string) (bigInteger, bool) {
	if strings.ContainsAny(literal, ".eE") {
		return "", false
	}
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil && -maxSafe-1 <= n && n <= maxSafe+1 {
		return "", false
	}
	const exact = 15 // digits that a double always distinguishes
	return bigInteger(literal), len(strings.Trim(literal, "-0")) > exact
}

// ConvertToNative implements [ref.Val].
func (b bigInteger) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeFor[json.Number]().AssignableTo(t) {
		return json.Number(b), nil
	}
	return nil, fmt.Errorf("%s", b.refusal())
}

// ConvertToType implements [ref.Val].
func (b bigInteger) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(b)
	case types.TypeType:
		return bigIntegerType
	}
	return types.NewErr("%s", b.refusal())
}

// Equal implements [ref.Val]. Values within lists and maps are compared exactly.
func (b bigInteger) Equal(other ref.Val) ref.Val {
	mine, ok := new(big.Int).SetString(string(b), 10)
	if !ok {
		return types.False
	}
	switch o := other.(type) {
	case bigInteger:
		theirs, ok := new(big.Int).SetString(string(o), 10)
		return types.Bool(ok && mine.Cmp(theirs) == 0)
	case types.Int:
		return types.Bool(mine.Cmp(big.NewInt(int64(o))) == 0)
	}
	return types.False
}

// Type implements [ref.Val].
func (b bigInteger) Type() ref.Type { return bigIntegerType }

// Value implements [ref.Val].
func (b bigInteger) Value() any { return json.Number(b) }

func (b bigInteger) refusal() string {
	return fmt.Sprintf("the number %.40s is beyond 2^53 and would lose digits; write it as a string", string(b))
}

// passes reports whether a function only passes its arguments on.
func passes(function string) bool {
	switch function {
	case jsonEncodeName, overloads.TypeConvertString, overloads.TypeConvertDyn, overloads.TypeConvertType, orderedName, "cel.@mapInsert",
		operators.NotStrictlyFalse, "optional.of", "optional.ofNonZeroValue", "orValue", "or", "flatten", "reverse", "slice", "first", "last":
		return true
	}
	return false
}

// refused returns an error if a function would compute with an integer beyond 2^53, otherwise nil.
func (g *guardedCall) refused(v ref.Val) ref.Val {
	b, ok := v.(bigInteger)
	if !ok || passes(g.Function()) {
		return nil
	}
	return types.LabelErrNode(g.ID(), types.NewErr("%s", b.refusal()))
}

// digits makes string() write an integer beyond 2^53 as it is.
func digits(apply applier) applier {
	return func(m *meter, args []ref.Val) ref.Val {
		if b, ok := args[0].(bigInteger); ok {
			return types.String(b)
		}
		return apply(m, args)
	}
}

// checkIntegers refuses comparisons with a list or a map into which a source writes an integer beyond 2^53. It would never be equal to one of JSON, whose
// integers of that size are no CEL numbers.
func checkIntegers(source string, checked *ast.AST) *IssueError {
	var found *IssueError
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals, operators.In:
			for _, arg := range e.AsCall().Args() {
				if big, n := bigWithin(arg); big != nil && found == nil {
					found = &IssueError{Source: source, Message: n.refusal(), Offset: offsetOf(checked.SourceInfo(), big.ID())}
				}
			}
		}
	}))
	return found
}

// bigWithin returns an integer beyond 2^53 that is written as a part of a list or a map, or nil.
func bigWithin(e ast.Expr) (ast.Expr, bigInteger) {
	var parts []ast.Expr
	if e.Kind() == ast.ListKind {
		parts = e.AsList().Elements()
	}
	if e.Kind() == ast.MapKind {
		for _, entry := range e.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	}
	for _, part := range parts {
		if big, n := bigWithin(part); big != nil {
			return big, n
		}
		if part.Kind() != ast.LiteralKind {
			continue
		}
		switch part.AsLiteral().(type) {
		case types.Int, types.Uint:
			if n, big := integerOf(fmt.Sprint(part.AsLiteral().Value())); big {
				return part, n
			}
		}
	}
	return nil, ""
}
