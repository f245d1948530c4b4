package undoing_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/undoing"
)

// run is a run that keeps what its moves say. outcomes holds how the calls end, by their input; the others succeed.
type run struct {
	t        *testing.T
	items    []undoing.Item
	outcomes map[string]jig.ToolResult
	state    json.RawMessage
	values   map[string]json.RawMessage
	calls    map[string]plan.StepCall
	asked    []string
	events   []string
	canceled bool
}

func (r *run) Calls(_ context.Context, paths []string) (map[string]plan.StepCall, error) {
	found := map[string]plan.StepCall{}
	for _, path := range paths {
		if call, ok := r.calls[path]; ok {
			found[path] = call
		}
	}
	return found, nil
}

func (r *run) Values(_ context.Context, paths []string) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	for _, path := range paths {
		if raw, ok := r.values[path]; ok {
			found[path] = raw
		}
	}
	return found, nil
}

// move makes the next move.
func (r *run) move() plan.Move {
	r.t.Helper()
	found := 0
	move, err := undoing.Advance(r.t.Context(), r.state, r, plan.Situation{Canceled: r.canceled}, func(context.Context) ([]undoing.Item, error) {
		found++
		return r.items, nil
	})
	require.NoError(r.t, err)
	require.Equal(r.t, len(r.state) == 0, found == 1, "the calls are looked for once")
	r.state = move.State
	for path, raw := range move.Values {
		r.values[path] = raw
	}
	for _, ask := range move.Calls {
		r.asked = append(r.asked, ask.Path+" "+ask.Tool+" "+string(ask.Input)+" for "+ask.Reverts.String())
		r.calls[ask.Path] = plan.StepCall{Status: jig.CallExecuting}
	}
	for _, e := range move.Events {
		r.events = append(r.events, string(e.Type)+" "+e.CallID)
	}
	return move
}

// end makes moves until the run ends. Each call ends before the next move.
func (r *run) end() jig.ToolResult {
	r.t.Helper()
	for {
		move := r.move()
		if move.Done {
			return move.Result
		}
		require.Len(r.t, move.Calls, 1, "one call at a time")
		path, result := move.Calls[0].Path, jig.ToolResult{Success: true}
		if failed, ok := r.outcomes[path]; ok {
			result = failed
		}
		waiting := r.move()
		require.Equal(r.t, []string{path}, waiting.Open)
		r.calls[path] = plan.StepCall{Status: jig.CallSucceeded, Result: &result}
	}
}

func newRun(t *testing.T, items ...undoing.Item) *run {
	t.Helper()
	return &run{t: t, items: items, values: map[string]json.RawMessage{}, calls: map[string]plan.StepCall{}, outcomes: map[string]jig.ToolResult{}}
}

func item(call, by string) undoing.Item {
	return undoing.Item{
		Of: ledger.CallName{SessionID: "ses_1", Call: call}, Tool: "shop.charge", Path: call + ".undo", By: by, Input: json.RawMessage(`{"id":"` + call + `"}`),
	}
}

func TestAdvance_UndoesOneCallAfterAnother(t *testing.T) {
	t.Parallel()
	before, without := item("1.3", ""), item("1.2", "")
	before.Before = &ledger.CallName{SessionID: "ses_0", Call: "1.1/1.3.undo"}
	without.Error = jig.Errorf(jig.CodeToolNotFound, "shop.charge declares no undo")
	r := newRun(t, item("2.1", "shop.refund"), before, without, item("1.1", "shop.refund"))
	r.outcomes["2.1.undo"] = jig.Failure(jig.Errorf(jig.CodeDenied, "not now"))
	result := r.end()
	require.Equal(t, []string{
		`2.1.undo shop.refund {"id":"2.1"} for ses_1/2.1`, `1.1.undo shop.refund {"id":"1.1"} for ses_1/1.1`,
	}, r.asked, "a call that cannot be undone does not keep the others from it")
	require.Equal(t, []string{"tool.undone 1.1.undo"}, r.events)
	require.False(t, result.Success, "not everything is undone")
	require.Equal(t, []string{undoing.ReasonNotUndone, "1 of 3 calls undone"}, []string{result.Error.Reason, result.Summary})
	for _, line := range []string{"not undone: 2.1 shop.charge: not now", "not undone: 1.2 shop.charge: shop.charge declares no undo", "undone: 1.1 shop.charge"} {
		require.Contains(t, result.Error.Message, line)
	}
	var report undoing.Report
	require.NoError(t, json.Unmarshal(result.Data, &report))
	require.Equal(t, []undoing.Line{{SessionID: "ses_1", Call: "1.1", Tool: "shop.charge", By: "1.1.undo"}}, report.Undone)
	require.Equal(t, []undoing.Line{{SessionID: "ses_1", Call: "1.3", Tool: "shop.charge", By: "ses_0/1.1/1.3.undo"}}, report.Before)
	require.Len(t, report.NotUndone, 2)
	require.Equal(t, jig.CodeDenied, report.NotUndone[0].Error.Code)
}

func TestAdvance_SucceedsIfEverythingIsUndone(t *testing.T) {
	t.Parallel()
	result := newRun(t, item("1.1", "shop.refund")).end()
	require.True(t, result.Success)
	require.Equal(t, "1 of 1 calls undone", result.Summary)
	require.Contains(t, result.Markdown, "undone: 1.1")
	result = newRun(t).end()
	require.True(t, result.Success)
	require.Equal(t, "there is nothing to undo", result.Summary)
	before := item("1.1", "")
	before.Before = &ledger.CallName{SessionID: "ses_0", Call: "1.1/1.1.undo"}
	result = newRun(t, before).end()
	require.True(t, result.Success)
	require.Equal(t, "everything was undone before", result.Summary)
}

func TestAdvance_StopsWhenCanceled(t *testing.T) {
	t.Parallel()
	r := newRun(t, item("2.1", "shop.refund"), item("1.1", "shop.refund"))
	require.Len(t, r.move().Calls, 1)
	r.canceled = true
	move := r.move()
	require.Equal(t, []string{"2.1.undo"}, move.Stop, "its outcome still matters")
	r.calls["2.1.undo"] = plan.StepCall{Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}}
	move = r.move()
	require.True(t, move.Done)
	require.Empty(t, move.Calls)
	require.Equal(t, jig.CodeCanceled, move.Result.Error.Code)
	require.Equal(t, 1, strings.Count(move.Result.Error.Message, "not undone:"))
}
