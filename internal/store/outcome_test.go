package store_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// ends completes an attempt of a call. The result is a success unless change changes it.
func (w world) ends(t *testing.T, c jig.Call, fence int, change func(*ledger.Completion)) ledger.Completed {
	t.Helper()
	completion := ledger.Completion{
		Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: fence, Digest: c.Digest, Status: jig.CallSucceeded,
		Result: jig.ToolResult{Success: true, Summary: "done", Data: json.RawMessage(`{"n":1}`)},
	}
	if change != nil {
		change(&completion)
	}
	done, err := w.Complete(t.Context(), completion)
	require.NoError(t, err)
	return done
}

// failing turns a completion into a failure.
func failing(status jig.CallStatus, doubt bool) func(*ledger.Completion) {
	return func(c *ledger.Completion) {
		c.Status, c.InDoubt, c.Result = status, doubt, jig.Failure(jig.Errorf(jig.CodeUnavailable, "the line is dead"))
	}
}

func TestCall_KeepsThatAFailureHadNoEffect(t *testing.T) {
	t.Parallel()
	for _, notExecuted := range []bool{true, false} {
		w := newWorld(t)
		c := w.running(t, nil)
		r := w.reserve(t, c)
		failure := &jig.Error{Code: jig.CodeUnavailable, Message: "could not connect", NotExecuted: notExecuted}
		_, err := w.Complete(t.Context(), ledger.Completion{
			Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: r.Fence, Status: jig.CallFailed, Result: jig.Failure(failure),
		})
		require.NoError(t, err)
		require.Equal(t, notExecuted, w.row(t, c).Result.Error.NotExecuted)
	}
}

func TestCall_RefusedBeforeItsFirstAttemptHadNoEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, func(c *jig.Call) {
		refused := jig.Failure(jig.Errorf(jig.CodeInternal, "refused"))
		c.Verdict, c.Status, c.Result = jig.VerdictRefuse, jig.CallFailed, &refused
	})
	require.True(t, w.row(t, c).Result.Error.NotExecuted)
}

func TestLateCompletion_SettlesAnUnknownCall(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change  func(*ledger.Completion)
		status  jig.CallStatus
		outcome string
		event   jig.EventType
		writes  int
	}{
		"success":                       {nil, jig.CallSucceeded, "happened", jig.EventToolCompleted, 1},
		"large success":                 {func(c *ledger.Completion) { c.Whole = []byte(`{"success":true}`) }, jig.CallSucceeded, "happened", jig.EventToolCompleted, 1},
		"failure without effect":        {failing(jig.CallFailed, false), jig.CallFailed, "not_happened", jig.EventToolFailed, 0},
		"cancellation without effect":   {failing(jig.CallCanceled, false), jig.CallCanceled, "not_happened", jig.EventToolCancelled, 0},
		"nothing happened, to be tried": {failing(jig.CallReserved, false), jig.CallFailed, "not_happened", jig.EventToolFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.doubtful(t)
			done := w.ends(t, c, 1, row.change)
			require.True(t, done.Late)
			require.Equal(t, row.status, done.Status)
			require.Equal(t, row.status, w.row(t, c).Status)
			require.Equal(t, name == "large success", w.row(t, c).ResultArtifact != "", "a small result is in its row")
			require.Equal(t, append(slices.Clone(doubt), "tool.reconciled", string(row.event)), w.types(t))
			require.Equal(t, map[string]any{
				"outcome": row.outcome, "reason": "the attempt reported late how it ended", "attempt": float64(1),
			}, w.last(t, jig.EventToolReconciled))
			w.requireWrites(t, row.writes)

			_, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
			requireCode(t, jig.CodeNotFound, err)
			require.Equal(t, []string{"consumed", "canceled"}, w.approvals(t, c), "the approval was used, the question is withdrawn")
			refused := w.reconcile(t, "k", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened})
			require.Equal(t, jig.DecisionRefused, refused.Outcome)

			rows, _, err := w.FindAudit(t.Context(), w.tenant, protocol.AuditFilter{SessionID: w.session}, 0, 10)
			require.NoError(t, err)
			var withdrawn audit.Entry
			require.NoError(t, json.Unmarshal([]byte(rows[len(rows)-2].Entry), &withdrawn), "the last one is the refusal")
			require.Equal(t, audit.AuditWithdrawn, withdrawn.Kind)
			require.Equal(t, row.status, withdrawn.Status)
			require.Empty(t, withdrawn.By)
			require.Contains(t, w.column(t, "select kind || ' ' || coalesce(convert_from(body, 'UTF8')::json ->> 'reason', '') from notices where session_id = $1", w.session),
				"approval.decided "+row.outcome)

			require.False(t, w.ends(t, c, 1, row.change).Late, "once")
		})
	}
}

func TestLateCompletion_ThatKnowsNothingLeavesTheQuestion(t *testing.T) {
	t.Parallel()
	for name, complete := range map[string]func(world, *testing.T, jig.Call) ledger.Completed{
		"an unknown outcome": func(w world, t *testing.T, c jig.Call) ledger.Completed { //nolint:thelper // a case of a test table, not a helper
			t.Helper()
			return w.ends(t, c, 1, failing(jig.CallUnknown, false))
		},
		"an earlier doubt": func(w world, t *testing.T, c jig.Call) ledger.Completed { //nolint:thelper // a case of a test table, not a helper
			t.Helper()
			return w.ends(t, c, 1, failing(jig.CallReserved, true))
		},
		"an old fence": func(w world, t *testing.T, c jig.Call) ledger.Completed { t.Helper(); return w.ends(t, c, 0, nil) }, //nolint:thelper // a case of a test table, not a helper
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.doubtful(t)
			done := complete(w, t, c)
			require.False(t, done.Late)
			require.Equal(t, jig.CallUnknown, done.Status)
			require.Equal(t, doubt, w.types(t))
			_, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
			require.NoError(t, err)
		})
	}
}

func TestLateSuccess_CountsUntilTheCallBeginsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.doubtful(t)
	w.reconcile(t, "k", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened})
	require.Equal(t, jig.CallReserved, w.ends(t, c, 1, failing(jig.CallFailed, false)).Status, "it runs again, as a person decided")
	other := c
	other.Digest = "d2"
	require.Equal(t, jig.CallReserved, w.ends(t, other, 1, nil).Status, "the input that succeeded is not the one that would run")
	require.Equal(t, jig.CallSucceeded, w.ends(t, c, 1, nil).Status)
	require.Equal(t, ledger.ReserveFinal, w.reserve(t, c).Outcome)
	w.requireWrites(t, 1)
}

func TestDoubt_StaysUntilAPersonSaysOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, func(c *jig.Call) { c.Idempotent = true })
	require.False(t, w.reserve(t, c).InDoubt)
	w.ends(t, c, 1, failing(jig.CallReserved, false))
	require.False(t, w.reserve(t, c).InDoubt, "the first attempt had no effect")
	w.ends(t, c, 2, failing(jig.CallReserved, true))
	require.True(t, w.reserve(t, c).InDoubt)
	w.ends(t, c, 3, failing(jig.CallReserved, false))
	require.True(t, w.reserve(t, c).InDoubt, "the third attempt says nothing about the second")
	w.ends(t, c, 4, failing(jig.CallUnknown, true))
	w.reconcile(t, "k", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened, Attempt: 4})
	require.False(t, w.reserve(t, c).InDoubt)
}

// orphan returns an idempotent call that a dead worker left executing, with the approval that it used.
func (w world) orphan(t *testing.T) jig.Call {
	t.Helper()
	c := w.running(t, func(c *jig.Call) { c.Idempotent, c.Verdict, c.Status = true, jig.VerdictAsk, jig.CallWaiting })
	w.decide(t, "approve", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
	require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome)
	return c
}

// changed returns the call as it is admitted after its tool has changed.
func changed(c jig.Call) jig.Call {
	c.Version, c.Digest, c.PolicyVersion = "v2", "d2", "p2"
	return c
}

func TestOrphanedCall_OfAChangedToolIsAdmittedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.orphan(t)
	fresh := changed(c)
	r := w.reserve(t, fresh)
	require.Equal(t, ledger.ReserveWaiting, r.Outcome)
	require.Equal(t, jig.CallReserved, r.Call.Status, "another attempt may begin")

	pending := pendingOf(fresh)
	stored, err := w.Readmit(t.Context(), w.row(t, fresh), fresh, &pending)
	require.NoError(t, err)
	require.Equal(t, jig.CallWaiting, stored.Status)
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Contains(t, p.Reasons[len(p.Reasons)-1], "an earlier attempt began")
	require.True(t, p.ExpiresAt.IsZero(), "time must not end a call that may have taken effect")

	edited, shown := fresh, pending
	edited.Input, edited.Digest, shown.Digest = []byte(`{"path":"b"}`), "d3", "d3"
	refused, err := w.Decide(t.Context(), approval.DecisionRequest{
		Tenant: w.tenant, SessionID: w.session, Key: "edit", Principal: jig.Principal{ID: "ben"}, Edited: &edited, Fresh: &shown, Now: time.Now(),
		Decision: jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: edited.Input},
	})
	require.NoError(t, err)
	require.Equal(t, jig.DecisionRefused, refused.Outcome)
	require.Contains(t, refused.Reason, "the input cannot be changed any more")

	w.decide(t, "again", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
	r = w.reserve(t, fresh)
	require.Equal(t, ledger.ReserveRun, r.Outcome)
	require.True(t, r.InDoubt)
}

func TestOrphanedCall_DeniedIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.orphan(t)
	fresh := changed(c)
	w.reserve(t, fresh)
	pending := pendingOf(fresh)
	_, err := w.Readmit(t.Context(), w.row(t, fresh), fresh, &pending)
	require.NoError(t, err)
	ruled := w.decide(t, "no", jig.Decision{Call: c.ID, Answer: jig.AnswerDeny, By: "ben"})
	require.Equal(t, jig.CallUnknown, ruled.Status, "the first attempt may have taken effect")
	require.Equal(t, jig.CallUnknown, w.row(t, c).Status)
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, jig.PendingReconcile, p.Kind)
	require.Equal(t, []string{"consumed", "denied", "open"}, w.approvals(t, c))
}

func TestOrphanedCall_ThatMayNotRunAgainIsUnknown(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*jig.Call){
		"policy denies it": func(c *jig.Call) {
			denied := jig.Failure(jig.Errorf(jig.CodeDenied, "not any more"))
			c.Verdict, c.Status, c.Result = jig.VerdictDeny, jig.CallDenied, &denied
		},
		"its tool is not idempotent any more": func(c *jig.Call) { c.Verdict, c.Status, c.Idempotent = jig.VerdictRun, jig.CallReserved, false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.orphan(t)
			fresh := changed(c)
			w.reserve(t, fresh)
			asked := pendingOf(fresh)
			_, err := w.Readmit(t.Context(), w.row(t, fresh), fresh, &asked)
			require.NoError(t, err)
			again := changed(fresh)
			again.Version = "v3"
			change(&again)
			stored, err := w.Readmit(t.Context(), w.row(t, again), again, nil)
			require.NoError(t, err)
			require.Equal(t, jig.CallUnknown, stored.Status)
			require.Equal(t, []string{"consumed", "expired", "open"}, w.approvals(t, c))
			p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
			require.NoError(t, err)
			require.Equal(t, jig.PendingReconcile, p.Kind)
		})
	}
}

func TestOrphanedRead_OfAChangedToolRunsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, func(c *jig.Call) { c.Idempotent, c.Write = true, false })
	w.reserve(t, c)
	fresh := changed(c)
	require.Equal(t, jig.CallReserved, w.reserve(t, fresh).Call.Status)
	stored, err := w.Readmit(t.Context(), w.row(t, fresh), fresh, nil)
	require.NoError(t, err)
	require.Equal(t, jig.CallReserved, stored.Status)
	r := w.reserve(t, fresh)
	require.Equal(t, ledger.ReserveRun, r.Outcome)
	require.False(t, r.InDoubt)
}

func TestReadmit_KeepsAFinalStatusWithItsResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	w.decide(t, "approve", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
	fresh := changed(c)
	fresh.Verdict, fresh.Status = jig.VerdictRun, jig.CallSucceeded
	fresh.Result = &jig.ToolResult{Success: true, Data: json.RawMessage(`{"requiresConfirmation":true}`), Summary: "needs a person's approval"}
	stored, err := w.Readmit(t.Context(), w.row(t, fresh), fresh, nil)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, stored.Status, "a call that is already answered does not run")
	require.JSONEq(t, `{"requiresConfirmation":true}`, string(stored.Result.Data))
	require.Equal(t, ledger.ReserveFinal, w.reserve(t, fresh).Outcome)
	types := w.types(t)
	require.Equal(t, "tool.completed", types[len(types)-1])
}

func TestTransaction_ThatWasRolledBackHadNoEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	missing := w.call(9)
	_, err := w.Reserve(t.Context(), w.request(missing))
	require.True(t, jig.AsError(err).NotExecuted, err)
	_, err = w.Complete(t.Context(), ledger.Completion{Tenant: w.tenant, SessionID: w.session, CallID: missing.ID, Status: jig.CallUnknown})
	require.True(t, jig.AsError(err).NotExecuted, err)
	w.Close()
	_, err = w.Session(t.Context(), w.tenant, w.session)
	require.True(t, jig.AsError(err).NotExecuted, "nothing was sent")
}
