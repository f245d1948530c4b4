package expr

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// meterName resolves to the evaluation's meter. It is not a valid name in a source.
const meterName = "@meter"

// The weights of values: roughly the bytes that Go needs for them.
const (
	valueWeight = 16
	entryWeight = 192
)

// meter counts the steps of the loops of one evaluation and its work: the bytes that it builds, compares or scans. cel-go's own cost limit
// looks at the result of a call only after the call. So it cannot refuse a join that would make a gigabyte, and it counts the comparison of
// two deep values as one step.
type meter struct {
	left, limit int64
	steps, cost int64
}

// loop charges for all rounds of a loop.
func (m *meter) loop(rounds, weight int64) {
	if weight > 0 && rounds > m.steps/weight {
		panic(interpreter.EvalCancelledError{
			Cause:   interpreter.CostLimitExceeded,
			Message: fmt.Sprintf("the expression takes more than %d steps", m.cost),
		})
	}
	m.steps -= rounds * weight
}

// spend subtracts n from the meter. It ends the evaluation when the meter is used up.
func (m *meter) spend(n int64) {
	m.left -= n
	if n < 0 || m.left < 0 {
		panic(interpreter.EvalCancelledError{
			Cause:   interpreter.CostLimitExceeded,
			Message: fmt.Sprintf("the expression builds or compares more than %d MiB of data", m.limit>>20),
		})
	}
}

func meterOf(frame *interpreter.ExecutionFrame) *meter {
	v, _ := frame.ResolveName(meterName)
	m, ok := v.(*meter)
	if !ok { // only for an activation that this package did not make
		m = &meter{limit: 1 << 20, left: 1 << 20, steps: 1 << 20, cost: 1 << 20}
	}
	return m
}

// weigh returns the weight of a value with all its parts. A part that occurs several times counts each time. weigh stops beyond limit.
func weigh(v ref.Val, limit int64) int64 {
	switch x := v.(type) {
	case types.String:
		return valueWeight + int64(len(x))
	case types.Bytes:
		return valueWeight + int64(len(x))
	case *types.Optional:
		if x.HasValue() {
			return valueWeight + weigh(x.GetValue(), limit)
		}
	case traits.Lister:
		sum := int64(valueWeight)
		for i, n := types.Int(0), types.Int(sizeOf(x)); i < n && sum <= limit; i++ {
			sum += weigh(x.Get(i), limit-sum)
		}
		return sum
	case traits.Mapper:
		sum := int64(valueWeight)
		for it := x.Iterator(); it.HasNext() == types.True && sum <= limit; {
			key := it.Next()
			sum += entryWeight + weigh(key, limit-sum)
			if value, ok := x.Find(key); ok {
				sum += weigh(value, limit-sum)
			}
		}
		return sum
	}
	return valueWeight
}

// weighAll returns the weight of a value with all its parts and charges nothing. If the weight exceeds the rest of the meter, it ends the
// evaluation, because then the weight is not known exactly.
func (m *meter) weighAll(v ref.Val) int64 {
	weight := weigh(v, m.left)
	if weight > m.left {
		m.spend(weight)
	}
	return weight
}

// shallow returns the weight of a value without the weight of its parts.
func shallow(v ref.Val) int64 {
	switch x := v.(type) {
	case types.String:
		return int64(len(x))
	case types.Bytes:
		return int64(len(x))
	case traits.Sizer:
		return valueWeight * sizeOf(x)
	}
	return 0
}

func sizeOf(v traits.Sizer) int64 {
	n, ok := v.Size().(types.Int)
	if !ok {
		return 0
	}
	return int64(n)
}

func compound(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return true
	}
	return false
}

const jsonEncodeName = "json.encode"

// rule charges the meter for a call before it runs.
type rule struct {
	// always applies the rule even if every argument is small.
	always bool
	// light is set for functions whose result takes no new memory.
	light  bool
	charge func(m *meter, args []ref.Val)
}

// free reports whether a function does the same small amount of work for all arguments.
func free(function string) bool {
	switch function {
	case operators.Negate, operators.LogicalNot,
		operators.NotStrictlyFalse, operators.OldNotStrictlyFalse, //nolint:staticcheck // cel-go still declares the old one
		overloads.TypeConvertType, overloads.TypeConvertDyn,
		operators.OptSelect, operators.OptIndex:
		return true
	}
	return false
}

func ruleOf(call interpreter.InterpretableCall) rule {
	switch call.Function() {
	case operators.Equals, operators.NotEquals:
		return rule{charge: chargeEqual}
	case operators.Add:
		return rule{charge: chargeAdd}
	case operators.In, operators.OldIn:
		return rule{charge: chargeIn}
	case orderedName:
		return rule{always: true, light: true, charge: chargeOrdered}
	case "cel.@mapInsert":
		return rule{always: true, light: true, charge: func(m *meter, _ []ref.Val) { m.spend(2 * entryWeight) }}
	case "lists.range":
		return rule{always: true, charge: chargeRange}
	case "join":
		return rule{charge: chargeJoin}
	case "replace":
		return rule{charge: chargeReplace}
	case "split":
		return rule{charge: chargeSplit}
	case "distinct", "sets.contains", "sets.equivalent", "sets.intersects":
		return rule{charge: chargePairs}
	case "sort", "@sortByAssociatedKeys":
		return rule{charge: chargeSort}
	case "format", "flatten", jsonEncodeName, overloads.TypeConvertString:
		return rule{charge: chargeWhole}
	case "indexOf", "lastIndexOf":
		return rule{charge: chargeSearch}
	case overloads.Size, overloads.Contains, overloads.StartsWith, overloads.EndsWith,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return rule{charge: chargeScan}
	}
	return rule{charge: chargeShallow}
}

// chargeScan charges for functions that read their arguments once and build nothing.
func chargeScan(m *meter, args []ref.Val) {
	for _, arg := range args {
		if !compound(arg) {
			m.spend(shallow(arg) / 4)
		}
	}
}

// chargeShallow charges for functions whose result is as large as their arguments. Most functions on strings go through the runes.
func chargeShallow(m *meter, args []ref.Val) {
	for _, arg := range args {
		if compound(arg) {
			m.spend(shallow(arg))
		} else {
			m.spend(4 * shallow(arg))
		}
	}
}

// chargeSearch charges for the searches of the strings extension, which compare at every position.
func chargeSearch(m *meter, args []ref.Val) {
	m.spend(4 * shallow(args[0]))
	m.spendProduct(shallow(args[0]), shallow(args[1])/valueWeight)
}

func chargeWhole(m *meter, args []ref.Val) {
	for _, arg := range args {
		m.spend(2 * m.weighAll(arg))
	}
}

// chargeEqual charges for the smaller side, because a comparison ends at the end of the shorter value.
func chargeEqual(m *meter, args []ref.Val) {
	if compound(args[0]) && compound(args[1]) {
		left := weigh(args[0], m.left)
		m.spend(min(left, weigh(args[1], left)))
		return
	}
	m.spend(min(shallow(args[0]), shallow(args[1])) / 4)
}

func chargeAdd(m *meter, args []ref.Val) {
	if _, isText := args[0].(types.String); !isText {
		chargeShallow(m, args) // for strings, the result is charged
	}
}

func chargeIn(m *meter, args []ref.Val) { chargeInTwo(m, args[0], args[1]) }

func chargeInTwo(m *meter, wanted, in ref.Val) {
	list, ok := in.(traits.Lister)
	if !ok {
		return
	}
	each := int64(4)
	if compound(wanted) {
		each = m.weighAll(wanted)
	} else {
		each += shallow(wanted) / valueWeight
	}
	m.spendProduct(sizeOf(list), each)
}

func chargeOrdered(m *meter, args []ref.Val) {
	sized, isSized := args[0].(traits.Sizer)
	weight, isInt := args[1].(types.Int)
	if isSized && isInt {
		m.loop(sizeOf(sized), int64(weight))
	}
	if mapper, ok := args[0].(traits.Mapper); ok {
		m.spend(4 * valueWeight * sizeOf(mapper))
	}
}

func chargeRange(m *meter, args []ref.Val) {
	if n, ok := args[0].(types.Int); ok && n > 0 && n <= maxRange {
		m.spendProduct(int64(n), 24)
	}
}

func chargeJoin(m *meter, args []ref.Val) {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return
	}
	n := sizeOf(list)
	if len(args) > 1 {
		m.spendProduct(n, shallow(args[1]))
	}
	sum := int64(0)
	for i := types.Int(0); i < types.Int(n) && sum <= m.left; i++ {
		sum += 4 + shallow(list.Get(i))
	}
	m.spend(sum)
}

func chargeReplace(m *meter, args []ref.Val) {
	text, ok1 := args[0].(types.String)
	old, ok2 := args[1].(types.String)
	with, ok3 := args[2].(types.String)
	if !ok1 || !ok2 || !ok3 {
		return
	}
	m.spend(int64(len(text)))
	m.spendProduct(int64(strings.Count(string(text), string(old))), int64(len(with)))
}

func chargeSplit(m *meter, args []ref.Val) {
	text, ok1 := args[0].(types.String)
	sep, ok2 := args[1].(types.String)
	if !ok1 || !ok2 {
		return
	}
	m.spend(int64(len(text)))
	m.spendProduct(int64(strings.Count(string(text), string(sep)))+1, 2*valueWeight)
}

// chargePairs charges for functions that compare every element with every other.
func chargePairs(m *meter, args []ref.Val) {
	left, right := args[0], args[len(args)-1]
	m.spendProduct(shallow(left)/valueWeight, m.weighAll(right)/32)
	m.spendProduct(shallow(right)/valueWeight, m.weighAll(left)/32)
}

func chargeSort(m *meter, args []ref.Val) {
	keys := args[len(args)-1]
	levels := int64(bits.Len64(uint64(shallow(keys) / valueWeight))) //nolint:gosec // a size is never negative
	m.spend(shallow(args[0]))
	m.spendProduct(m.weighAll(keys), 1+levels/4)
}

// spendProduct spends a times b. The product may overflow an int64.
func (m *meter) spendProduct(a, b int64) {
	if a > 0 && b > m.limit/a {
		m.spend(m.limit + 1)
	}
	m.spend(a * b)
}
