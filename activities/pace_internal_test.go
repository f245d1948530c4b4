package activities

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A model is quick after ten quick answers in a row, and until one is slow or fails. What one model does says nothing about another.
func TestPace_KnowsQuickModels(t *testing.T) {
	t.Parallel()
	var p pace
	quick := func(n int) {
		for range n {
			p.note("openai/small", quickAnswer, nil)
		}
	}
	require.True(t, p.quick("script/any"), "a script always is")
	quick(quickAnswers - 1)
	require.False(t, p.quick("openai/small"))
	quick(1)
	require.True(t, p.quick("openai/small"))
	require.False(t, p.quick("openai/large"))
	p.note("openai/large", time.Minute, nil)
	require.True(t, p.quick("openai/small"))

	p.note("openai/small", quickAnswer+1, nil)
	quick(quickAnswers - 1)
	require.False(t, p.quick("openai/small"), "it was slow once")
	quick(1)
	require.True(t, p.quick("openai/small"))
	p.note("openai/small", 0, errors.New("busy"))
	quick(quickAnswers - 1)
	require.False(t, p.quick("openai/small"), "it failed once")
}
