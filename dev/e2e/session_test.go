package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// calls returns the rules of a script that makes some calls in its first pass and answers in its second.
func calls(list ...string) string {
	var b strings.Builder
	b.WriteString("    - when: pass == 1\n      calls:\n")
	for _, c := range list {
		tool, input, _ := strings.Cut(c, " ")
		fmt.Fprintf(&b, "        - {tool: %s, input: %s}\n", tool, input)
	}
	b.WriteString("    - answer: done\n")
	return b.String()
}

func byID(v jig.SessionView) map[string]jig.CallView {
	m := map[string]jig.CallView{}
	for _, c := range v.Calls {
		m[c.Call] = c
	}
	return m
}

// stored returns a session from the store, with the calls of all passes.
func (d *testEnv) stored(id string) jig.SessionView {
	d.t.Helper()
	view, err := d.Status(d.t.Context(), jig.DefaultTenant, id)
	require.NoError(d.t, err)
	return view
}

func TestSession_RunsToItsAnswer(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["test.*"]`, calls(`test.echo {value: "hello ${input.name}"}`, `test.quick {value: quick}`)), map[string]any{"name": "ana"})
	view := d.finish(id)
	require.Equal(t, jig.StatusCompleted, view.Status)
	require.Equal(t, "done", view.Answer)
	require.Equal(t, 2, view.Pass)

	view = d.stored(id)
	require.Equal(t, "done", view.Answer)
	require.Equal(t, "echoed hello ana", byID(view)["1.1"].Summary)
	var types []string
	for _, e := range d.events(id) {
		types = append(types, string(e.Type))
	}
	require.Equal(t, "session.started", types[0])
	require.Equal(t, "session.completed", types[len(types)-1])
	require.Equal(t, 2, strings.Count(strings.Join(types, " "), "tool.completed"))

	result, err := d.Result(t.Context(), jig.DefaultTenant, id)
	require.NoError(t, err)
	require.Equal(t, "done", result.Answer)
}

func TestFailingCall_DoesNotAffectItsSiblings(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	var list []string
	for i := range 8 {
		list = append(list, fmt.Sprintf(`test.echo {value: "v%d"}`, i))
	}
	list = append(list, `test.fail {name: a}`, `test.panic {name: b}`)
	view := d.finish(d.run(agent(`["*"]`, calls(list...)), nil))
	require.Equal(t, jig.StatusCompleted, view.Status)
	got := byID(d.stored(view.SessionID))
	for i := range 8 {
		require.Equal(t, jig.CallSucceeded, got[jig.CallID(1, i+1)].Status)
	}
	require.Equal(t, jig.CallFailed, got["1.9"].Status)
	require.Equal(t, jig.CodeConflict, got["1.9"].Error.Code)
	require.Equal(t, "broken", got["1.9"].Error.Reason)
	require.Equal(t, jig.CodeInternal, got["1.10"].Error.Code)
	require.NotContains(t, got["1.10"].Error.Message, "goroutine", "users must not see a stack trace")
}

func TestTenant_ComesFromTheSession(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	view := d.finish(d.run(agent(`["*"]`, `    - when: pass == 1
      calls: [{tool: test.whoami, input: {tenant_id: somebody_else}}]
    - answer: "${calls[0].data.tenant} ${calls[0].data.principal}"
`), nil))
	require.Equal(t, "default tester", view.Answer)
}

func TestSlowTools_RunSideBySide(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	var list []string
	for i := range 10 {
		list = append(list, fmt.Sprintf(`test.sleep {ms: 3000, name: "s%d"}`, i))
	}
	view := d.finish(d.run(agent(`["*"]`, calls(list...)), nil))
	started := d.events(view.SessionID, jig.EventToolStarted)
	completed := d.events(view.SessionID, jig.EventToolCompleted)
	require.Len(t, completed, 10)
	require.True(t, started[9].At.Before(completed[0].At), "the last call began before the first had ended")
}

func TestCalls_IdenticalOnesRunOnce(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	r := newReceiver(t)
	view := d.finish(d.run(agent(`["*"]`, `    - when: pass == 1
      calls:
        - {tool: test.keyed, input: {url: "${input.url}", name: a}}
        - {tool: test.keyed, input: {name: a, url: "${input.url}"}}
        - {tool: test.echo, input: {value: x}}
    - when: pass == 2
      calls:
        - {tool: test.keyed, input: {url: "${input.url}", name: a}}
        - {tool: test.keyed, input: {url: "${input.url}", name: b}}
    - calls:
        - {tool: test.keyed, input: {url: "${input.url}", name: b}}
        - {tool: test.echo, input: {value: x}}
`), map[string]any{"url": r.URL}))
	require.Equal(t, jig.StatusCompleted, view.Status)
	require.Equal(t, jig.ReasonAllToolsDuplicate, view.Reason)
	require.Equal(t, 3, view.Pass)
	for _, name := range []string{"a", "b"} {
		requests, _ := r.count(name)
		require.Equal(t, 1, requests, name)
	}
	require.Len(t, d.events(view.SessionID, jig.EventToolSkipped), 4)
	require.Equal(t, jig.CodeDuplicate, byID(d.stored(view.SessionID))["1.2"].Error.Code)
}

func TestCalls_ReadMayBeRepeatedAfterAWrite(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	r := newReceiver(t)
	id := d.run(agent(`["*"]`, `    - when: pass == 1 || pass == 3
      calls: [{tool: test.echo, input: {value: x}}]
    - when: pass == 2
      calls: [{tool: test.write, input: {url: "${input.url}", name: w}}]
    - answer: done
`), map[string]any{"url": r.URL})
	d.waiting(id)
	_, err := d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "2.1", By: "ana"}})
	require.NoError(t, err)
	view := d.finish(id)
	require.Equal(t, "done", view.Answer)
	require.Equal(t, jig.CallSucceeded, byID(d.stored(id))["3.1"].Status)
}

func TestConcurrencyKey_KeepsTheOrder(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	r := newReceiver(t)
	view := d.finish(d.run(agent(`["*"]`, `    - when: pass == 1
      for_each: "[1, 2, 3, 4, 5, 6]"
      calls:
        - {tool: test.serial, input: {url: "${input.url}", name: "k${item}", key: same, before: 30}}
        - {tool: test.serial, input: {url: "${input.url}", name: "o${item}", key: "other${item}", before: 30}}
    - answer: done
`), map[string]any{"url": r.URL}))
	require.Equal(t, jig.StatusCompleted, view.Status)
	var same []string
	r.mu.Lock()
	for _, name := range r.order {
		if strings.HasPrefix(name, "k") {
			same = append(same, name)
		}
	}
	r.mu.Unlock()
	require.Equal(t, []string{"k1", "k2", "k3", "k4", "k5", "k6"}, same)

	running := map[string]bool{}
	beside := false
	inputs := map[string]bool{} // the calls that share a key have odd ordinals
	for _, e := range d.events(view.SessionID, jig.EventToolStarted, jig.EventToolCompleted) {
		_, ordinal, _, err := jig.ParseCallID(e.CallID)
		require.NoError(t, err)
		shares := ordinal%2 == 1
		if e.Type == jig.EventToolCompleted {
			delete(running, e.CallID)
			delete(inputs, e.CallID)
			continue
		}
		if shares {
			require.Empty(t, inputs, "calls with the same key ran at the same time")
			inputs[e.CallID] = true
		}
		running[e.CallID] = true
		beside = beside || len(running) > 1
	}
	require.True(t, beside, "calls with other keys ran at the same time")
}

func TestMessage_ToAnEndedSessionStartsItsNextPass(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, `    - when: messages.size() > 0
      answer: "heard ${messages[messages.size()-1].text} in pass ${pass}"
    - answer: waiting
`), nil)
	require.Equal(t, "waiting", d.finish(id).Answer)
	require.NoError(t, d.Message(t.Context(), jig.DefaultTenant, id, "hello", "ana"))
	view := d.until(id, func(v jig.SessionView) bool { return v.Status.Final() && v.Pass == 2 })
	require.Equal(t, "heard hello in pass 2", view.Answer)
	require.NoError(t, d.Message(t.Context(), jig.DefaultTenant, id, "again", "ana"))
	view = d.until(id, func(v jig.SessionView) bool { return v.Status.Final() && v.Pass == 3 })
	require.Equal(t, "heard again in pass 3", view.Answer)
}

// A reset of a session's first run brings the messages of the later runs to the new run. No message counts twice, even if two runs received
// messages with the same text.
func TestReset_OfAnEarlierRunRepeatsNoMessage(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.run(agent(`["*"]`, `    - when: pass <= 2
      calls: [{tool: test.write, input: {url: "${input.url}", name: "w${pass}"}}]
    - answer: "heard ${messages.size()}"
`), map[string]any{"url": r.URL})
	for pass := 1; pass <= 2; pass++ {
		call := jig.CallID(pass, 1)
		d.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 && v.Pending[0].Call == call })
		d.signal(id, protocol.SignalMessage, map[string]string{"text": "go on", "by": "ana"})
		require.True(t, eventually(t.Context(), patience, func() bool { return len(d.eventsSoFar(id, jig.EventMessageAdded)) == pass }))
		d.signal(id, protocol.SignalApprove, map[string]string{"call": call, "by": "ana"})
	}
	require.Equal(t, "heard 2", d.finish(id).Answer)
	runs := d.runs(id)
	_, err := shared.temporal.ResetWorkflowExecution(t.Context(), &workflowservicepb.ResetWorkflowExecutionRequest{
		Namespace:         shared.stack.Namespace(),
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: runs[len(runs)-1]},
		Reason:            "a test", RequestId: jig.NewSessionID(), WorkflowTaskFinishEventId: 3,
	})
	require.NoError(t, err)
	require.Equal(t, "heard 2", d.finish(id).Answer)
	list := d.imposed(id)
	runs = d.runs(id)
	require.Len(t, list, 1)
	require.Equal(t, audit.AuditReset, list[0].Kind)
	require.Equal(t, runs[len(runs)-1], list[0].Subject, "the new run, which the others continue")
	require.Equal(t, "a test", list[0].Reason)
	require.Len(t, d.eventsSoFar(id, jig.EventMessageAdded), 2)
	for _, name := range []string{"w1", "w2"} {
		requests, _ := r.count(name)
		require.Equal(t, 1, requests, name)
	}
}

func TestStart_RepeatedIDGivesOneSession(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	options := client.StartOptions{
		ID: newID(jig.DefaultTenant), Document: agent(`["*"]`, "    - answer: once\n"), Principal: jig.Principal{ID: "tester"},
	}
	first, err := d.Start(t.Context(), options)
	require.NoError(t, err)
	require.False(t, first.Existing)
	second, err := d.Start(t.Context(), options)
	require.NoError(t, err)
	require.True(t, second.Existing)
	d.finish(first.SessionID)
	third, err := d.Start(t.Context(), options)
	require.NoError(t, err)
	require.True(t, third.Existing)
	require.Len(t, d.events(first.SessionID, jig.EventSessionStarted), 1)

	options.Task = "something else"
	_, err = d.Start(t.Context(), options)
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err), "a different request under the same id is refused")
	_, err = d.Trigger(t.Context(), callInput("test.echo", map[string]any{"value": "x"}), options.ID)
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err))
}

func TestCancel_StopsRunningTools(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, calls(`test.sleep {ms: 60000, name: a}`, `test.write {url: "http://127.0.0.1:1", name: w}`)), nil)
	d.until(id, func(v jig.SessionView) bool {
		return len(v.Pending) == 1 && len(d.eventsSoFar(id, jig.EventToolStarted)) == 1
	})
	require.NoError(t, d.Cancel(t.Context(), jig.DefaultTenant, id))
	view := d.finish(id)
	require.Equal(t, jig.StatusCanceled, view.Status)
	require.Len(t, d.events(id, jig.EventToolCancelled), 2)
	require.Len(t, d.events(id, jig.EventSessionCanceled), 1)
	require.Empty(t, d.stored(id).Pending)
}

func (d *testEnv) eventsSoFar(id string, types ...jig.EventType) []jig.Event {
	list, err := d.Events(d.t.Context(), jig.DefaultTenant, id, 0)
	if err != nil {
		return nil
	}
	var some []jig.Event
	for _, e := range list {
		for _, want := range types {
			if e.Type == want {
				some = append(some, e)
			}
		}
	}
	return some
}

func TestTrigger_AnswersAtOnceOrGivesAHandle(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	r := newReceiver(t)
	quick, err := d.Trigger(t.Context(), callInput("test.echo", map[string]any{"value": "x"}), "")
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, quick.Status)
	require.JSONEq(t, `{"value":"x"}`, string(quick.Result.Data))

	gated, err := d.Trigger(t.Context(), callInput("test.write", map[string]any{"url": r.URL, "name": "w"}), "")
	require.NoError(t, err)
	require.Equal(t, jig.CallWaiting, gated.Status)
	_, err = d.Decide(t.Context(), jig.DefaultTenant, gated.SessionID, []jig.Decision{{Call: gated.Call, By: "ana"}})
	require.NoError(t, err)
	done, err := d.WaitCall(t.Context(), jig.DefaultTenant, gated.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status)

	_, err = d.Trigger(t.Context(), callInput("test.ehco", nil), "")
	require.Equal(t, jig.CodeToolNotFound, jig.CodeOf(err))
	_, err = d.Trigger(t.Context(), callInput("test.echo", nil), "")
	require.Equal(t, jig.CodeMissingParam, jig.CodeOf(err))
}

func callInput(tool string, input any) protocol.CallInput {
	raw, _ := json.Marshal(input) //nolint:errcheck // a test's literal
	if input == nil {
		raw = nil
	}
	return protocol.CallInput{Tenant: jig.DefaultTenant, Tool: tool, Input: raw, Principal: jig.Principal{ID: "tester"}}
}
