package store_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
)

func TestMoveFrame_StoresAMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 2)
	require.Equal(t, "1.2", root.ID)
	run, ask, deny := w.step(f, "page"), asks(w.step(f, "publish")), w.step(f, "drop")
	deny.Verdict, deny.Status, deny.Reasons = jig.VerdictDeny, jig.CallDenied, []string{"not here"}
	m := w.moving(f, run, ask, deny)
	m.Events = []jig.Event{{Type: "custom.begun", CallID: f.CallID, Data: json.RawMessage(`{"n":1}`)}}
	before := len(w.types(t))
	f = w.move(t, m)
	require.Equal(t, int64(1), f.Revision)
	require.JSONEq(t, `{"at":1}`, string(f.State))
	require.False(t, f.Done)
	require.Nil(t, f.Result)
	require.Equal(t, []string{"custom.begun", "tool.needs_approval", "tool.denied"}, w.types(t)[before:])
	list := w.log(t)
	for _, e := range list[len(list)-3:] {
		require.Equal(t, 1, e.Pass)
	}
	require.Equal(t, "1.2/publish", list[len(list)-2].CallID)
	require.Equal(t, "1.2/publish", w.last(t, jig.EventToolNeedsApproval)["call"])

	require.Equal(t, jig.CallReserved, w.row(t, run).Status)
	require.Equal(t, 2, w.row(t, run).Ordinal, "the ordinal of the call that the composition answers")
	require.Equal(t, jig.CallWaiting, w.row(t, ask).Status)
	require.Equal(t, []string{"not here"}, w.row(t, deny).Reasons)
	p, err := w.Pending(t.Context(), w.tenant, w.session, ask.ID)
	require.NoError(t, err)
	require.Equal(t, "writes a", p.Summary)

	// The same move again, as after a lost answer.
	requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), m))
	require.Equal(t, f, w.frameOf(t, f.CallID))
	require.Len(t, w.log(t), len(list))

	m = w.moving(f)
	m.State = nil
	m.Done, m.Result = true, &jig.ToolResult{Success: true, Summary: "made", Data: json.RawMessage(`{"id":7}`)}
	f = w.move(t, m)
	require.True(t, f.Done)
	require.Equal(t, int64(2), f.Revision)
	require.Equal(t, m.Result, f.Result)
	require.Empty(t, f.ResultArtifact)
	require.Equal(t, jig.CallExecuting, w.row(t, root).Status, "Complete finalizes the call's own row")
	m.Revision = 2
	requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), m))
	require.Equal(t, f, w.frameOf(t, f.CallID))
}

func TestMoveFrame_StoresLargeResultsAsArtifacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	whole, err := json.Marshal(jig.ToolResult{Success: true, Data: json.RawMessage(`"` + big(700_000) + `"`)})
	require.NoError(t, err)
	m := w.moving(f)
	m.Done, m.Result, m.Whole = true, &jig.ToolResult{Success: true, Data: json.RawMessage(`"cut"`)}, whole
	m.Revision = 5
	requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), m))
	require.Empty(t, w.column(t, "select artifact_id from artifacts where session_id = $1", w.session), "nothing is left over")
	m.Revision = 0
	f = w.move(t, m)
	require.JSONEq(t, `"cut"`, string(f.Result.Data))
	kept, size, err := w.ReadArtifact(t.Context(), w.tenant, f.ResultArtifact, 0, 1<<20)
	require.NoError(t, err)
	require.Equal(t, int64(len(whole)), size)
	requireSame(t, string(whole), string(kept))
}

// Of several moves computed from the same revision, exactly one is stored, completely, and the others have no effect.
func TestMoveFrame_ConcurrentMovesStoreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	w.receive(t, "k", "tick", ``)
	before := len(w.types(t))
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		path := "step" + strconv.Itoa(i)
		m := w.moving(f, asks(w.step(f, path)))
		m.State = json.RawMessage(strconv.Itoa(i))
		m.Values = map[string]json.RawMessage{path: []byte(`1`)}
		m.Consumed = []int64{1}
		wg.Go(func() { errs[i] = w.MoveFrame(t.Context(), m) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, winner, "exactly one move is stored")
			winner = i
			continue
		}
		requireCode(t, jig.CodeConflict, err)
		require.ErrorContains(t, err, "revision 1")
	}
	require.NotEqual(t, -1, winner)
	f = w.frameOf(t, f.CallID)
	require.Equal(t, int64(1), f.Revision)
	require.Equal(t, strconv.Itoa(winner), string(f.State))
	require.Empty(t, f.Received)
	require.Equal(t, []string{"1.1/step" + strconv.Itoa(winner)}, w.open(t, f))
	require.Equal(t, []string{"step" + strconv.Itoa(winner)}, w.column(t, "select path from frame_values where session_id = $1", w.session))
	require.Equal(t, []string{"tool.needs_approval"}, w.types(t)[before:])
}

func TestMoveFrame_CancelsCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	other, _ := w.frame(t, 2)
	foreign := w.step(other, "page")
	w.move(t, w.moving(other, foreign))
	waiting, approved, reserved, executing, done := asks(w.step(f, "a")), asks(w.step(f, "b")), w.step(f, "c"), w.step(f, "d"), w.step(f, "e")
	f = w.move(t, w.moving(f, waiting, approved, reserved, executing, done))
	w.decide(t, "k", jig.Decision{Call: approved.ID, Answer: jig.AnswerApprove})
	w.reserve(t, executing)
	w.reserve(t, done)
	w.complete(t, done, 1, jig.CallSucceeded)
	before := len(w.types(t))

	m := w.moving(f, w.step(f, "a.undo"))
	m.Cancel = []string{executing.ID, done.ID, reserved.ID, approved.ID, waiting.ID, foreign.ID, "1.1/none", f.CallID}
	m.Events = []jig.Event{{Type: "custom.late"}}
	m.Revision = 0
	requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), m))
	require.Equal(t, jig.CallWaiting, w.row(t, waiting).Status, "nothing has changed")
	m.Revision = f.Revision
	w.move(t, m)
	require.Equal(t, []string{"tool.cancelled", "tool.cancelled", "tool.cancelled", "custom.late"}, w.types(t)[before:])
	for _, c := range []jig.Call{waiting, approved, reserved} {
		row := w.row(t, c)
		require.Equal(t, jig.CallCanceled, row.Status, c.ID)
		require.Equal(t, jig.CodeCanceled, row.Result.Error.Code)
		require.NotNil(t, row.FinishedAt)
	}
	require.Equal(t, jig.CallExecuting, w.row(t, executing).Status)
	require.Equal(t, jig.CallSucceeded, w.row(t, done).Status)
	require.Equal(t, jig.CallReserved, w.row(t, foreign).Status, "it belongs to another composition")
	require.Equal(t, []string{"canceled"}, w.approvals(t, waiting))
	require.Equal(t, []string{"canceled"}, w.approvals(t, approved))
	require.Equal(t, []string{executing.ID, "1.1/a.undo"}, w.open(t, f))
	require.Equal(t, ledger.ReserveFinal, w.reserve(t, reserved).Outcome)
	require.Equal(t, jig.DecisionRefused, w.decide(t, "late", jig.Decision{Call: waiting.ID, Answer: jig.AnswerApprove}).Outcome)
	require.Equal(t, jig.CallSucceeded, w.complete(t, executing, 1, jig.CallSucceeded).Status)
}

// A call that is canceled while an attempt begins is either canceled or runs.
func TestMoveFrame_RacesWithReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	for i := range 10 {
		step := w.step(f, "s"+strconv.Itoa(i))
		f = w.move(t, w.moving(f, step))
		m := w.moving(f)
		m.Cancel = []string{step.ID}
		var wg sync.WaitGroup
		var moved, reserveErr error
		var r ledger.Reservation
		wg.Go(func() { moved = w.MoveFrame(t.Context(), m) })
		wg.Go(func() { r, reserveErr = w.Reserve(t.Context(), w.request(step)) })
		wg.Wait()
		require.NoError(t, moved)
		require.NoError(t, reserveErr)
		want := map[ledger.ReserveOutcome]jig.CallStatus{ledger.ReserveRun: jig.CallExecuting, ledger.ReserveFinal: jig.CallCanceled}
		require.Contains(t, want, r.Outcome)
		require.Equal(t, want[r.Outcome], w.row(t, step).Status)
		f = w.frameOf(t, f.CallID)
	}
}

func TestMoveFrame_RefusesInvalidMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 1)
	for name, change := range map[string]func(*plan.FrameMove){
		"call":   func(m *plan.FrameMove) { m.CallID = "page" },
		"result": func(m *plan.FrameMove) { m.Done = true },
		"frame":  func(m *plan.FrameMove) { m.Calls = []jig.Call{w.call(7)} },
		"values": func(m *plan.FrameMove) { m.Values = map[string]json.RawMessage{"x": nil} },
	} {
		m := w.moving(f)
		change(&m)
		err := w.MoveFrame(t.Context(), m)
		requireCode(t, jig.CodeInvalidInput, err)
		require.Equal(t, name, jig.AsError(err).Field)
	}
	m := w.moving(f)
	m.CallID = "1.9"
	requireCode(t, jig.CodeNotFound, w.MoveFrame(t.Context(), m))
	step := w.step(f, "page")
	step.ID = "1.9/page"
	require.Error(t, w.MoveFrame(t.Context(), w.moving(f, step)), "a step's call is named after its composition")
	f = w.move(t, w.moving(f, w.step(f, "page")))
	requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), w.moving(f, w.step(f, "page"), w.step(f, "next"))))
	require.Equal(t, []string{root.ID + "/page"}, w.open(t, f))
	require.Equal(t, f, w.frameOf(t, f.CallID))
}

// After the session has ended, a composition may still end, but admits nothing.
func TestMoveFrame_OfAnEndedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	_, err := w.EndPass(t.Context(), w.end(1, jig.StatusCompleted))
	require.NoError(t, err)
	requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), w.moving(f, w.step(f, "page"))))
	require.Empty(t, w.open(t, f))
	m := w.moving(f)
	m.Done, m.Result = true, &jig.ToolResult{Summary: "gave up"}
	require.True(t, w.move(t, m).Done)
}
