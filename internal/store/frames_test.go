package store_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
)

// frame starts a composition for an executing call of pass 1 with the given ordinal, and returns it with the call.
func (w world) frame(t *testing.T, ordinal int) (plan.Frame, jig.Call) {
	t.Helper()
	root := w.call(ordinal)
	root.Tool, root.Idempotent = "page.make", true
	w.admit(t, root)
	f, err := w.BeginFrame(t.Context(), w.composition(root, w.reserve(t, root).Fence))
	require.NoError(t, err)
	return f, root
}

func (w world) composition(root jig.Call, fence int) plan.Frame {
	return plan.Frame{
		Tenant: w.tenant, SessionID: w.session, CallID: root.ID, Kind: "composition", Name: "page.make", Version: "c1", Fence: fence,
	}
}

// step returns a call of a composition that may run.
func (w world) step(f plan.Frame, path string) jig.Call {
	c := w.call(1)
	c.ID, c.Frame = f.CallID+"/"+path, f.CallID
	return c
}

func asks(c jig.Call) jig.Call {
	c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting
	return c
}

// moving returns a move of a composition that admits calls.
func (w world) moving(f plan.Frame, calls ...jig.Call) plan.FrameMove {
	m := plan.FrameMove{
		Tenant: w.tenant, SessionID: w.session, CallID: f.CallID, Revision: f.Revision, State: json.RawMessage(`{"at":1}`), Calls: calls,
	}
	for _, c := range calls {
		if c.Verdict == jig.VerdictAsk {
			m.Approvals = append(m.Approvals, pendingOf(c))
		}
	}
	return m
}

// move stores a move and returns the composition afterwards.
func (w world) move(t *testing.T, m plan.FrameMove) plan.Frame {
	t.Helper()
	require.NoError(t, w.MoveFrame(t.Context(), m))
	return w.frameOf(t, m.CallID)
}

func (w world) frameOf(t *testing.T, callID string) plan.Frame {
	t.Helper()
	f, err := w.Frame(t.Context(), w.tenant, w.session, callID)
	require.NoError(t, err)
	return f
}

// open lists the ids of a composition's open calls.
func (w world) open(t *testing.T, f plan.Frame) []string {
	t.Helper()
	win, err := w.FrameWindow(t.Context(), w.tenant, w.session, f.CallID)
	require.NoError(t, err)
	require.False(t, win.More)
	ids := []string{}
	for _, c := range win.Calls {
		require.Equal(t, f.CallID, c.Frame)
		ids = append(ids, c.ID)
	}
	return ids
}

func TestBeginFrame_KeepsTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 1)
	want := w.composition(root, 1)
	require.Equal(t, want, f)

	f = w.move(t, w.moving(f))
	again := want
	again.Version, again.State = "c2", json.RawMessage(`{"at":9}`)
	got, err := w.BeginFrame(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, f, got, "it is returned unchanged")
	require.JSONEq(t, `{"at":1}`, string(got.State))

	for _, fence := range []int{3, 2} {
		again.Fence = fence
		got, err = w.BeginFrame(t.Context(), again)
		require.NoError(t, err)
		f.Fence = 3
		require.Equal(t, f, got, "the latest attempt holds it")
	}

	_, err = w.Frame(t.Context(), w.tenant, w.session, "1.9")
	requireCode(t, jig.CodeNotFound, err)
}

func TestBeginFrame_ConcurrentCallsBeginOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.running(t, nil)
	w.reserve(t, root)
	errs, got := make([]error, 8), make([]plan.Frame, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { got[i], errs[i] = w.BeginFrame(t.Context(), w.composition(root, 1)) })
	}
	wg.Wait()
	for i := range errs {
		require.NoError(t, errs[i])
		require.Equal(t, w.composition(root, 1), got[i])
	}
}

func TestBeginFrame_NeedsAnOpenCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	missing := w.composition(c, 1)
	missing.CallID = "1.9"
	_, err := w.BeginFrame(t.Context(), missing)
	requireCode(t, jig.CodeNotFound, err)
	w.reserve(t, c)
	w.complete(t, c, 1, jig.CallFailed)
	_, err = w.BeginFrame(t.Context(), w.composition(c, 1))
	requireCode(t, jig.CodeConflict, err)
	_, err = w.Frame(t.Context(), w.tenant, w.session, c.ID)
	requireCode(t, jig.CodeNotFound, err)
}

func TestFrameWindow_ListsOpenCallsWithApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	require.Empty(t, w.open(t, f))
	steps := []jig.Call{w.step(f, "zoo"), asks(w.step(f, "all[10]")), w.step(f, "all[9]/inner")}
	f = w.move(t, w.moving(f, steps...))
	w.move(t, w.moving(f, w.step(f, "all[1]"), w.step(f, "page~2")))
	require.Equal(t, []string{"1.1/zoo", "1.1/all[10]", "1.1/all[9]/inner", "1.1/all[1]", "1.1/page~2"}, w.open(t, f), "in the order of admission")
	win, err := w.FrameWindow(t.Context(), w.tenant, w.session, f.CallID)
	require.NoError(t, err)
	require.Len(t, win.Approvals, 1)
	require.Equal(t, "writes a", win.Approvals["1.1/all[10]"].Summary)

	w.reserve(t, steps[0])
	w.complete(t, steps[0], 1, jig.CallSucceeded)
	w.reserve(t, steps[2])
	require.Equal(t, []string{"1.1/all[10]", "1.1/all[9]/inner", "1.1/all[1]", "1.1/page~2"}, w.open(t, f))
	w.requireWrites(t, 1)
}

func TestFrameWindow_HasAllOpenCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	steps, want := make([]jig.Call, 300), make([]string, 300)
	for i := range steps {
		steps[i] = w.step(f, fmt.Sprintf("all[%d]", i))
		if i%2 == 0 {
			steps[i] = asks(steps[i])
		}
		want[i] = steps[i].ID
	}
	w.move(t, w.moving(f, steps...))
	require.Equal(t, want, w.open(t, f))
	win, err := w.FrameWindow(t.Context(), w.tenant, w.session, f.CallID)
	require.NoError(t, err)
	require.Len(t, win.Approvals, 150)
}

func TestFrameValues_AreFoundByPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	other, _ := w.frame(t, 2)
	large := `"` + big(700_000) + `"`
	m := w.moving(f)
	m.Values = map[string]json.RawMessage{"total": []byte(`1`), "list": []byte(large), "gone": []byte(large)}
	f = w.move(t, m)
	m = w.moving(f)
	m.Values = map[string]json.RawMessage{"total": []byte(`2`), "gone": []byte(`null`)}
	w.move(t, m)

	got, err := w.FrameValues(t.Context(), w.tenant, w.session, f.CallID, []string{"total", "list", "gone", "never"})
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.JSONEq(t, `2`, string(got["total"]))
	require.JSONEq(t, `null`, string(got["gone"]))
	requireSame(t, large, string(got["list"]))
	require.Equal(t, []string{"list"}, w.column(t, "select path from frame_values where session_id = $1 and artifact is not null", w.session))
	for name, paths := range map[string][]string{other.CallID: {"total"}, f.CallID: {}} {
		got, err = w.FrameValues(t.Context(), w.tenant, w.session, name, paths)
		require.NoError(t, err)
		require.Empty(t, got)
	}

	m.Revision, m.Values = 2, map[string]json.RawMessage{"odd": []byte(`{`)}
	requireCode(t, jig.CodeInvalidInput, w.MoveFrame(t.Context(), m))
}

// Calls made by compositions do not appear in their pass.
func TestPasses_IgnoreCallsOfCompositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 1)
	run, ask := w.step(f, "run"), asks(w.step(f, "ask"))
	run.Signature = "s1"
	f = w.move(t, w.moving(f, run, ask))

	win, err := w.Window(t.Context(), w.tenant, w.session, 1, 10)
	require.NoError(t, err)
	require.Len(t, win.Calls, 1)
	require.Equal(t, root.ID, win.Calls[0].ID)
	require.Empty(t, win.Calls[0].Frame)
	require.Empty(t, win.Approvals)
	require.False(t, win.More)
	state, err := w.PassState(t.Context(), w.tenant, w.session, 1)
	require.NoError(t, err)
	require.Equal(t, map[jig.CallStatus]int{jig.CallExecuting: 1}, state.Counts)
	begun, err := w.BeginPass(t.Context(), w.tenant, w.session, 1)
	require.NoError(t, err)
	n := 0
	for _, x := range begun.Exchanges {
		n += len(x.Calls)
	}
	require.Equal(t, 1, n)
	found, err := w.EqualCalls(t.Context(), w.tenant, w.session, 2, []string{"s1"})
	require.NoError(t, err)
	require.Empty(t, found)

	got := w.row(t, run)
	require.Equal(t, f.CallID, got.Frame)
	require.Equal(t, []int{1, 1}, []int{got.Pass, got.Ordinal})
	_, some, err := w.CallsOf(t.Context(), w.tenant, w.session, []string{ask.ID, run.ID, root.ID})
	require.NoError(t, err)
	require.Equal(t, []string{root.ID, run.ID, ask.ID}, []string{some[0].ID, some[1].ID, some[2].ID})
}

// Operations on a whole session include the calls made by its compositions.
func TestSessions_IncludeCallsOfCompositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 1)
	w.admit(t, w.call(2))
	f = w.move(t, w.moving(f, w.step(f, "z"), asks(w.step(f, "ask"))))
	inner := w.step(f, "z")
	view := func() jig.SessionView {
		v, err := w.SessionView(t.Context(), w.tenant, w.session)
		require.NoError(t, err)
		return v
	}
	v := view()
	ids := []string{}
	for _, c := range v.Calls {
		ids = append(ids, c.Call)
	}
	require.Equal(t, []string{"1.1", "1.1/z", "1.1/ask", "1.2"}, ids)
	require.Equal(t, map[jig.CallStatus]int{jig.CallExecuting: 1, jig.CallReserved: 2, jig.CallWaiting: 1}, v.Counts)
	require.Len(t, v.Pending, 1)
	require.Equal(t, "1.1/ask", v.Pending[0].Call)
	require.Equal(t, jig.StatusWorking, v.Status)
	waiting, _, err := w.PendingApprovals(t.Context(), w.tenant, "", 0)
	require.NoError(t, err)
	require.Len(t, waiting, 1)

	w.reserve(t, w.call(2))
	w.complete(t, w.call(2), 1, jig.CallSucceeded)
	require.Equal(t, jig.StatusWorking, view().Status, "a call of the composition may run")
	nested, err := w.BeginFrame(t.Context(), w.composition(inner, w.reserve(t, inner).Fence))
	require.NoError(t, err)
	require.Equal(t, jig.StatusWorking, view().Status, "a composition without open calls is working")
	deep := asks(w.step(nested, "deep"))
	w.move(t, w.moving(nested, deep))
	require.Equal(t, jig.StatusInputRequired, view().Status, "everything left to do waits for a person")

	w.decide(t, "k", jig.Decision{Call: deep.ID, Answer: jig.AnswerApprove, By: "ben"})
	require.Equal(t, jig.StatusWorking, view().Status)
	require.Equal(t, ledger.ReserveRun, w.reserve(t, deep).Outcome)
	require.Equal(t, jig.CallSucceeded, w.complete(t, deep, 1, jig.CallSucceeded).Status)
	w.requireWrites(t, 2)
	require.Equal(t, []string{root.ID + "/z", root.ID + "/ask"}, w.open(t, f))
	require.Empty(t, w.open(t, nested))
}

func TestReconcile_OfACallOfAComposition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	step := w.step(f, "pay")
	w.move(t, w.moving(f, step))
	w.reserve(t, step)
	require.Equal(t, ledger.ReserveUnknown, w.reserve(t, step).Outcome)
	win, err := w.FrameWindow(t.Context(), w.tenant, w.session, f.CallID)
	require.NoError(t, err)
	require.Equal(t, jig.PendingReconcile, win.Approvals[step.ID].Kind)
	ruled, err := w.Reconcile(t.Context(), approval.ReconcileRequest{
		Tenant: w.tenant, SessionID: w.session, Key: "k", Reconciliation: jig.Reconciliation{Call: step.ID, Outcome: jig.OutcomeHappened},
	})
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, ruled.Status)
	w.requireWrites(t, 1)
	require.Empty(t, w.open(t, f))
}

func TestCancelSession_EndsCompositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 1)
	finished, _ := w.frame(t, 2)
	result := jig.ToolResult{Success: true, Summary: "made"}
	m := w.moving(finished)
	m.Done, m.Result = true, &result
	finished = w.move(t, m)
	w.receive(t, "k", "paid", ``)
	run, ask := w.step(f, "run"), asks(w.step(f, "ask"))
	m = w.moving(f, run, ask)
	m.Values, m.Consumed = map[string]json.RawMessage{"page": []byte(`"` + big(50_000) + `"`)}, []int64{1}
	f = w.move(t, m)

	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session, Reason: "asked to"}))
	for _, c := range []jig.Call{root, run, ask} {
		require.Equal(t, jig.CallCanceled, w.row(t, c).Status, c.ID)
	}
	require.Equal(t, []string{"canceled"}, w.approvals(t, ask))
	require.Empty(t, w.open(t, f))
	ended := w.frameOf(t, f.CallID)
	require.True(t, ended.Done)
	require.Equal(t, jig.CodeCanceled, ended.Result.Error.Code)
	require.Contains(t, ended.Result.Summary, "asked to")
	require.Equal(t, finished, w.frameOf(t, finished.CallID), "a composition that has ended does not change")

	for _, move := range []plan.FrameMove{w.moving(f, w.step(f, "late")), w.moving(ended)} {
		requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), move))
	}
	_, err := w.BeginFrame(t.Context(), w.composition(root, 7))
	require.NoError(t, err)
	require.Equal(t, ended, w.frameOf(t, f.CallID), "a composition that has ended cannot be taken over")

	gone, err := w.PruneTenant(t.Context(), w.tenant, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, int64(1), gone)
	for _, table := range []string{"frames", "frame_values", "received", "received_consumed", "artifacts"} {
		require.Empty(t, w.column(t, "select session_id from "+table), table)
	}
}

// When moves race with the end of the session, no call stays open.
func TestCancelSession_RacesWithMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	frames := make([]plan.Frame, 8)
	for i := range frames {
		frames[i], _ = w.frame(t, i+1)
	}
	errs := make([]error, len(frames)+1)
	var wg sync.WaitGroup
	for i, f := range frames {
		wg.Go(func() { errs[i] = w.MoveFrame(t.Context(), w.moving(f, w.step(f, "a"), asks(w.step(f, "b")))) })
	}
	wg.Go(func() {
		errs[len(frames)] = w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session})
	})
	wg.Wait()
	require.NoError(t, errs[len(frames)])
	for i, f := range frames {
		if errs[i] != nil {
			requireCode(t, jig.CodeConflict, errs[i])
		}
		require.Empty(t, w.open(t, f))
		require.True(t, w.frameOf(t, f.CallID).Done)
	}
	require.Empty(t, w.column(t, "select id::text from approvals where session_id = $1 and status = 'open'", w.session))
	types := w.types(t)
	require.Equal(t, "session.canceled", types[len(types)-1])
}
