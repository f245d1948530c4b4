package store

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// requests sends the numbers from 1 to n through a combiner, all but the first while the first is being answered. answer is called for each
// request that is sent. It returns the answers and errors by number.
func requests(n int, answer func(parts []int) (int, error)) (answers map[int]int, errs map[int]error) {
	var c combiner[int, int]
	var all sync.WaitGroup
	var mu sync.Mutex
	answers, errs = map[int]int{}, map[int]error{}
	key := topicKey{"acme", "ses_1"}
	sent, joined := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(sent); <-joined })
	do := func(i int) {
		got, err := c.do(key, i, func(parts []int) (int, error) {
			first()
			return answer(parts)
		})
		mu.Lock()
		defer mu.Unlock()
		answers[i], errs[i] = got, err
	}
	all.Go(func() { do(1) })
	<-sent
	for i := 2; i <= n; i++ {
		all.Go(func() { do(i) })
	}
	for waiting := 0; waiting < n-1; {
		c.mu.Lock()
		waiting = 0
		for _, one := range c.waiting[key] {
			waiting += len(one.parts)
		}
		c.mu.Unlock()
	}
	close(joined)
	all.Wait()
	if len(c.waiting) > 0 {
		errs[0] = errors.New("the combiner still knows the session")
	}
	return answers, errs
}

func TestCombiner_JoinsRequestsThatWait(t *testing.T) {
	t.Parallel()
	const n = maxCombined + 10
	var sizes []int
	answers, errs := requests(n, func(parts []int) (int, error) { // one at a time, or the race detector complains
		sizes = append(sizes, len(parts))
		return slices.Max(parts), nil
	})
	require.Equal(t, []int{1, maxCombined, n - 1 - maxCombined}, sizes)
	for i := 1; i <= n; i++ {
		require.NoError(t, errs[i])
		require.GreaterOrEqual(t, answers[i], i, "the answer is to a request that it was part of")
	}
	require.NoError(t, errs[0])
}

// If one part is wrong, the others are answered nevertheless.
func TestCombiner_FailsAlone(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	answers, errs := requests(5, func(parts []int) (int, error) {
		if slices.Contains(parts, 3) {
			return 0, wrong
		}
		return parts[0], nil
	})
	require.Equal(t, map[int]int{1: 1, 2: 2, 3: 0, 4: 4, 5: 5}, answers)
	require.Equal(t, map[int]error{1: nil, 2: nil, 3: wrong, 4: nil, 5: nil}, errs)
}
