package composition_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// In the undo and the catch of an item, the loop's id means the item's own result.
func TestItem_ReadsItsOwnResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
kind: composition
name: test.own
steps:
  - id: a
    for_each: "[1, 2]"
    max_parallel: 1
    tool: x.a
    undo: {tool: x.unA, input: {of: "${steps.a.data.path}"}}
  - id: b
    for_each: "[1, 2]"
    max_parallel: 1
    tool: fail.b
    on_error: {catch: [{id: mend, tool: x.mend, input: {why: "${steps.b.error.code}"}}]}
  - {id: c, tool: x.c, input: {n: "${size(steps.b)}"}}
  - {fail: {message: stop}}
`, `{}`, echo)
	w.run(t)
	require.JSONEq(t, `{"of":"a[0]"}`, string(w.rows["a[0].undo"].input))
	require.JSONEq(t, `{"why":"NOT_FOUND"}`, string(w.rows["b[1]/mend"].input))
	require.JSONEq(t, `{"n":2}`, string(w.rows["c"].input))
}
