package expr

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

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
