package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

const gatedRules = `    - when: pass == 1
      calls:
        - {tool: test.write, input: {url: "${input.url}", name: "${input.name}"}}
        - {tool: test.echo, input: {value: beside}}
    - answer: "${calls[0].success ? 'written' : calls[0].error.code}"
`

// gated starts a session whose first call waits for approval.
func (d *testEnv) gated(r *receiver, name string, settings ...string) string {
	d.t.Helper()
	id := d.run(agent(`["*"]`, gatedRules, settings...), map[string]any{"url": r.URL, "name": name})
	d.waiting(id)
	return id
}

func (d *testEnv) signal(id, name string, payload any) {
	d.t.Helper()
	require.NoError(d.t, shared.temporal.SignalWorkflow(d.t.Context(), id, "", name, payload))
}

func TestApprove_BySignal(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.gated(r, "w")
	pending := d.waiting(id).Pending
	require.Len(t, pending, 1)
	require.Equal(t, jig.PendingApproval, pending[0].Kind)
	require.NotEmpty(t, pending[0].Digest)
	require.NotEmpty(t, pending[0].Reasons)
	require.Equal(t, "tester", pending[0].RequestedBy)
	require.Contains(t, string(pending[0].Input), r.URL)
	requests, _ := r.count("w")
	require.Zero(t, requests, "nothing that writes runs before its approval")
	require.Equal(t, jig.CallSucceeded, byID(d.waiting(id))["1.2"].Status, "the other call ran without waiting")

	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana", "digest": pending[0].Digest})
	require.Equal(t, "written", d.finish(id).Answer)
	requests, _ = r.count("w")
	require.Equal(t, 1, requests)
	require.Len(t, d.events(id, jig.EventToolApproved), 1)
	require.Contains(t, string(d.events(id, jig.EventToolApproved)[0].Data), `"claimed":true`)
}

func TestDeny_ModelSeesTheReason(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.gated(r, "w")
	d.signal(id, protocol.SignalDeny, map[string]string{"call": "1.1", "by": "ana", "reason": "too much"})
	require.Equal(t, "DENIED", d.finish(id).Answer)
	require.Contains(t, byID(d.stored(id))["1.1"].Error.Message, "too much")
	requests, _ := r.count("w")
	require.Zero(t, requests)
}

func TestExpiredApproval_ModelSeesIt(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.run(agent(`["*"]`, gatedRules, "approval_expires: 1s"), map[string]any{"url": r.URL, "name": "w"})
	require.Equal(t, "EXPIRED", d.finish(id).Answer)
	require.Len(t, d.events(id, jig.EventToolExpired), 1)
	requests, _ := r.count("w")
	require.Zero(t, requests)
}

func TestEdit_RunsTheChangedInput(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.gated(r, "w")
	refused, err := d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "1.1", By: "ana", Input: json.RawMessage(`{"url":"x","nmae":"v"}`)}}) //nolint:misspell // misspelt on purpose
	require.NoError(t, err)
	require.Equal(t, jig.DecisionRefused, refused.Decisions[0].Outcome)
	require.Contains(t, refused.Decisions[0].Reason, "name")

	edited, err := d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "1.1", By: "ana", Input: json.RawMessage(fmt.Sprintf(`{"url":%q,"name":"v"}`, r.URL))}})
	require.NoError(t, err)
	require.Equal(t, jig.DecisionAccepted, edited.Decisions[0].Outcome)
	require.Equal(t, "written", d.finish(id).Answer)
	requests, _ := r.count("w")
	require.Zero(t, requests, "the original input did not run")
	requests, _ = r.count("v")
	require.Equal(t, 1, requests)
}

func TestRefusedDecisions_ChangeNothingAndAreVisible(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.gated(r, "w")
	for name, payload := range map[string]any{
		"unknown call": map[string]string{"call": "1.9", "by": "ana"},
		"stale digest": map[string]string{"call": "1.1", "by": "ana", "digest": "0000"},
		"no person":    map[string]string{"call": "1.1"},
		"no call":      map[string]string{"by": "ana"},
		"misspelled":   map[string]string{"cal": "1.1", "by": "ana"},
		"not waiting":  map[string]string{"call": "1.2", "by": "ana"},
		"not JSON":     "1.1",
	} {
		before := len(d.events(id, jig.EventDecisionRefused))
		d.signal(id, protocol.SignalApprove, payload)
		require.True(t, eventually(t.Context(), patience, func() bool {
			return len(d.eventsSoFar(id, jig.EventDecisionRefused)) == before+1
		}), name)
	}
	require.NoError(t, shared.temporal.SignalWorkflow(t.Context(), id, "", "aprove", map[string]string{"call": "1.1", "by": "ana"}))
	require.Equal(t, jig.StatusInputRequired, d.waiting(id).Status)
	requests, _ := r.count("w")
	require.Zero(t, requests)

	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	require.Equal(t, "written", d.finish(id).Answer)
	refused := d.events(id, jig.EventDecisionRefused)
	require.Len(t, refused, 8, "the unknown signal is refused too, at the end of the pass")
}

func TestDecide_RefusesASecondDecision(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.run(agent(`["*"]`, `    - when: pass == 1
      calls:
        - {tool: test.write, input: {url: "${input.url}", name: a}}
        - {tool: test.write, input: {url: "${input.url}", name: b}}
    - answer: done
`), map[string]any{"url": r.URL})
	d.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 2 })
	first, err := d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "1.1", By: "ana", Answer: jig.AnswerDeny, Reason: "no"}})
	require.NoError(t, err)
	require.Equal(t, jig.DecisionAccepted, first.Decisions[0].Outcome)
	second, err := d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "1.1", By: "bo"}, {Call: "1.2", By: "bo"}})
	require.NoError(t, err)
	require.Equal(t, jig.DecisionRefused, second.Decisions[0].Outcome)
	require.Contains(t, second.Decisions[0].Reason, "denied")
	require.Equal(t, jig.CallDenied, second.Decisions[0].Status)
	require.Equal(t, jig.DecisionAccepted, second.Decisions[1].Outcome)
	d.finish(id)
	requests, _ := r.count("a")
	require.Zero(t, requests)
	requests, _ = r.count("b")
	require.Equal(t, 1, requests)
}

func TestVisibility_FindsSessionsThatNeedAPerson(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.gated(r, "w")
	query := fmt.Sprintf(`JigStatus="input_required" AND JigPending=1 AND JigAgent="draft:probe" AND JigTool="test.write" AND WorkflowId=%q`, id)
	require.True(t, eventually(t.Context(), patience, func() bool { return d.listed(query) == 1 }))
	list, err := d.Approvals(t.Context(), jig.DefaultTenant, id)
	require.NoError(t, err)
	require.Len(t, list, 1)
	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	d.finish(id)
	require.True(t, eventually(t.Context(), patience, func() bool {
		return d.listed(fmt.Sprintf(`JigStatus="completed" AND JigPending=0 AND WorkflowId=%q AND ExecutionStatus="Completed"`, id)) == 1
	}))
}

func (d *testEnv) listed(query string) int {
	response, err := shared.temporal.CountWorkflow(d.t.Context(), countRequest(query))
	require.NoError(d.t, err)
	return int(response.GetCount())
}

func TestUnknownOutcome_IsReconciled(t *testing.T) {
	t.Parallel()
	for _, outcome := range []jig.ReconcileOutcome{jig.OutcomeHappened, jig.OutcomeNotHappened, jig.OutcomeGiveUp} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			d, r := startEnv(t), newReceiver(t)
			id := d.run(agent(`["*"]`, `    - when: pass == 1
      calls: [{tool: test.effect, input: {url: "${input.url}", name: e, before: "${input.before}", after: "${input.after}"}}]
    - answer: "${calls[0].success ? 'yes' : calls[0].error.code}"
`), map[string]any{"url": r.URL, "before": map[bool]int{true: 0, false: 30_000}[outcome == jig.OutcomeHappened], "after": 30_000})
			if outcome == jig.OutcomeHappened {
				require.True(t, eventually(t.Context(), patience, func() bool { n, _ := r.count("e"); return n == 1 }))
			} else {
				require.True(t, eventually(t.Context(), patience, func() bool { return len(d.eventsSoFar(id, jig.EventToolStarted)) == 1 }))
			}
			d.kill()
			d.start()
			view := d.waiting(id)
			require.Equal(t, jig.PendingReconcile, view.Pending[0].Kind)
			require.Len(t, d.events(id, jig.EventToolOutcomeUnknown), 1)
			if outcome == jig.OutcomeNotHappened {
				// Answer by signal, as Temporal's own CLI does, and give up: after "not happened" the tool would run again for a minute.
				d.signal(id, protocol.SignalReconcile, map[string]any{"call": "1.1", "outcome": "give_up", "by": "ana"})
				require.Equal(t, string(jig.CodeOutcomeUnknown), d.finish(id).Answer)
				return
			}
			ruled, err := d.Reconcile(t.Context(), jig.DefaultTenant, id, jig.Reconciliation{Call: "1.1", Outcome: outcome, By: "ana", Result: json.RawMessage(`{"status":204}`)})
			require.NoError(t, err)
			require.Equal(t, jig.DecisionAccepted, ruled.Decisions[0].Outcome, ruled.Decisions[0].Reason)
			want := map[jig.ReconcileOutcome]string{jig.OutcomeHappened: "yes", jig.OutcomeGiveUp: string(jig.CodeOutcomeUnknown)}[outcome]
			require.Equal(t, want, d.finish(id).Answer)
			requests, _ := r.count("e")
			require.LessOrEqual(t, requests, 1)
		})
	}
}

func TestTerminatedSession_IsSwept(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.gated(r, "w")
	require.NoError(t, shared.temporal.TerminateWorkflow(t.Context(), id, "", "from outside"))
	d.sweep(id)
	view := d.stored(id)
	require.Equal(t, jig.StatusFailed, view.Status)
	require.Equal(t, jig.ReasonTerminated, view.Reason)
	require.Empty(t, view.Pending)
	status := enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
	require.Equal(t, status, described.GetWorkflowExecutionInfo().GetStatus())
}
