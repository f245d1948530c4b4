package composition_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

const many = 10_000

func TestLargeLoop_OfCallsKeepsItsStateSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
kind: composition
name: test.many
steps:
  - {id: each, for_each: input.items, tool: x.a, input: {n: "${item.n}"}, on_error: continue, retry: {max_attempts: 2}}
output: {size: "${size(steps.each)}", failed: "${steps.each.filter(s, !s.success).size()}", last: "${steps.each[9999].data.n}", retried: "${steps.each[500].data.n}"}
`, `{"items":`+numbered(many)+`}`, func(r *row) (jig.ToolResult, bool) {
		switch r.path {
		case "each[77]":
			return jig.Failure(jig.Errorf(jig.CodeConflict, "taken")), true
		case "each[500]":
			return jig.Failure(jig.Errorf(jig.CodeUnavailable, "down")), true
		}
		return succeed(string(r.input)), true
	})
	result := w.run(t)
	require.True(t, result.Success, "%v", result.Error)
	require.JSONEq(t, `{"size":10000,"failed":1,"last":9999,"retried":500}`, string(result.Data))
	require.Less(t, w.biggest, 8<<10)
	require.Less(t, w.read, 20*many, "the work grows faster than the number of items")
	t.Logf("%d moves, the largest state has %d bytes", w.moves, w.biggest)
}

func TestLargeLoop_OfBlocksKeepsItsStateSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
kind: composition
name: test.manyblocks
steps:
  - id: each
    for_each: input.items
    max_parallel: 20
    steps:
      - {id: a, if: item.n % 2 == 0, tool: x.a, input: {n: "${item.n}"}, undo: {tool: x.unA, input: {n: "${index}"}}}
    output: {n: "${index}"}
  - {fail: {message: "after ${size(steps.each)}"}}
`, `{"items":`+numbered(many)+`}`, func(r *row) (jig.ToolResult, bool) { return succeed(string(r.input)), true })
	result := w.run(t)
	require.Equal(t, "after 10000", result.Error.Message)
	require.Less(t, w.biggest, 8<<10)
	require.Less(t, w.read, 40*many, "the work grows faster than the number of items")
	require.Len(t, w.asked, many)
	require.Equal(t, "each[9998]/a.undo", w.asked[many/2])
	require.Equal(t, "each[0]/a.undo", w.asked[many-1])
	require.Len(t, w.log, many/2)
}

// numbered returns a list of n objects, as JSON.
func numbered(n int) string {
	list := []byte{'['}
	for i := range n {
		if i > 0 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, `{"n":%d}`, i)
	}
	return string(append(list, ']'))
}
