package expr

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

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

// kindsOf returns the kinds that values of a cel-go type may have.
func kindsOf(t *cel.Type) kinds {
	nullable := kinds(0)
	if t.IsAssignableType(types.NullType) {
		nullable = kindNull
	}
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind, types.ErrorKind, types.UnspecifiedKind, types.UnknownKind:
		return anyKind
	case types.NullTypeKind:
		return kindNull
	case types.BoolKind:
		return kindBool | nullable
	case types.IntKind:
		return kindInt | nullable
	case types.UintKind:
		return kindUint | nullable
	case types.DoubleKind:
		return kindDouble | nullable
	case types.StringKind:
		return kindString | nullable
	case types.BytesKind:
		return kindBytes | nullable
	case types.ListKind:
		return kindList
	case types.MapKind:
		return kindMap
	case types.TimestampKind:
		return kindTimestamp | nullable
	case types.DurationKind:
		return kindDuration | nullable
	case types.OpaqueKind, types.StructKind, types.TypeKind:
		return kindOther
	}
	return anyKind
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
