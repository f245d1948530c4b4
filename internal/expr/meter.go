package expr

import (
	"fmt"

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
