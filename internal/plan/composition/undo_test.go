package composition_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// charging charges a payment that can be undone, and then fails.
const charging = `kind: composition
name: test.charging
steps:
  - {id: pay, tool: x.pay, undo: {tool: x.refund, input: {all: "${steps.pay.success}", charge: "${steps.pay.data.?charge.orValue('none')}"}}}
  - fail: {message: "no"}
`

// doubtful makes the outcome of every call of x.pay unknown once. Other calls succeed.
func doubtful(r *row) (jig.ToolResult, bool) {
	if r.tool == "x.pay" && r.doubt == 0 {
		return inDoubt(), true
	}
	return succeed(`{"charge":"c1"}`), true
}

type undone struct {
	Undone    []string    `json:"undone"`
	NotUndone []notUndone `json:"not_undone"`
}

type notUndone struct {
	Path  string    `json:"path"`
	Error jig.Error `json:"error"`
}

func reportOf(t *testing.T, r jig.ToolResult) undone {
	t.Helper()
	var report undone
	if len(r.Data) > 0 {
		require.NoError(t, json.Unmarshal(r.Data, &report))
	}
	return report
}

func (w *world) says(outcome jig.ReconcileOutcome) {
	w.person = func(r *row) {
		switch outcome {
		case jig.OutcomeHappened:
			w.finish(r, succeed(`{"charge":"c9"}`))
		case jig.OutcomeNotHappened:
			r.status, r.begun = jig.CallReserved, false
		case jig.OutcomeGiveUp:
			w.finish(r, jig.Failure(jig.Errorf(jig.CodeOutcomeUnknown, "nobody knows")))
		}
	}
}

func TestUndo_OfAStepReconciledAsHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, charging, `{}`, doubtful)
	w.says(jig.OutcomeHappened)
	report := reportOf(t, w.run(t))
	require.Equal(t, []string{"pay"}, report.Undone)
	require.JSONEq(t, `{"all":true,"charge":"c9"}`, string(w.rows["pay.undo"].input), "the person's result counts")
}

func TestUndo_SkipsStepsReconciledAsNotHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, charging, `{}`, func(r *row) (jig.ToolResult, bool) {
		if r.doubt > 0 {
			return jig.Failure(jig.Errorf(jig.CodeNotFound, "no such account")), true
		}
		return doubtful(r)
	})
	w.says(jig.OutcomeNotHappened)
	result := w.run(t)
	require.Equal(t, jig.CodeNotFound, result.Error.Code)
	require.Empty(t, result.Data)
	require.Equal(t, []string{"pay"}, w.asked)
}

func TestUndo_ReportsUnknownOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, charging, `{}`, doubtful)
	w.says(jig.OutcomeGiveUp)
	report := reportOf(t, w.run(t))
	require.Empty(t, report.Undone)
	require.Len(t, report.NotUndone, 1)
	require.Equal(t, "pay", report.NotUndone[0].Path)
	require.Equal(t, jig.CodeOutcomeUnknown, report.NotUndone[0].Error.Code)
}

func TestUndo_CanceledRunWaitsForThePerson(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[jig.ReconcileOutcome]undone{
		jig.OutcomeHappened: {Undone: []string{"pay"}, NotUndone: []notUndone{}}, jig.OutcomeNotHappened: {},
	} {
		w := newWorld(t, charging, `{}`, doubtful)
		w.says(outcome)
		move := w.move(t)
		w.happen(t, move)
		require.Equal(t, jig.CallUnknown, w.rows["pay"].status)
		w.at.Canceled = true
		move = w.move(t)
		require.Empty(t, move.Cancel, "the question stays open")
		require.Equal(t, []string{"pay"}, move.Open)
		w.happen(t, move)
		result := w.run(t)
		require.Equal(t, jig.CodeCanceled, result.Error.Code)
		require.Equal(t, want, reportOf(t, result), outcome)
		if outcome == jig.OutcomeNotHappened {
			require.True(t, w.rows["pay"].canceled, "it does not run again")
		}
	}
}

// The composition is canceled while an attempt runs that never reports back. The run waits until its outcome is known.
func TestUndo_CanceledRunLeavesStartedCallsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, charging, `{}`, echo)
	w.move(t)
	w.rows["pay"].status = jig.CallExecuting
	w.at.Canceled = true
	move := w.move(t)
	require.Empty(t, move.Cancel)
	require.Empty(t, move.Stop, "there is no attempt to stop")
	require.Equal(t, []string{"pay"}, move.Open)
}

// late times out in a loop and continues.
const late = `kind: composition
name: test.late
steps:
  - id: each
    for_each: "[1, 2]"
    tool: x.pay
    timeout: 10s
    on_error: continue
    undo: {tool: x.refund, input: {item: "${item}", charge: "${steps.each.data.?charge.orValue('none')}"}}
  - id: after
    tool: x.after
  - fail: {message: "no"}
`

// lingering keeps calls of x.pay running until they are stopped; they succeed nevertheless.
func lingering(r *row) (jig.ToolResult, bool) {
	if r.tool != "x.pay" {
		return succeed(`{}`), true
	}
	r.status, r.begun = jig.CallExecuting, true
	return succeed(`{"charge":"late"}`), r.canceled
}

func TestUndo_OfAStepThatSucceededAfterItsTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, late, `{}`, lingering)
	w.heedless = true
	report := reportOf(t, w.run(t))
	require.ElementsMatch(t, []string{"each[0]", "each[1]"}, report.Undone)
	require.JSONEq(t, `{"item":2,"charge":"late"}`, string(w.rows["each[1].undo"].input))
	require.Equal(t, []string{"each[0]", "each[1]", "after", "each[1].undo", "each[0].undo"}, w.asked)
}

func TestUndo_ReportsATimedOutStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, late, `{}`, lingering)
	report := reportOf(t, w.run(t))
	require.Empty(t, report.Undone)
	require.Len(t, report.NotUndone, 2)
	require.Contains(t, report.NotUndone[0].Error.Message, "canceled while it ran")
}

// The outcome of a call in a block that has timed out becomes unknown. The block ends only when a person has settled the call.
func TestUndo_TimedOutBlockWaitsForThePerson(t *testing.T) {
	t.Parallel()
	const document = `kind: composition
name: test.block
steps:
  - id: block
    timeout: 10s
    parallel:
      - {id: pay, tool: x.pay, undo: {tool: x.refund, input: {charge: "${steps.pay.data.?charge.orValue('none')}"}}}
      - {id: look, tool: never.look}
      - {id: again, tool: x.again, retry: {max_attempts: 9, backoff: 1h, max_backoff: 1h}}
`
	w := newWorld(t, document, `{}`, func(r *row) (jig.ToolResult, bool) {
		switch {
		case r.tool == "x.again":
			return jig.Failure(jig.Errorf(jig.CodeUnavailable, "down")), true
		case r.tool == "x.pay" && r.canceled:
			return inDoubt(), true
		}
		r.status, r.begun = jig.CallExecuting, true
		return succeed(`{}`), r.tool == "x.refund"
	})
	w.heedless = true
	w.says(jig.OutcomeHappened)
	result := w.run(t)
	require.Equal(t, jig.CodeTimeout, result.Error.Code)
	require.Equal(t, []string{"pay", "look", "again", "pay.undo"}, w.asked, "no further step of the block runs")
}

func TestUndo_SaysWhatItsTemplatesMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `kind: composition
name: test.booking
steps:
  - {id: book, tool: x.book, undo: {tool: x.free, input: {file: "out/${steps.book.data.charge}.txt"}}}
  - fail: {message: "no"}
`, `{}`, func(*row) (jig.ToolResult, bool) { return succeed(`{"charge":"c1"}`), true })
	w.run(t)
	require.Equal(t, map[string][]string{"out/c1.txt": {"c1"}}, w.rows["book.undo"].rendered)
}
