package store_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func (w world) end(pass int, status jig.Status) ledger.End {
	return ledger.End{Tenant: w.tenant, SessionID: w.session, Pass: pass, Status: status}
}

func TestEndPass_RecordsTheFirstEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 {
		got, err := w.EndPass(t.Context(), w.end(1, jig.StatusWorking))
		require.NoError(t, err)
		require.Equal(t, w.end(1, jig.StatusWorking), got)
	}
	require.Equal(t, []string{"pass.completed"}, w.types(t))
	w.begin(t, 2)
	end := w.end(2, jig.StatusCompleted)
	end.Reason, end.Answer = jig.ReasonAnswered, "42"
	got, err := w.EndPass(t.Context(), end)
	require.NoError(t, err)
	require.Equal(t, end, got)
	other := w.end(2, jig.StatusFailed)
	other.Error = jig.Errorf(jig.CodeInternal, "no")
	got, err = w.EndPass(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, end, got, "the first end counts")
	require.Equal(t, []string{"pass.completed", "pass.started", "pass.completed", "session.completed"}, w.types(t))
	require.Equal(t, map[string]any{"reason": "answered", "answer": "42"}, w.last(t, jig.EventSessionCompleted))
	s, err := w.Session(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, jig.StatusCompleted, s.Status)
	require.Equal(t, "42", s.Answer)

	w.begin(t, 3) // a message continues it
	s, err = w.Session(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, jig.StatusWorking, s.Status)
	require.Empty(t, s.Answer)
	missing := w.end(1, jig.StatusWorking)
	missing.SessionID = "ses_none"
	_, err = w.EndPass(t.Context(), missing)
	requireCode(t, jig.CodeNotFound, err)
}

func TestEndPass_WithALargeAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := w.end(1, jig.StatusCompleted)
	end.Answer = big(700_000)
	errs, got := make([]error, 4), make([]ledger.End, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { got[i], errs[i] = w.EndPass(t.Context(), end) })
	}
	wg.Wait()
	for i := range errs {
		require.NoError(t, errs[i])
		requireSame(t, end.Answer, got[i].Answer)
	}
	require.Len(t, w.column(t, "select artifact_id from artifacts where session_id = $1", w.session), 1, "nothing is left over")
	view, err := w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Less(t, len(view.Answer), len(end.Answer))
	kept, size, err := w.ReadArtifact(t.Context(), w.tenant, view.AnswerArtifact, 0, 1<<20)
	require.NoError(t, err)
	requireSame(t, end.Answer, string(kept))
	require.Equal(t, int64(len(end.Answer)), size)
	require.Equal(t, true, w.last(t, jig.EventSessionCompleted)["truncated"])
}

func TestEndPass_OfACanceledSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
	before := w.types(t)
	for pass := 1; pass <= 2; pass++ {
		got, err := w.EndPass(t.Context(), w.end(pass, jig.StatusCompleted))
		require.NoError(t, err)
		require.Equal(t, jig.StatusCanceled, got.Status)
	}
	require.Equal(t, before, w.types(t))
}

// A caller that ends a session from outside may act on outdated information: a session that has changed since is not ended.
func TestCancelSession_LeavesASessionThatChangedSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen, err := w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	end := ledger.End{Tenant: w.tenant, SessionID: w.session, Status: jig.StatusFailed, Since: seen.UpdatedAt}
	require.NoError(t, w.AppendEvents(t.Context(), w.tenant, w.session, jig.Event{Type: "custom.x"}))
	require.NoError(t, w.CancelSession(t.Context(), end))
	now, err := w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, jig.StatusWorking, now.Status)

	end.Since = now.UpdatedAt
	require.NoError(t, w.CancelSession(t.Context(), end))
	now, err = w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, jig.StatusFailed, now.Status)
}

func TestCancelSession_CancelsWhatIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := make([]jig.Call, 9)
	for i := range calls {
		calls[i] = w.call(i + 1)
	}
	waiting, approved, reserved, executing, read, unknown, done, idempotent, doubtful := 0, 1, 2, 3, 4, 5, 6, 7, 8
	for _, i := range []int{waiting, approved} {
		calls[i].Verdict, calls[i].Status = jig.VerdictAsk, jig.CallWaiting
	}
	calls[read].Idempotent, calls[read].Write = true, false
	calls[idempotent].Idempotent, calls[doubtful].Idempotent = true, true
	w.admit(t, calls...)
	w.decide(t, "k", jig.Decision{Call: calls[approved].ID, Answer: jig.AnswerApprove})
	for _, i := range []int{executing, read, unknown, done, idempotent, doubtful} {
		w.reserve(t, calls[i])
	}
	_, err := w.Complete(t.Context(), ledger.Completion{
		Tenant: w.tenant, SessionID: w.session, CallID: calls[doubtful].ID, Fence: 1, Status: jig.CallReserved, InDoubt: true,
		Result: jig.Failure(jig.Errorf(jig.CodeTimeout, "no answer in 5s")),
	})
	require.NoError(t, err)
	w.reserve(t, calls[unknown])
	w.complete(t, calls[done], 1, jig.CallSucceeded)
	before := len(w.types(t))

	end := ledger.End{Tenant: w.tenant, SessionID: w.session, Reason: "asked to"}
	for range 2 {
		require.NoError(t, w.CancelSession(t.Context(), end))
	}
	require.Equal(t, []string{
		"tool.cancelled", "tool.cancelled", "tool.cancelled", "tool.outcome_unknown", "tool.cancelled", "tool.failed",
		"tool.outcome_unknown", "tool.outcome_unknown", "session.canceled",
	}, w.types(t)[before:])
	for i, want := range map[int]jig.CallStatus{
		waiting: jig.CallCanceled, approved: jig.CallCanceled, reserved: jig.CallCanceled, executing: jig.CallFailed,
		read: jig.CallCanceled, unknown: jig.CallFailed, done: jig.CallSucceeded, idempotent: jig.CallFailed, doubtful: jig.CallFailed,
	} {
		row := w.row(t, calls[i])
		require.Equal(t, want, row.Status, row.ID)
		if want == jig.CallFailed {
			require.Equal(t, jig.CodeOutcomeUnknown, row.Result.Error.Code)
		}
	}
	require.Equal(t, []string{"canceled"}, w.approvals(t, calls[waiting]))
	require.Equal(t, []string{"canceled"}, w.approvals(t, calls[approved]))
	require.Equal(t, []string{"canceled"}, w.approvals(t, calls[unknown]))
	require.Equal(t, jig.CallFailed, w.complete(t, calls[executing], 1, jig.CallSucceeded).Status, "too late")
	require.Equal(t, jig.DecisionRefused, w.decide(t, "late", jig.Decision{Call: calls[waiting].ID, Answer: jig.AnswerApprove}).Outcome)
	s, err := w.Session(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, jig.StatusCanceled, s.Status)
	require.Equal(t, "asked to", s.Reason)

	end.SessionID = "ses_none"
	requireCode(t, jig.CodeNotFound, w.CancelSession(t.Context(), end))
}

func TestCancelSession_AsFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	requireCode(t, jig.CodeInvalidInput, w.CancelSession(t.Context(), w.end(1, jig.StatusWorking)))
	end := w.end(1, jig.StatusFailed)
	end.Error = jig.Errorf(jig.CodeUnavailable, "the model is gone")
	require.NoError(t, w.CancelSession(t.Context(), end))
	require.NoError(t, w.CancelSession(t.Context(), w.end(1, jig.StatusCanceled)), "it has ended already")
	require.Equal(t, []string{"session.failed"}, w.types(t))
	s, err := w.Session(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, jig.StatusFailed, s.Status)
	require.Equal(t, "the model is gone", s.Error.Message)
	got, err := w.EndPass(t.Context(), w.end(1, jig.StatusCompleted))
	require.NoError(t, err)
	require.Equal(t, jig.StatusFailed, got.Status)
}

func TestSessionView_ShowsCallsAndApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, ask := w.call(1), w.call(2)
	ask.Verdict, ask.Status = jig.VerdictAsk, jig.CallWaiting
	w.admit(t, run, ask)
	view, err := w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, jig.StatusWorking, view.Status)
	require.Equal(t, "tester", view.Agent)
	require.Equal(t, map[jig.CallStatus]int{jig.CallReserved: 1, jig.CallWaiting: 1}, view.Counts)
	w.reserve(t, run)
	w.complete(t, run, 1, jig.CallFailed)
	view, err = w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, jig.StatusInputRequired, view.Status, "everything left to do waits for a person")
	require.Len(t, view.Pending, 1)
	require.Equal(t, []string{"1.1", "1.2"}, []string{view.Calls[0].Call, view.Calls[1].Call})
	require.Equal(t, jig.CallFailed, view.Calls[0].Status)
	_, err = w.SessionView(t.Context(), w.tenant, "ses_none")
	requireCode(t, jig.CodeNotFound, err)
}

func TestPendingApprovals_ArePaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls []jig.Call
	for i := 1; i <= 5; i++ {
		c := w.call(i)
		c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting
		calls = append(calls, c)
	}
	w.admit(t, calls...)
	var ids []string
	cursor := ""
	for {
		page, next, err := w.PendingApprovals(t.Context(), w.tenant, cursor, 2)
		require.NoError(t, err)
		for _, p := range page {
			ids = append(ids, p.Call)
		}
		if cursor = next; next == "" {
			break
		}
	}
	require.Equal(t, []string{"1.1", "1.2", "1.3", "1.4", "1.5"}, ids)
	_, _, err := w.PendingApprovals(t.Context(), w.tenant, "%", 2)
	requireCode(t, jig.CodeInvalidInput, err)
}
