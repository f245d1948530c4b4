package expr

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// call returns the shape of the result of a function or operator, from the overloads that its arguments may fit.
func (in *inferrer) call(e ast.Expr) shape {
	c := e.AsCall()
	var args []shape
	if c.IsMemberFunction() {
		args = append(args, in.infer(c.Target()))
	}
	for _, arg := range c.Args() {
		args = append(args, in.infer(arg))
	}
	switch c.FunctionName() {
	case operators.Index:
		return in.index(e, c.Args(), args)
	case operators.OptSelect, operators.OptIndex:
		return anything()
	case operators.Conditional:
		in.needTruth(c.Args()[0], args[0])
		return join(args[1], args[2])
	case operators.Equals, operators.NotEquals:
		in.comparable(e, args[0].kinds, args[1].kinds)
		return of(kindBool)
	}
	result := of(in.overloads(e, args))
	if result.kinds == kindList {
		result.items = itemsOf(c.FunctionName(), args)
	}
	return result
}

// overloads returns the kinds of values that the matching overloads may return. It reports an issue if no overload matches.
func (in *inferrer) overloads(e ast.Expr, args []shape) kinds {
	c := e.AsCall()
	have := make([]kinds, len(args))
	for i, arg := range args {
		have[i] = arg.kinds
	}
	all, known := in.env.signatures()[c.FunctionName()]
	result := kinds(0)
	for _, s := range all {
		if s.takes(c.IsMemberFunction(), have) {
			result |= s.result
		}
	}
	if !known {
		return anyKind
	}
	if result != 0 {
		return result
	}
	names := make([]string, len(have))
	for i, k := range have {
		names[i] = k.String()
	}
	in.report(offsetOf(in.info, e.ID()), "%s", cannotApply(c.FunctionName(), strings.Join(names, ", ")))
	return anyKind
}

// index returns the shape of a[b]. At run time a list accepts any whole number, even a double.
func (in *inferrer) index(e ast.Expr, args []ast.Expr, shapes []shape) shape {
	over, by := shapes[0], shapes[1]
	if over.kinds&(kindList|kindMap|kindOther) == 0 {
		in.report(offsetOf(in.info, e.ID()), "%s is %s, which has no members or items", chain(args[0]), over.kinds)
		return anything()
	}
	if over.kinds&(kindMap|kindOther) == 0 {
		if by.kinds&kindNumeric == 0 && by.kinds&kindOther == 0 {
			in.report(offsetOf(in.info, e.ID()), "%s is a list, so its index must be a whole number, not a %s", chain(args[0]), by.kinds)
		}
		return over.item()
	}
	if key, ok := text(args[1]); ok && over.kinds&kindOther == 0 {
		found, _ := in.member(over, key)
		return found
	}
	return anything()
}

func (in *inferrer) condition(e ast.Expr) { in.needTruth(e, in.infer(e)) }

func (in *inferrer) needTruth(e ast.Expr, s shape) {
	if s.kinds&kindBool == 0 {
		in.report(in.start(e), "this gives %s where %s is needed", s.kinds, typeInfo[Bool].name)
	}
}

// comparable reports a comparison whose result is always the same. Anything may be compared with null.
func (in *inferrer) comparable(e ast.Expr, a, b kinds) {
	same := a
	if a&kindNumeric != 0 {
		same |= kindNumeric
	}
	if same&b == 0 && a != kindNull && b != kindNull {
		symbol, _ := operators.FindReverse(e.AsCall().FunctionName())
		in.report(offsetOf(in.info, e.ID()), "'%s' compares %s with %s, which are never equal", symbol, a, b)
	}
}

// itemsOf returns the shape of the items of a list that a function returns.
func itemsOf(function string, args []shape) *shape {
	switch function {
	case operators.Add:
		if args[0].kinds == kindList && args[1].kinds == kindList {
			return joinItems(args[0], args[1], maxJoined)
		}
	case "reverse", "slice", "distinct", "sort", "@sortByAssociatedKeys":
		if args[0].kinds == kindList {
			items := args[0].item()
			return &items
		}
	case "lists.range":
		items := of(kindInt)
		return &items
	case "split":
		items := of(kindString)
		return &items
	}
	return nil
}

// kinds is the set of types that a value may have. An unknown value may have any type.
type kinds uint16

const (
	kindNull kinds = 1 << iota
	kindBool
	kindInt
	kindUint
	kindDouble
	kindString
	kindBytes
	kindList
	kindMap
	kindTimestamp
	kindDuration
	// kindOther is an optional, a type, or any other value without a JSON form.
	kindOther

	anyKind     = kindOther<<1 - 1
	kindNumber  = kindInt | kindDouble
	kindNumeric = kindInt | kindUint | kindDouble
)

// kindNames are cel-go's names of the types, in the order of the bits.
var kindNames = [...]string{
	"null", "bool", "int", "uint", "double", "string", "bytes", "list", "map", "timestamp", "duration", "value",
}

func (k kinds) String() string {
	if k == anyKind {
		return "any"
	}
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// celKinds maps cel-go's kinds of types to kinds. A value of any other kind may have any type.
var celKinds = map[types.Kind]kinds{
	types.NullTypeKind: kindNull, types.BoolKind: kindBool, types.IntKind: kindInt, types.UintKind: kindUint, types.DoubleKind: kindDouble,
	types.StringKind: kindString, types.BytesKind: kindBytes, types.ListKind: kindList, types.MapKind: kindMap,
	types.TimestampKind: kindTimestamp, types.DurationKind: kindDuration,
	types.OpaqueKind: kindOther, types.StructKind: kindOther, types.TypeKind: kindOther,
}

// kindsOf returns the kinds that values of a cel-go type may have.
func kindsOf(t *cel.Type) kinds {
	k, known := celKinds[t.Kind()]
	if !known {
		return anyKind
	}
	if t.IsAssignableType(types.NullType) {
		k |= kindNull
	}
	return k
}

// signature is one overload of a function: the kinds of its arguments, with the receiver first, and of its result.
type signature struct {
	member bool
	args   []kinds
	result kinds
}

// signatures lists the overloads of every function of an environment, by name.
func signatures(env *cel.Env) map[string][]signature {
	out := map[string][]signature{}
	for name, f := range env.Functions() {
		for _, o := range f.OverloadDecls() {
			s := signature{member: o.IsMemberFunction(), result: kindsOf(o.ResultType())}
			for _, arg := range o.ArgTypes() {
				s.args = append(s.args, kindsOf(arg))
			}
			out[name] = append(out[name], s)
		}
	}
	return out
}

// takes reports whether the overload accepts at least some of the values that the arguments may have.
func (s signature) takes(member bool, args []kinds) bool {
	if s.member != member || len(s.args) != len(args) {
		return false
	}
	for i, arg := range args {
		if s.args[i]&arg == 0 {
			return false
		}
	}
	return true
}
