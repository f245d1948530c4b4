package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// sent sends a signal with Temporal's own CLI.
func (d *testEnv) sent(id, name, payload string) {
	d.t.Helper()
	got := d.stock("workflow", "signal", "--workflow-id", id, "--name", name, "--input", payload)
	require.Zero(d.t, got.code, got.err)
}

// updated sends an update with Temporal's own CLI and returns the answer.
func (d *testEnv) updated(id, name, payload string) []jig.Ruled {
	d.t.Helper()
	got := d.stock("workflow", "update", "execute", "--workflow-id", id, "--name", name, "--input", payload, "--output", "json")
	require.Zero(d.t, got.code, got.err)
	var answer struct {
		Result protocol.DecideResult `json:"result"`
	}
	require.NoError(d.t, json.Unmarshal([]byte(got.out), &answer), got.out)
	require.NotEmpty(d.t, answer.Result.Decisions, got.out)
	return answer.Result.Decisions
}

// shown returns a session's status as queried with Temporal's own CLI.
func (d *testEnv) shown(id string) jig.SessionView {
	d.t.Helper()
	got := d.stock("workflow", "query", "--workflow-id", id, "--name", "status", "--output", "json")
	require.Zero(d.t, got.code, got.err)
	var answer struct {
		QueryResult []jig.SessionView `json:"queryResult"` //nolint:tagliatelle // Temporal's own name
	}
	require.NoError(d.t, json.Unmarshal([]byte(got.out), &answer), got.out)
	require.Len(d.t, answer.QueryResult, 1, got.out)
	return answer.QueryResult[0]
}

// asks makes a call in the tenant that waits for a person, and returns its session.
func (o tenantEnv) asks(tool string, input any) string {
	o.t.Helper()
	result := o.trigger(tool, input)
	require.Equal(o.t, jig.CallWaiting, result.Status, "%+v", result)
	return result.SessionID
}

// came waits until there are count events of a type and returns the data of the last one.
func (o tenantEnv) came(id string, kind jig.EventType, count int) string {
	o.t.Helper()
	var list []jig.Event
	require.True(o.t, eventually(o.t.Context(), patience, func() bool {
		list = o.eventsOf(id, kind)
		return len(list) >= count
	}), "%s: %d of %d %s", id, len(list), count, kind)
	require.Len(o.t, list, count)
	return string(list[count-1].Data)
}

// ended waits until a call has ended and checks its status.
func (o tenantEnv) ended(id string, want jig.CallStatus) protocol.CallResult {
	o.t.Helper()
	done, err := o.WaitCall(o.t.Context(), o.tenant, id)
	require.NoError(o.t, err)
	require.Equal(o.t, want, done.Status, "%+v", done.Result)
	return done
}

// A refused signal or update changes nothing. Its sender sees the refusal in an event, in the status, and in the answer of an update.
func TestStockCLI_ReportsRefusals(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	o.install("tenant.yaml", o.tenantDocument(""), o.trusting)
	o.install("finance.yaml", financePolicy, o.trusting)
	var id string
	require.True(t, eventually(t.Context(), patience, func() bool {
		id = o.asks("test.write", map[string]any{"url": r.URL, "name": "large-1"})
		return underRule(o.waiting(id).Pending[0])
	}), "the policy is read within a second")
	digest := o.waiting(id).Pending[0].Digest
	count := 0
	for _, row := range []struct{ signal, payload, why string }{
		{"approve", `{"call":"1.7","by":"ana"}`, "there is no call"},
		{"approve", `{"call":"1.1","by":"ana","digest":"0000"}`, "digest does not match"},
		{"approve", `{"call":"1.1","by":"eve"}`, "may not decide"},
		{"approve", `{"call":"1.1","by":"tester"}`, "asked for this call"},
		{"deny", `{"call":"1.1"}`, "`by` is missing"},
		{"delegate", `{"call":"1.1","by":"ana"}`, "`to` is missing"},
		{"answer", `{"call":"1.1","by":"ana","value":"yes"}`, "not for an answer"},
		{"reconcile", `{"call":"1.1","by":"ana","outcome":"happened"}`, "not in doubt"},
	} {
		o.sent(id, row.signal, row.payload)
		count++
		require.Contains(t, o.came(id, jig.EventDecisionRefused, count), row.why, row.payload)
	}
	for _, row := range []struct{ update, payload, why string }{
		{"decide", `{"call":"1.1","by":"eve"}`, "may not decide"},
		{"decide", `{"decisions":[{"call":"1.1","by":"ana","answer":"deny","digest":"0000"}]}`, "digest does not match"},
		{"answer", `{"call":"1.1","by":"ana","value":"yes"}`, "not for an answer"},
		{"reconcile", `{"call":"1.1","by":"ana","outcome":"give_up"}`, "not in doubt"},
	} {
		ruled := o.updated(id, row.update, row.payload)
		require.Equal(t, jig.DecisionRefused, ruled[0].Outcome, row.payload)
		require.Contains(t, ruled[0].Reason, row.why, row.payload)
		count++
		require.Contains(t, o.came(id, jig.EventDecisionRefused, count), row.why, row.payload)
	}
	view := o.shown(id)
	require.Equal(t, jig.StatusInputRequired, view.Status)
	require.Len(t, view.Pending, 1)
	require.Equal(t, digest, view.Pending[0].Digest, "the call waits as before")
	require.Empty(t, view.Pending[0].Votes)
	requests, _ := r.count("large-1")
	require.Zero(t, requests)
	refused := 0
	for _, e := range o.requireAudited(o.tenant) {
		if e.Kind == audit.AuditRefused {
			refused++
		}
	}
	require.Equal(t, count, refused, "each refusal has a row in the audit")
}

// Every documented signal and update works with the stock CLI.
func TestStockCLI_Decides(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	write := func(name string) string {
		return o.asks("test.write", map[string]any{"url": r.URL, "name": name})
	}
	ran := func(names ...string) {
		t.Helper()
		for _, name := range names {
			requests, _ := r.count(name)
			require.Equal(t, 1, requests, name)
		}
	}
	id := write("approved")
	o.sent(id, "approve", fmt.Sprintf(`{"call":"1.1","by":"ana","digest":%q,"note":"seen"}`, o.shown(id).Pending[0].Digest))
	o.ended(id, jig.CallSucceeded)

	id = write("first")
	o.sent(id, "approve", fmt.Sprintf(`{"call":"1.1","by":"ana","input":{"url":%q,"name":"edited"}}`, r.URL))
	o.ended(id, jig.CallSucceeded)
	ran("approved", "edited")
	requests, _ := r.count("first")
	require.Zero(t, requests, "the original input did not run")
	require.Contains(t, o.came(id, jig.EventToolApproved, 1), `"patch"`)

	id = write("denied")
	o.sent(id, "deny", `{"call":"1.1","by":"ana","reason":"too much"}`)
	require.Contains(t, o.ended(id, jig.CallDenied).Result.Error.Message, "too much")

	id = write("delegated")
	o.sent(id, "delegate", `{"call":"1.1","by":"ana","to":"dora","note":"yours"}`)
	require.Contains(t, o.came(id, jig.EventApprovalDelegated, 1), `"to":"dora"`)
	require.Contains(t, o.updated(id, "decide", `{"call":"1.1","by":"ana"}`)[0].Reason, "delegated")
	require.Equal(t, jig.CallReserved, o.updated(id, "decide", `{"call":"1.1","by":"dora"}`)[0].Status)
	o.ended(id, jig.CallSucceeded)
	ran("delegated")

	id = o.asks("person.ask", map[string]any{"question": "Which one?", "options": []string{"red", "blue"}})
	require.Equal(t, "Which one?", o.shown(id).Pending[0].Question.Text)
	o.sent(id, "answer", `{"call":"1.1","by":"ana","value":"red"}`)
	require.JSONEq(t, `{"answer":"red","by":"ana"}`, string(o.ended(id, jig.CallSucceeded).Result.Data))
	id = o.asks("person.ask", map[string]any{"question": "How many?", "schema": map[string]any{"type": "integer"}})
	require.Contains(t, o.updated(id, "answer", `{"call":"1.1","by":"ana","value":"three"}`)[0].Reason, "does not fit")
	require.Equal(t, jig.DecisionAccepted, o.updated(id, "answer", `{"call":"1.1","by":"ana","value":3}`)[0].Outcome)
	require.JSONEq(t, `{"answer":3,"by":"ana"}`, string(o.ended(id, jig.CallSucceeded).Result.Data))

	id = o.run(agent(`["*"]`, `    - when: pass == 1
      for_each: "lists.range(4)"
      calls: [{tool: test.write, input: {url: "${input.url}", name: "several-${item}"}}]
    - when: "!messages.exists(m, m.text == 'go on')"
      calls: [{tool: test.write, input: {url: "${input.url}", name: never}}]
    - answer: "${calls.map(c, c.success ? 'yes' : c.error.code).join(',')}"
`), map[string]any{"url": r.URL})
	o.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 4 })
	require.True(t, eventually(t.Context(), patience, func() bool {
		listed := o.stock("workflow", "list", "--query", fmt.Sprintf(`JigStatus="input_required" AND JigPending=4 AND WorkflowId=%q`, id), "--output", "json")
		return listed.code == 0 && strings.Contains(listed.out, id)
	}))
	o.sent(id, "approve", `{"decisions":[{"call":"1.1","by":"ana"},{"call":"1.3","by":"ana"}]}`)
	ruled := o.updated(id, "decide", `{"decisions":[{"call":"1.2","by":"ana","answer":"deny","reason":"no"},{"call":"1.4","by":"ana"},{"call":"1.9","by":"ana"}]}`)
	require.Equal(t, jig.CallDenied, ruled[0].Status)
	require.Equal(t, jig.DecisionAccepted, ruled[1].Outcome)
	require.Equal(t, jig.DecisionRefused, ruled[2].Outcome)
	o.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 && v.Pending[0].Call == "2.1" })
	o.sent(id, "message", `{"text":"go on","by":"ana"}`)
	o.sent(id, "deny", `{"call":"2.1","by":"ana","reason":"go on instead"}`)
	require.Equal(t, "yes,DENIED,yes,yes,DENIED", o.finish(id).Answer)
	ran("several-0", "several-2", "several-3")

	id = o.compose(strings.Replace(waitingSpec, "wait: 1s", "wait: 1ms", 1), nil)
	require.True(t, eventually(t.Context(), patience, func() bool { return len(o.eventsSoFar(id, jig.EventToolStarted)) > 0 }))
	o.sent(id, "event", `{"name":"paid","data":{"id":7}}`)
	require.True(t, o.output(id).Success)
}

// The three ways to reconcile an unknown outcome, with the stock CLI's signal and update.
func TestStockCLI_Reconciles(t *testing.T) {
	t.Parallel()
	o, r := tenantEnv{testEnv: newTestEnv(t), tenant: jig.DefaultTenant}, newLedgerReceiver(t)
	var deaths atomic.Int64
	t.Cleanup(o.supervise(t.Context(), 1, &deaths))
	ids := map[jig.ReconcileOutcome]string{}
	for outcome, cut := range map[jig.ReconcileOutcome]string{jig.OutcomeHappened: "after", jig.OutcomeNotHappened: "before", jig.OutcomeGiveUp: "after"} {
		require.True(t, eventually(t.Context(), patience, func() bool { return int(deaths.Load()) == len(ids) }), "each call kills its own worker")
		ids[outcome] = newID(o.tenant)
		_, err := o.StartCall(t.Context(), callInput("test.cut_once", map[string]any{"url": r.URL, "name": string(outcome), "cut": cut}), ids[outcome])
		require.NoError(t, err)
	}
	for _, id := range ids {
		require.Equal(t, jig.PendingReconcile, o.waiting(id).Pending[0].Kind)
	}
	o.sent(ids[jig.OutcomeHappened], "reconcile", `{"call":"1.1","outcome":"happened","result":{"id":7},"by":"ana"}`)
	require.JSONEq(t, `{"id":7}`, string(o.ended(ids[jig.OutcomeHappened], jig.CallSucceeded).Result.Data))

	o.sent(ids[jig.OutcomeGiveUp], "reconcile", `{"call":"1.1","outcome":"give_up","by":"ana"}`)
	require.Equal(t, jig.CodeOutcomeUnknown, o.ended(ids[jig.OutcomeGiveUp], jig.CallFailed).Result.Error.Code)

	again := ids[jig.OutcomeNotHappened]
	require.Contains(t, o.updated(again, "decide", `{"call":"1.1","by":"ana"}`)[0].Reason, "reconcile")
	require.Contains(t, o.updated(again, "reconcile", `{"call":"1.1","outcome":"perhaps","by":"ana"}`)[0].Reason, "not an outcome")
	require.Equal(t, jig.CallReserved, o.updated(again, "reconcile", `{"call":"1.1","outcome":"not_happened","by":"ana"}`)[0].Status)
	o.ended(again, jig.CallSucceeded)
	requests, _ := r.count(string(jig.OutcomeNotHappened))
	require.Equal(t, 1, requests, "the call ran once, after somebody said that it had not happened")
}
