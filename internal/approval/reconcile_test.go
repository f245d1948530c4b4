package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// doubtful returns the state of a call with an unknown outcome, which one person of finance could have approved.
func doubtful() approval.State {
	s := waiting(nil)
	s.Call.Status = jig.CallUnknown
	s.Open.Kind, s.Open.ExpiresAt, s.Open.Attempt = jig.PendingReconcile, time.Time{}, 1
	s.Latest = asked(byFinance(1))
	s.Latest.Status, s.ArtifactID = approval.Consumed, "art_1"
	return s
}

func reconciles(who jig.Principal, outcome jig.ReconcileOutcome, result string) approval.ReconcileRequest {
	return approval.ReconcileRequest{
		Tenant: "acme", SessionID: "ses_1", Key: "k1", Principal: who, Evidence: proof(), Voters: office(), Now: noonOf().Add(48 * time.Hour),
		Reconciliation: jig.Reconciliation{Call: "1.1", Outcome: outcome, Result: json.RawMessage(result), Note: "I looked"},
	}
}

func reconcile(t *testing.T, s approval.State, r approval.ReconcileRequest) approval.Transition {
	t.Helper()
	got, err := approval.Reconcile(s, r)
	require.NoError(t, err)
	return got
}

func TestReconcile_Refuses(t *testing.T) {
	t.Parallel()
	for why, change := range map[string]func(*approval.State, *approval.ReconcileRequest){
		"it could not be read":                  func(_ *approval.State, r *approval.ReconcileRequest) { r.Refusal = "it could not be read" },
		`there is no call "1.1"`:                func(s *approval.State, _ *approval.ReconcileRequest) { s.Call, s.Open = nil, nil },
		`"maybe" is not an outcome`:             func(_ *approval.State, r *approval.ReconcileRequest) { r.Reconciliation.Outcome = "maybe" },
		"not in doubt: its status is succeeded": func(s *approval.State, _ *approval.ReconcileRequest) { s.Call.Status = jig.CallSucceeded },
		"the call's outcome is not in doubt":    func(s *approval.State, _ *approval.ReconcileRequest) { s.Open = nil },
		"the call's outcome is not in doubt: ":  func(s *approval.State, _ *approval.ReconcileRequest) { s.Open.Kind = jig.PendingApproval },
		"the result is not JSON":                func(_ *approval.State, r *approval.ReconcileRequest) { r.Reconciliation.Result = []byte("{") },
		"the token was used already":            func(s *approval.State, _ *approval.ReconcileRequest) { s.TokenUsed = true },
		"eve may not decide this call":          func(_ *approval.State, r *approval.ReconcileRequest) { r.Principal = eve() },
		"fay may not say what happened to a call: that is for eve": func(_ *approval.State, r *approval.ReconcileRequest) {
			r.Reconcilers = &jig.Approvers{People: []string{"eve"}}
		},
		"your answer is about attempt 1, but attempt 2 is in doubt": func(s *approval.State, _ *approval.ReconcileRequest) { s.Open.Attempt = 2 },
		`then answer with "attempt": 2`:                             func(s *approval.State, r *approval.ReconcileRequest) { s.Open.Attempt, r.Reconciliation.Attempt = 2, 1 },
		"your answer is about attempt 2, but attempt 1 is in doubt": func(_ *approval.State, r *approval.ReconcileRequest) { r.Reconciliation.Attempt = 2 },
		"fay asked for this call": func(s *approval.State, _ *approval.ReconcileRequest) {
			s.Latest.RequestedBy, s.Latest.Terms.NotRequester = "fay", true
		},
		"eve may not decide this call: it is": func(s *approval.State, r *approval.ReconcileRequest) { // the delegation was merely claimed
			r.Principal, r.Proof = eve(), jig.ProofKey
			s.Latest.Delegations = []jig.Delegation{{From: "fay", To: "eve", Claimed: true, Counts: []int{0}}}
		},
	} {
		s, r := doubtful(), reconciles(fay(), jig.OutcomeHappened, `{}`)
		change(&s, &r)
		got := reconcile(t, s, r)
		requireRefused(t, got, s, why)
		require.Equal(t, string(r.Reconciliation.Outcome), got.Events[0].Data["answer"])
	}
}

func TestReconcile_WhoMaySayWhatHappened(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		who    jig.Principal
		change func(*approval.State, *approval.ReconcileRequest)
	}{
		"who could have approved the call": {fay(), func(*approval.State, *approval.ReconcileRequest) {}},
		"whom the tenant names": {eve(), func(_ *approval.State, r *approval.ReconcileRequest) {
			r.Reconcilers = &jig.Approvers{People: []string{"eve"}}
		}},
		"anybody, of a call that needed no approval": {eve(), func(s *approval.State, _ *approval.ReconcileRequest) { s.Latest = nil }},
		"an owner, if nobody else is left": {eve(), func(s *approval.State, r *approval.ReconcileRequest) {
			s.Latest.Terms.NotRequester, r.Voters = true, approval.Voters{People: []jig.Principal{eve()}, Disabled: []string{"fay"}, Owners: &jig.Approvers{People: []string{"eve"}}}
		}},
		"the delegate": {eve(), func(s *approval.State, _ *approval.ReconcileRequest) {
			s.Latest.Delegations = []jig.Delegation{{From: "fay", To: "eve", Counts: []int{0}}}
		}},
	} {
		s, r := doubtful(), reconciles(row.who, jig.OutcomeGiveUp, "")
		row.change(&s, &r)
		require.False(t, reconcile(t, s, r).Refused(), name)
	}
}

func TestReconcile_CountsForTheAttemptInDoubt(t *testing.T) {
	t.Parallel()
	for inDoubt, about := range map[int][]int{1: {0, 1}, 2: {2}, 1000: {1000}} {
		for _, attempt := range about {
			s, r := doubtful(), reconciles(fay(), jig.OutcomeNotHappened, "")
			s.Open.Attempt, r.Reconciliation.Attempt = inDoubt, attempt
			require.False(t, reconcile(t, s, r).Refused(), "attempt %d, about %d", inDoubt, attempt)
		}
	}
}

func TestReconcile_SettlesTheCall(t *testing.T) {
	t.Parallel()
	for outcome, row := range map[jig.ReconcileOutcome]struct {
		status jig.CallStatus
		events []string
		code   jig.Code
	}{
		jig.OutcomeHappened:    {jig.CallSucceeded, []string{"event tool.reconciled", "event tool.completed"}, ""},
		jig.OutcomeNotHappened: {jig.CallReserved, []string{"event tool.reconciled"}, ""},
		jig.OutcomeGiveUp:      {jig.CallFailed, []string{"event tool.reconciled", "event tool.failed"}, jig.CodeOutcomeUnknown},
	} {
		got := reconcile(t, doubtful(), reconciles(fay(), outcome, `{"id":7}`))
		require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: row.status}, got.Ruled)
		require.Equal(t, append(row.events, "notice approval.decided", "audit reconciled fay"), told(got))
		require.Equal(t, &approval.Outcome{
			Status: approval.Approved, Answer: string(outcome), By: "fay", Note: "I looked", Key: "k1", Digest: "d1",
		}, got.Outcome)
		require.Equal(t, row.status, got.Call.Status)
		require.Equal(t, outcome == jig.OutcomeNotHappened, got.Call.InDoubt != nil && !*got.Call.InDoubt, "the call may run again")
		require.Equal(t, outcome == jig.OutcomeHappened, got.Call.Wrote)
		require.Equal(t, string(outcome), got.Audit[0].Reason)
		require.Equal(t, string(outcome), got.Notices[0].Reason)
		if outcome == jig.OutcomeHappened {
			require.JSONEq(t, `{"id":7}`, string(got.Call.Result.Data))
		}
		if row.code != "" {
			require.Equal(t, row.code, got.Call.Result.Error.Code)
		}
	}
}

func TestReconcile_ReadIsNoWrite(t *testing.T) {
	t.Parallel()
	s := doubtful()
	s.Call.Write = false
	require.False(t, reconcile(t, s, reconciles(fay(), jig.OutcomeHappened, "")).Call.Wrote)
}

func TestReconcile_LargeResultBecomesAnArtifact(t *testing.T) {
	t.Parallel()
	result := `"` + strings.Repeat("x", jig.InlineBytes) + `"`
	got := reconcile(t, doubtful(), reconciles(fay(), jig.OutcomeHappened, result))
	require.Less(t, len(got.Call.Result.Data), 4096)
	var whole jig.ToolResult
	require.NoError(t, json.Unmarshal(got.Call.Whole, &whole))
	require.JSONEq(t, result, string(whole.Data))
	require.Equal(t, "art_1", got.Events[1].Data["result_artifact"])
	require.Nil(t, reconcile(t, doubtful(), reconciles(fay(), jig.OutcomeHappened, `{}`)).Call.Whole)
}
