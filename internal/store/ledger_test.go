package store_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func TestAdmit_StoresCallsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, ask, deny, duplicate := w.call(1), w.call(2), w.call(3), w.call(4)
	ask.Verdict, ask.Status = jig.VerdictAsk, jig.CallWaiting
	deny.Verdict, deny.Status, deny.Reasons = jig.VerdictDeny, jig.CallDenied, []string{"not here"}
	failure := jig.Failure(jig.Errorf(jig.CodeDenied, "policy says no"))
	deny.Result = &failure
	duplicate.Verdict, duplicate.Status, duplicate.DuplicateOf = jig.VerdictRefuse, jig.CallDuplicate, run.ID
	w.admit(t, run, ask, deny, duplicate)
	want := []string{"tool.needs_approval", "tool.denied", "tool.skipped_duplicate"}
	require.Equal(t, want, w.types(t))

	require.Equal(t, jig.CallReserved, w.row(t, run).Status)
	require.Equal(t, jig.CallWaiting, w.row(t, ask).Status)
	row := w.row(t, deny)
	require.Equal(t, jig.CallDenied, row.Status)
	require.Equal(t, []string{"not here"}, row.Reasons)
	require.Equal(t, "policy says no", row.Result.Error.Message)
	require.NotNil(t, row.FinishedAt)
	require.Equal(t, run.ID, w.row(t, duplicate).DuplicateOf)
	require.Equal(t, jig.CodeDuplicate, w.row(t, duplicate).Result.Error.Code)

	run.Input = []byte(`{"path":"b"}`)
	w.admit(t, run, ask, deny, duplicate)
	require.Equal(t, want, w.types(t), "a second admission changes nothing")
	require.JSONEq(t, `{"path":"a"}`, string(w.row(t, run).Input))
}

func TestAdmit_ConcurrentAdmissionsStoreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := w.call(2)
	ask.Verdict, ask.Status = jig.VerdictAsk, jig.CallWaiting
	a := ledger.Admission{
		Tenant: w.tenant, SessionID: w.session, Pass: 1, Calls: []jig.Call{w.call(1), ask}, Approvals: []jig.Pending{pendingOf(ask)},
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = w.Admit(t.Context(), a) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"tool.needs_approval"}, w.types(t))
}

func TestAdmit_NeedsALiveSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := ledger.Admission{Tenant: w.tenant, SessionID: "ses_none", Pass: 1, Calls: []jig.Call{w.call(1)}}
	requireCode(t, jig.CodeNotFound, w.Admit(t.Context(), a))
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
	a.SessionID = w.session
	requireCode(t, jig.CodeConflict, w.Admit(t.Context(), a))
	_, err := w.Call(t.Context(), w.tenant, w.session, "1.1")
	requireCode(t, jig.CodeNotFound, err)
}

func TestEqualCalls_OfOtherPasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.call(1), w.call(2)
	first.Signature, second.Signature = "s1", "s1"
	second.Verdict, second.Status, second.DuplicateOf = jig.VerdictRefuse, jig.CallDuplicate, first.ID
	w.admit(t, first, second)
	found, err := w.EqualCalls(t.Context(), w.tenant, w.session, 2, []string{"s1", "s2", ""})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "1.1", found[0].Call.ID)
	require.Equal(t, first.Status, found[0].Call.Status)
	found, err = w.EqualCalls(t.Context(), w.tenant, w.session, 1, []string{"s1"})
	require.NoError(t, err)
	require.Empty(t, found, "the pass itself does not count")
}

func TestWindow_ListsOpenCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls []jig.Call
	for i := 1; i <= 8; i++ {
		c := w.call(i)
		if i == 6 || i == 8 {
			c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting
		}
		calls = append(calls, c)
	}
	w.admit(t, calls...)
	ids := func(limit int) ([]string, ledger.Window) {
		win, err := w.Window(t.Context(), w.tenant, w.session, 1, limit)
		require.NoError(t, err)
		list := []string{}
		for _, c := range win.Calls {
			list = append(list, c.ID)
		}
		return list, win
	}
	list, win := ids(3)
	require.Equal(t, []string{"1.1", "1.2", "1.3", "1.6", "1.8"}, list)
	require.True(t, win.More)
	require.Len(t, win.Approvals, 2)
	require.Equal(t, "writes a", win.Approvals["1.8"].Summary)

	w.reserve(t, calls[0])
	w.complete(t, calls[0], 1, jig.CallSucceeded)
	list, win = ids(5)
	require.Equal(t, []string{"1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8"}, list)
	require.False(t, win.More)
	list, win = ids(0)
	require.Equal(t, []string{"1.6", "1.8"}, list)
	require.True(t, win.More)
}

func TestWindow_LimitsWaitingCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := make([]jig.Call, 120)
	for i := range calls {
		calls[i] = w.call(i + 1)
		calls[i].Verdict, calls[i].Status = jig.VerdictAsk, jig.CallWaiting
	}
	w.admit(t, calls...)
	win, err := w.Window(t.Context(), w.tenant, w.session, 1, 5)
	require.NoError(t, err)
	require.Len(t, win.Calls, 100)
	require.Len(t, win.Approvals, 100)
	require.Equal(t, "1.100", win.Calls[99].ID)
	require.True(t, win.More)
}

func TestComplete_StoresLargeResultsAsArtifacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	fence := w.reserve(t, c).Fence
	whole, err := json.Marshal(jig.ToolResult{Success: true, Summary: "done", Data: json.RawMessage(`"` + big(700_000) + `"`)})
	require.NoError(t, err)
	completion := ledger.Completion{
		Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: fence, Status: jig.CallSucceeded,
		Result: jig.ToolResult{Success: true, Summary: "done", Data: json.RawMessage(`"cut"`)}, Whole: whole,
	}
	done, err := w.Complete(t.Context(), completion)
	require.NoError(t, err)
	require.NotEmpty(t, done.ResultArtifact)
	require.JSONEq(t, `"cut"`, string(done.Result.Data))
	kept, size, err := w.ReadArtifact(t.Context(), w.tenant, done.ResultArtifact, 0, 1<<20)
	require.NoError(t, err)
	require.Equal(t, int64(len(whole)), size)
	requireSame(t, string(whole), string(kept))
	require.Equal(t, done.ResultArtifact, w.last(t, jig.EventToolCompleted)["result_artifact"])

	again, err := w.Complete(t.Context(), completion)
	require.NoError(t, err)
	require.Equal(t, done.ResultArtifact, again.ResultArtifact, "once")
	require.Equal(t, []string{"tool.started", "tool.completed"}, w.types(t))
	w.requireWrites(t, 1)
}

func TestWrites_CountSuccessfulCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := []jig.Call{w.call(1), w.call(2), w.call(3)}
	calls[2].Write = false
	w.admit(t, calls...)
	for i, status := range []jig.CallStatus{jig.CallSucceeded, jig.CallFailed, jig.CallSucceeded} {
		w.reserve(t, calls[i])
		w.complete(t, calls[i], 1, status)
		w.complete(t, calls[i], 1, status)
	}
	w.requireWrites(t, 1)
}

func (w world) requireWrites(t *testing.T, n int) {
	t.Helper()
	s, err := w.Session(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, n, s.Writes)
}

func TestComplete_RefusesInvalidStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	w.reserve(t, c)
	for _, status := range []jig.CallStatus{"", "odd", jig.CallWaiting, jig.CallExecuting, jig.CallDenied, jig.CallExpired, jig.CallDuplicate} {
		_, err := w.Complete(t.Context(), ledger.Completion{Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: 1, Status: status})
		requireCode(t, jig.CodeInvalidInput, err)
	}
	for _, status := range []jig.CallStatus{jig.CallSucceeded, jig.CallReserved} {
		_, err := w.Complete(t.Context(), ledger.Completion{Tenant: w.tenant, SessionID: w.session, CallID: "9.9", Fence: 1, Status: status})
		requireCode(t, jig.CodeNotFound, err)
	}
	require.Equal(t, jig.CallExecuting, w.row(t, c).Status)
}

func TestReadmit_ReplacesTheAdmission(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]jig.CallStatus{"open": jig.CallWaiting, "approved": jig.CallReserved} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.asking(t)
			if start == jig.CallReserved {
				w.decide(t, "k1", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
			}
			c.Version, c.Digest = "v2", "d2"
			p := pendingOf(c)
			for range 2 {
				got, err := w.Readmit(t.Context(), w.row(t, c), c, &p)
				require.NoError(t, err)
				require.Equal(t, jig.CallWaiting, got.Status)
				require.Equal(t, "d2", got.Digest)
			}
			types := w.types(t)
			require.Equal(t, []string{"approval.withdrawn", "tool.needs_approval"}, types[len(types)-2:], fmt.Sprint(types))
			require.Equal(t, ledger.ReserveWaiting, w.reserve(t, c).Outcome, "the old approval is void")
			open, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
			require.NoError(t, err)
			require.Equal(t, "d2", open.Digest)
			w.decide(t, "k2", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
			require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome)

			c.Version = "v3"
			got, err := w.Readmit(t.Context(), w.row(t, c), c, &p)
			require.NoError(t, err)
			require.Equal(t, "v2", got.Version, "a call that has begun is not readmitted")
		})
	}
}
