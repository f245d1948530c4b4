package composition_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestLoop_RefusesTooManyItems(t *testing.T) {
	t.Parallel()
	document := `
kind: composition
name: test.items
steps:
  - {id: each, for_each: input.items, max_parallel: 100, steps: [{set: {n: "${index}"}}]}
output: {n: "${vars.n}"}
`
	w := newWorld(t, document, `{"items":[`+strings.Repeat("1,", 100_000)+`1]}`, echo)
	result := w.run(t)
	require.Equal(t, jig.CodeInvalidInput, result.Error.Code)
	require.ErrorContains(t, result.Error, "the list has 100001 items; at most 100000 are allowed")

	w = newWorld(t, document, `{"items":[`+strings.Repeat("1,", 29_999)+`1]}`, echo)
	require.JSONEq(t, `{"n":29999}`, string(w.run(t).Data))
	require.Greater(t, w.moves, 29, "a single move does all the work")
	require.Less(t, w.biggest, 8<<10)
}

func TestExpression_ReadsTooMuch(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	w := newWorld(t, `
kind: composition
name: test.reads
steps:
  - {id: each, for_each: lists.range(20), tool: x.a}
  - {id: one, tool: x.b, input: {size: "${size(steps.each)}"}, on_error: continue}
output: {code: "${steps.one.error.code}", message: "${steps.one.error.message}", field: "${steps.one.error.field}"}
`, `{}`, func(*row) (jig.ToolResult, bool) { return succeed(big), true })
	result := w.run(t)
	require.True(t, result.Success, "%v", result.Error)
	require.JSONEq(t, `{"code":"INVALID_INPUT","field":"steps[1].input","message":"test.reads, steps[1].input: the values it reads take more than 16 MiB"}`, string(result.Data))
}

func TestBlockResults_AreBounded(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("x", 700<<10) + `"`
	w := newWorld(t, `
kind: composition
name: test.blocksize
steps:
  - id: both
    steps: [{id: a, tool: x.a}, {id: b, tool: x.b}]
output: {n: "${size(steps.both.data)}"}
`, `{}`, func(*row) (jig.ToolResult, bool) { return succeed(big), true })
	result := w.run(t)
	require.Equal(t, jig.CodeInvalidInput, result.Error.Code)
	require.ErrorContains(t, result.Error, "the results of its steps take more than 1024 KiB")
	require.Equal(t, "give the block an output", result.Error.Hint)
}

// A move that reaches its limit stops and asks for another move at once.
func TestMove_IsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
kind: composition
name: test.bounded
steps:
  - id: rows
    for_each: lists.range(100)
    max_parallel: 100
    steps:
      - {id: cells, for_each: lists.range(100), max_parallel: 100, tool: x.a}
output: {n: "${size(steps.rows)}"}
`, `{}`, echo)
	move := w.move(t)
	require.Less(t, len(move.Calls), 1_001)
	require.Greater(t, len(move.Calls), 900)
	require.Equal(t, w.at.Now, move.Wake)
	for move.Wake.Equal(w.at.Now) {
		move = w.move(t)
		require.Less(t, len(move.Calls), 1_001)
	}
	require.Len(t, w.asked, 10_000)
	require.Len(t, move.Steps, 20)
}

func TestState_CutsLargeErrors(t *testing.T) {
	t.Parallel()
	violations := make([]jig.Violation, 100)
	for i := range violations {
		violations[i] = jig.Violation{Pointer: fmt.Sprintf("/%d", i), Message: "bad"}
	}
	w := newWorld(t, `
kind: composition
name: test.largeerror
steps:
  - {id: a, tool: x.a, on_error: {catch: [{id: b, tool: never.b, timeout: 1h}]}}
`, `{}`, func(r *row) (jig.ToolResult, bool) {
		return jig.Failure(&jig.Error{Code: jig.CodeConflict, Message: strings.Repeat("é", 1<<20), Violations: violations}), r.path == "a"
	})
	result := w.run(t)
	require.Equal(t, jig.CodeTimeout, result.Error.Code)
	require.Less(t, w.biggest, 8<<10)
	require.True(t, json.Valid(w.state))
}

func TestProgress_ReportsRunningSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
kind: composition
name: test.underway
steps:
  - parallel:
      - {id: a, tool: x.a, timeout: 2h}
      - {wait: 3h}
      - {id: e, wait_for: {event: go, timeout: 1h}}
      - {id: each, for_each: "[1, 2, 3]", max_parallel: 2, steps: [{id: inner, tool: x.inner}]}
`, `{}`, echo)
	move := w.move(t)
	require.Equal(t, []string{"a", "steps[0].parallel[1]", "e", "each[0]/inner", "each[1]/inner"}, move.Steps)
	require.Empty(t, move.Open)
	require.Equal(t, start.Add(60*60e9), move.Wake)
	move = w.advance(t)
	require.Equal(t, []string{"a", "each[0]/inner", "each[1]/inner"}, move.Open)
	require.Empty(t, move.Calls)
}

// The results that an expression reads are looked up together, not one step at a time.
func TestBind_ReadsResultsTogether(t *testing.T) {
	t.Parallel()
	var document strings.Builder
	document.WriteString("kind: composition\nname: test.together\nsteps:\n")
	for i := range 120 {
		fmt.Fprintf(&document, "  - {id: s%d, tool: x.a}\n", i)
	}
	document.WriteString("output: {n: \"${steps.filter(id, steps[id].success).size()}\"}\n")
	w := newWorld(t, document.String(), `{}`, echo)
	for len(w.rows) < 120 {
		w.happen(t, w.move(t))
	}
	before := w.queries
	result := w.run(t)
	require.JSONEq(t, `{"n":120}`, string(result.Data))
	require.LessOrEqual(t, w.queries-before, 5)
}
