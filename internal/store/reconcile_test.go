package store_test

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

// doubtful returns a call whose outcome is unknown.
func (w world) doubtful(t *testing.T) jig.Call {
	t.Helper()
	c := w.asking(t)
	w.decide(t, "approve", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
	w.reserve(t, c)
	require.Equal(t, ledger.ReserveUnknown, w.reserve(t, c).Outcome)
	return c
}

func (w world) reconcile(t *testing.T, key string, r jig.Reconciliation) jig.Ruled {
	t.Helper()
	got, err := w.Reconcile(t.Context(), approval.ReconcileRequest{
		Tenant: w.tenant, SessionID: w.session, Key: key, Principal: jig.Principal{ID: cmp.Or(r.By, "somebody"), Claimed: true}, Reconciliation: r,
	})
	require.NoError(t, err)
	w.isCurrent(t, got)
	return got.Ruled
}

var doubt = []string{"tool.needs_approval", "tool.approved", "tool.started", "tool.outcome_unknown"}

func TestReconcile_Happened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.doubtful(t)
	for range 2 {
		got := w.reconcile(t, "k", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeHappened, Result: []byte(`{"id":7}`), By: "ben"})
		require.Equal(t, jig.Ruled{Call: c.ID, Outcome: jig.DecisionAccepted, Status: jig.CallSucceeded}, got)
	}
	row := w.row(t, c)
	require.Equal(t, jig.CallSucceeded, row.Status)
	require.True(t, row.Result.Success)
	require.JSONEq(t, `{"id":7}`, string(row.Result.Data))
	w.requireWrites(t, 1)
	require.Equal(t, append(doubt[:4:4], "tool.reconciled", "tool.completed"), w.types(t))
	require.Equal(t, map[string]any{"outcome": "happened", "by": "ben", "claimed": true}, w.last(t, jig.EventToolReconciled))
	_, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	requireCode(t, jig.CodeNotFound, err)
}

func TestReconcile_HappenedWithALargeResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.doubtful(t)
	result := json.RawMessage(`"` + big(jig.InlineBytes) + `"`)
	w.reconcile(t, "k", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeHappened, Result: result})
	row := w.row(t, c)
	require.Less(t, len(row.Result.Data), 4096)
	kept, _, err := w.ReadArtifact(t.Context(), w.tenant, row.ResultArtifact, 0, 1<<20)
	require.NoError(t, err)
	var whole jig.ToolResult
	require.NoError(t, json.Unmarshal(kept, &whole))
	require.JSONEq(t, string(result), string(whole.Data))
}

func TestReconcile_NotHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.doubtful(t)
	got := w.reconcile(t, "k", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened, By: "ben"})
	require.Equal(t, jig.Ruled{Call: c.ID, Outcome: jig.DecisionAccepted, Status: jig.CallReserved}, got)
	r := w.reserve(t, c)
	require.Equal(t, ledger.ReserveRun, r.Outcome, "under the approval that it already had")
	require.Equal(t, 2, r.Fence)
	require.Equal(t, jig.CallExecuting, w.complete(t, c, 1, jig.CallSucceeded).Status, "a report of the first attempt no longer counts")
	require.Equal(t, jig.CallSucceeded, w.complete(t, c, 2, jig.CallSucceeded).Status)
	require.Equal(t, append(doubt[:4:4], "tool.reconciled", "tool.started", "tool.completed"), w.types(t))
	w.requireWrites(t, 1)
}

// A second statement that nothing happened does not cover a later attempt.
func TestReconcile_TwiceRunsTheCallOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.doubtful(t)
	not := jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened, By: "ben"}
	require.Equal(t, jig.CallReserved, w.reconcile(t, "first", not).Status)
	require.Equal(t, 2, w.reserve(t, c).Fence)
	require.Equal(t, ledger.ReserveUnknown, w.reserve(t, c).Outcome, "the second attempt is cut off too")

	again := w.reconcile(t, "second", not)
	require.Equal(t, jig.DecisionRefused, again.Outcome)
	require.Contains(t, again.Reason, "attempt 2 is in doubt")
	require.Equal(t, ledger.ReserveUnknown, w.reserve(t, c).Outcome)
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, 2, p.Attempt)

	not.Attempt = p.Attempt
	require.Equal(t, jig.CallReserved, w.reconcile(t, "third", not).Status)
	require.Equal(t, 3, w.reserve(t, c).Fence)
}

func TestReconcile_GiveUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.doubtful(t)
	got := w.reconcile(t, "k", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeGiveUp, By: "ben"})
	require.Equal(t, jig.CallFailed, got.Status)
	require.Equal(t, jig.CodeOutcomeUnknown, w.row(t, c).Result.Error.Code)
	require.Equal(t, append(doubt[:4:4], "tool.reconciled", "tool.failed"), w.types(t))
	w.requireWrites(t, 0)
}

func TestReconcile_RefusalChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.doubtful(t)
	ok := jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeHappened, By: "ben"}
	for why, change := range map[string]func(*approval.ReconcileRequest){
		"no call":           func(r *approval.ReconcileRequest) { r.Reconciliation.Call = "9.9" },
		"not an outcome":    func(r *approval.ReconcileRequest) { r.Reconciliation.Outcome = "maybe" },
		"not JSON":          func(r *approval.ReconcileRequest) { r.Reconciliation.Result = []byte("{") },
		"could not be read": func(r *approval.ReconcileRequest) { r.Refusal = "it could not be read" },
	} {
		before := len(w.log(t))
		r := approval.ReconcileRequest{Tenant: w.tenant, SessionID: w.session, Key: why, Reconciliation: ok}
		change(&r)
		for range 2 {
			got, err := w.Reconcile(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, jig.DecisionRefused, got.Outcome, why)
			require.Contains(t, got.Reason, why)
		}
		require.Len(t, w.log(t), before+1, "one event")
		require.Contains(t, w.last(t, jig.EventDecisionRefused)["reason"], why)
		require.Equal(t, jig.CallUnknown, w.row(t, c).Status)
	}
	got := w.decide(t, "approve it", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "reconcile")

	w.reconcile(t, "yes", ok)
	again := w.reconcile(t, "again", ok)
	require.Equal(t, jig.DecisionRefused, again.Outcome)
	require.Contains(t, again.Reason, "its status is succeeded")
	w.requireWrites(t, 1)

	missing := approval.ReconcileRequest{Tenant: w.tenant, SessionID: "ses_none", Key: "k", Reconciliation: ok}
	_, err := w.Reconcile(t.Context(), missing)
	requireCode(t, jig.CodeNotFound, err)
}
