package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
)

// tenantEnv is a tenant that belongs to the test, with its documents.
type tenantEnv struct {
	*testEnv
	tenant string
}

func newTenantEnv(t *testing.T, env ...string) tenantEnv {
	t.Helper()
	d := startEnv(t, env...)
	return tenantEnv{testEnv: d, tenant: "office-" + d.name[:8]}
}

// joinTenantEnv is like newOffice, but uses the common worker; see join.
func joinTenantEnv(t *testing.T) tenantEnv {
	t.Helper()
	d := joinEnv(t)
	return tenantEnv{testEnv: d, tenant: "office-" + d.name[:8]}
}

// workdir returns the path of a file in the tenant's working directory.
func (o tenantEnv) workdir(path ...string) string {
	return filepath.Join(append([]string{o.dir, ".jig", "work", o.tenant}, path...)...)
}

// wrote returns the content of a file that a tool wrote to the tenant's working directory.
func (o tenantEnv) wrote(path ...string) string {
	o.t.Helper()
	content, err := os.ReadFile(o.workdir(path...))
	require.NoError(o.t, err)
	return string(content)
}

// trigger makes a call in the tenant and returns the call's state.
func (o tenantEnv) trigger(tool string, input any) protocol.CallResult {
	o.t.Helper()
	in := callInput(tool, input)
	in.Tenant = o.tenant
	result, err := o.Trigger(o.t.Context(), in, "")
	require.NoError(o.t, err)
	return result
}

// install registers a document. decide approves the call that registers it.
func (o tenantEnv) install(path, body string, decide func(id string)) {
	o.t.Helper()
	result := o.trigger("catalog.put", map[string]any{"documents": []map[string]string{{"path": path, "body": body}}})
	require.Equal(o.t, jig.CallWaiting, result.Status, "%+v", result.Result)
	decide(result.SessionID)
	done, err := o.WaitCall(o.t.Context(), o.tenant, result.SessionID)
	require.NoError(o.t, err)
	require.Equal(o.t, jig.CallSucceeded, done.Status, "%+v", done.Result)
}

func (o tenantEnv) trusting(id string) {
	o.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "operator"})
}

// decided makes one decision and returns its outcome.
func (o tenantEnv) decided(id string, d jig.Decision) jig.Ruled {
	o.t.Helper()
	if d.Call == "" {
		d.Call = "1.1"
	}
	result, err := o.Decide(o.t.Context(), o.tenant, id, []jig.Decision{d})
	require.NoError(o.t, err)
	require.Len(o.t, result.Decisions, 1)
	return result.Decisions[0]
}

// eventsOf returns a session's events of a type so far.
func (o tenantEnv) eventsOf(id string, kind jig.EventType) []jig.Event {
	list, err := o.Events(o.t.Context(), o.tenant, id, 0)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(e jig.Event) bool { return e.Type != kind })
}

const financePolicy = `kind: policy
name: finance
rules:
  - name: large
    when: tool.name == 'test.write' && call.input.name.startsWith('large')
    verdict: ask
    approvers: {groups: [finance]}
    quorum: 2
    not_requester: true
    reason: two of finance decide on large ones
  - name: vast
    when: tool.name == 'test.write' && call.input.name.startsWith('large-vast')
    verdict: ask
    approvers: {people: [cfo]}
`

// underRule reports whether a rule names who decides about a call. Other terms hold in every tenant with several people.
func underRule(p jig.Pending) bool { return p.Terms != nil && len(p.Terms.Requirements) > 0 }

func (o tenantEnv) tenantDocument(rest string) string {
	return fmt.Sprintf(`kind: tenant
name: %s
people:
  - {id: ana, groups: [finance]}
  - {id: ben, groups: [finance]}
  - {id: tester, groups: [finance]}
  - {id: cfo, permissions: [all.of.it]}
  - {id: operator}
%s`, o.tenant, rest)
}

// Only two people of the group can decide; decisions of others have no effect. If an edit raises the requirements, the call asks again.
func TestReviewers_QuorumDelegationAndEdits(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	o.install("tenant.yaml", o.tenantDocument(""), o.trusting)
	o.install("finance.yaml", financePolicy, o.trusting)
	var call protocol.CallResult
	require.True(t, eventually(t.Context(), patience, func() bool {
		call = o.trigger("test.write", map[string]any{"url": r.URL, "name": "large-1"})
		view := o.waiting(call.SessionID)
		return len(view.Pending) == 1 && underRule(view.Pending[0])
	}), "the policy is read within a second")
	id := call.SessionID

	for by, why := range map[string]string{"eve": "may not decide", "tester": "asked for this call"} {
		ruled := o.decided(id, jig.Decision{By: by, Answer: jig.AnswerApprove})
		require.Equal(t, jig.DecisionRefused, ruled.Outcome)
		require.Contains(t, ruled.Reason, why)
	}
	ruled := o.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove})
	require.Equal(t, jig.DecisionAccepted, ruled.Outcome)
	require.Equal(t, jig.CallWaiting, ruled.Status)
	require.Contains(t, ruled.Reason, "1 of 2")
	require.Contains(t, o.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Reason, "already")
	require.Len(t, o.waiting(id).Pending[0].Votes, 1)

	require.Equal(t, jig.DecisionAccepted, o.decided(id, jig.Decision{By: "ben", Answer: jig.AnswerDelegate, To: "dora"}).Outcome)
	require.Contains(t, o.decided(id, jig.Decision{By: "ben", Answer: jig.AnswerApprove}).Reason, "delegated")
	ruled = o.decided(id, jig.Decision{By: "dora", Answer: jig.AnswerApprove})
	require.Equal(t, jig.CallReserved, ruled.Status, ruled.Reason)
	done, err := o.WaitCall(t.Context(), o.tenant, id)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status)
	requests, _ := r.count("large-1")
	require.Equal(t, 1, requests)

	id = o.trigger("test.write", map[string]any{"url": r.URL, "name": "plain"}).SessionID
	ruled = o.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Input: json.RawMessage(fmt.Sprintf(`{"url":%q,"name":"large-vast"}`, r.URL))})
	require.Equal(t, jig.DecisionAccepted, ruled.Outcome, ruled.Reason)
	require.Equal(t, jig.CallWaiting, ruled.Status, "the person who changed the input cannot approve it alone")
	require.Equal(t, jig.CallWaiting, o.decided(id, jig.Decision{By: "ben", Answer: jig.AnswerApprove}).Status)
	ruled = o.decided(id, jig.Decision{By: "cfo", Answer: jig.AnswerApprove})
	require.Equal(t, jig.CallReserved, ruled.Status, ruled.Reason)
	done, err = o.WaitCall(t.Context(), o.tenant, id)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status)
	requests, _ = r.count("plain")
	require.Zero(t, requests, "the original input did not run")
	requests, _ = r.count("large-vast")
	require.Equal(t, 1, requests)
}

// A grant counts as the approval of the people who gave it, up to its maximum number of uses, and no longer after it was revoked.
func TestGrants_ApproveFurtherCalls(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	write := func(name string) protocol.CallResult {
		return o.trigger("test.write", map[string]any{"url": r.URL, "name": name})
	}
	first := write("small-0")
	ruled := o.decided(first.SessionID, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{
		When: "input.name.startsWith('small')", MaxUses: 2, Expires: "7d",
	}})
	require.Equal(t, jig.DecisionAccepted, ruled.Outcome, ruled.Reason)
	require.NotEmpty(t, ruled.Grant)
	require.Equal(t, jig.CallWaiting, write("other").Status)
	require.Equal(t, jig.CallSucceeded, write("small-1").Status)
	require.Equal(t, jig.CallSucceeded, write("small-2").Status)
	require.Equal(t, jig.CallWaiting, write("small-3").Status, "the grant is used up")

	created := o.trigger("grants.create", jig.GrantRequest{Tool: "test.write", MaxUses: 5})
	require.Equal(t, jig.CallWaiting, created.Status, "a grant needs an approval")
	require.Equal(t, jig.CallReserved, o.decided(created.SessionID, jig.Decision{By: "ben", Answer: jig.AnswerApprove}).Status)
	done, err := o.WaitCall(t.Context(), o.tenant, created.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	require.Contains(t, string(done.Result.Data), `"by":["ben"]`)
	require.Equal(t, jig.CallSucceeded, write("anything").Status)
	list, err := o.Grants(t.Context(), o.tenant, true)
	require.NoError(t, err)
	require.Len(t, list, 2)
	revoked, err := o.RevokeGrant(t.Context(), protocol.GrantsRequest{Tenant: o.tenant, Revoke: list[0].ID, By: "ana"})
	require.NoError(t, err)
	require.NotNil(t, revoked.RevokedAt)
	require.Equal(t, jig.CallWaiting, write("after").Status, "a revocation takes effect immediately")
}

// A question suspends its call until a person answers with a value that fits.
func TestQuestions_AreAnsweredByPeople(t *testing.T) {
	t.Parallel()
	o := newTenantEnv(t)
	id := o.trigger("person.ask", map[string]any{"question": "Which one?", "options": []string{"red", "blue"}}).SessionID
	pending := o.waiting(id).Pending
	require.Len(t, pending, 1)
	require.Equal(t, jig.PendingQuestion, pending[0].Kind)
	require.Equal(t, "Which one?", pending[0].Question.Text)
	o.signal(id, protocol.SignalAnswer, map[string]any{"call": "1.1", "by": "ana", "value": "green"})
	o.signal(id, protocol.SignalApprove, map[string]any{"call": "1.1", "by": "ana"})
	require.True(t, eventually(t.Context(), patience, func() bool { return len(o.eventsOf(id, jig.EventDecisionRefused)) == 2 }))
	require.Contains(t, string(o.eventsOf(id, jig.EventDecisionRefused)[0].Data), "not one of the options")
	o.kill()
	o.start()
	ruled, err := o.Reply(t.Context(), o.tenant, id, jig.Reply{Call: "1.1", By: "ana", Value: json.RawMessage(`"blue"`)})
	require.NoError(t, err)
	require.Equal(t, jig.DecisionAccepted, ruled.Decisions[0].Outcome, ruled.Decisions[0].Reason)
	done, err := o.WaitCall(t.Context(), o.tenant, id)
	require.NoError(t, err)
	require.JSONEq(t, `{"answer":"blue","by":"ana"}`, string(done.Result.Data))
}

// A paused call waits; a running call finishes.
func TestPause_HoldsCallsUntilResumed(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	paused, err := o.Pause(t.Context(), protocol.PauseRequest{Tenant: o.tenant, Scope: jig.PauseTool, Target: "test.effect", By: "ana", Reason: "the other side is down"})
	require.NoError(t, err)
	require.True(t, paused.Changed)
	id := newID(o.tenant)
	in := callInput("test.effect", map[string]any{"url": r.URL, "name": "held"})
	in.Tenant = o.tenant
	_, err = o.StartCall(t.Context(), in, id)
	require.NoError(t, err)
	require.True(t, eventually(t.Context(), patience, func() bool {
		view, err := o.Status(t.Context(), o.tenant, id)
		return err == nil && len(view.Paused) == 1 && len(view.Calls) == 1
	}))
	require.Equal(t, jig.CallSucceeded, o.trigger("test.echo", map[string]any{"value": "x"}).Status, "other tools still run")
	require.True(t, eventually(t.Context(), patience, func() bool { // the call was attempted more than once, and held back each time
		described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(t, err)
		open := described.GetPendingActivities()
		return len(open) == 1 && open[0].GetAttempt() > 1 && open[0].GetLastFailure().GetApplicationFailureInfo().GetType() == "PAUSED"
	}))
	requests, _ := r.count("held")
	require.Zero(t, requests)
	resumed, err := o.Resume(t.Context(), protocol.PauseRequest{Tenant: o.tenant, Scope: jig.PauseTool, Target: "test.effect", By: "ana"})
	require.NoError(t, err)
	require.True(t, resumed.Changed)
	done, err := o.WaitCall(t.Context(), o.tenant, id)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status)
	requests, _ = r.count("held")
	require.Equal(t, 1, requests)
}

// In a tenant where decisions must be proved, a name alone proves nothing.
func TestSignedDecisions_AreVerified(t *testing.T) {
	t.Parallel()
	private, public, err := token.NewKey()
	require.NoError(t, err)
	key, err := token.ParsePrivateKey(private, "", "ana")
	require.NoError(t, err)
	o, r := newTenantEnv(t, "JIG_APPROVALS_SIGNALS=signed", "JIG_OPERATOR_KEY=ana:"+public), newReceiver(t)
	signed := func(id string, d jig.Decision) jig.Decision {
		claim, err := token.ForDecision(o.tenant, id, d, o.waiting(id).Pending[0].Digest)
		require.NoError(t, err)
		d.Token, err = token.Sign(claim, key, time.Now(), 0)
		require.NoError(t, err)
		return d
	}
	id := o.trigger("test.write", map[string]any{"url": r.URL, "name": "w"}).SessionID
	require.Contains(t, o.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Reason, "only signed decisions")
	approval := signed(id, jig.Decision{Call: "1.1", Answer: jig.AnswerApprove})
	other := o.trigger("test.write", map[string]any{"url": r.URL, "name": "v"}).SessionID
	require.Equal(t, jig.DecisionRefused, o.decided(other, approval).Outcome, "a token is valid for one call only")
	changed := approval
	changed.Input = json.RawMessage(fmt.Sprintf(`{"url":%q,"name":"changed"}`, r.URL))
	require.Equal(t, jig.DecisionRefused, o.decided(id, changed).Outcome, "a token is valid for one input only")
	require.Equal(t, jig.CallReserved, o.decided(id, approval).Status)
	done, err := o.WaitCall(t.Context(), o.tenant, id)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status)
	approved := o.eventsOf(id, jig.EventToolApproved)
	require.Len(t, approved, 1)
	require.NotContains(t, string(approved[0].Data), `"claimed":true`)
	_, err = o.Pause(t.Context(), protocol.PauseRequest{Tenant: o.tenant, Scope: jig.PauseTenant, By: "ana"})
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
}
