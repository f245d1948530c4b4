package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/workflows"
)

// compose starts an execution spec that is sent along, and returns the session.
func (d *testEnv) compose(document string, input any) string {
	d.t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(d.t, err)
	started, err := d.StartCall(d.t.Context(), client.CallInput{
		Document: document, DocumentName: "probe.yaml", Input: raw, Principal: jig.Principal{ID: "tester"},
	}, "")
	require.NoError(d.t, err)
	return started.SessionID
}

// output waits for a call's end and returns its whole result.
func (d *testEnv) output(id string) jig.ToolResult {
	d.t.Helper()
	result, err := d.WaitCall(d.t.Context(), jig.DefaultTenant, id)
	require.NoError(d.t, err)
	whole, err := d.WholeResult(d.t.Context(), jig.DefaultTenant, result)
	require.NoError(d.t, err)
	require.NotNil(d.t, whole)
	return *whole
}

// register registers documents for the default tenant.
func (d *testEnv) register(documents map[string]string) {
	d.t.Helper()
	d.registerIn(jig.DefaultTenant, documents)
}

// registerIn registers documents for a tenant.
func (d *testEnv) registerIn(tenant string, documents map[string]string) {
	d.t.Helper()
	var files []map[string]string
	for name, body := range documents {
		files = append(files, map[string]string{"path": name, "body": body})
	}
	in := callInput("catalog.put", map[string]any{"documents": files})
	in.Tenant = tenant
	result, err := d.Trigger(d.t.Context(), in, "")
	require.NoError(d.t, err)
	d.signal(result.SessionID, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	done, err := d.WaitCall(d.t.Context(), tenant, result.SessionID)
	require.NoError(d.t, err)
	require.Equal(d.t, jig.CallSucceeded, done.Status, "%+v", done.Result)
}

const tour = `kind: composition
name: probe.tour
description: Takes every way through a composition that needs no person.
input_schema:
  type: object
  required: [url, names]
  properties:
    url: {type: string}
    names: {type: array, items: {type: string}}
    loud: {type: boolean, default: false}
steps:
  - id: hello
    tool: test.echo
    input: {value: "hello ${input.names[0]}"}
  - id: each
    for_each: input.names
    max_parallel: 3
    tool: test.keyed
    input: {url: "${input.url}", name: "each-${item}"}
  - id: shout
    if: input.loud
    tool: test.echo
    input: {value: loud}
  - parallel:
      - id: left
        tool: test.echo
        input: {value: left}
      - id: right
        tool: test.quick
        input: {value: right}
  - set: {count: "${steps.each.size()}"}
  - switch:
      - when: vars.count > 2
        steps:
          - id: many
            tool: test.quick
            input: {value: "many: ${vars.count}"}
      - else: true
        steps:
          - id: few
            tool: test.quick
            input: {value: few}
  - id: broken
    tool: test.fail
    input: {name: x}
    on_error:
      catch:
        - id: caught
          tool: test.quick
          input: {value: "caught ${error.code}"}
  - emit: {event: toured, data: {count: "${vars.count}"}}
output:
  hello: "${steps.hello.data.value}"
  all: "${steps.each.all(r, r.success)}"
  shout: "${steps.shout}"
  sides: "${steps.left.data.value + steps.right.data.value}"
  many: "${steps.many.data.value}"
  caught: "${steps.caught.data.value}"
`

func TestComposition_EveryKindOfStep(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.compose(tour, map[string]any{"url": r.URL, "names": []string{"ana", "ben", "cleo"}})
	result := d.output(id)
	require.True(t, result.Success, "%+v", result.Error)
	require.JSONEq(t, `{"hello":"hello ana","all":true,"shout":{"skipped":true},"sides":"leftright","many":"many: 3","caught":"caught CONFLICT"}`,
		string(result.Data))
	for _, name := range []string{"ana", "ben", "cleo"} {
		requests, keys := r.count("each-" + name)
		require.Equal(t, [2]int{1, 1}, [2]int{requests, keys}, name)
	}
	calls := byID(d.stored(id))
	require.Equal(t, jig.CallSucceeded, calls["1.1/each[2]"].Status)
	require.Equal(t, jig.CallFailed, calls["1.1/broken"].Status)
	toured := d.events(id, "custom.toured")
	require.Len(t, toured, 1)
	require.Contains(t, string(toured[0].Data), `3`)
	require.Equal(t, jig.StatusCompleted, d.stored(id).Status)
}

const gatedSpec = `kind: composition
name: probe.gated
description: Writes to the receiver, which a person must allow.
input_schema:
  type: object
  required: [url, name]
  properties: {url: {type: string}, name: {type: string}}
steps:
  - id: before
    tool: test.quick
    input: {value: a}
  - id: publish
    tool: test.write
    input: {url: "${input.url}", name: "${input.name}"}
  - id: after
    tool: test.quick
    input: {value: "${string(steps.publish.success)}"}
output: {published: "${steps.after.data.value}"}
`

func TestComposition_StepWaitsForApproval(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	id := d.compose(gatedSpec, map[string]any{"url": r.URL, "name": "w"})
	view := d.waiting(id)
	require.Len(t, view.Pending, 1)
	require.Equal(t, "1.1/publish", view.Pending[0].Call)
	requests, _ := r.count("w")
	require.Zero(t, requests)
	described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), workflows.FrameWorkflowID(id, "1.1"), "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, described.GetWorkflowExecutionInfo().GetStatus(), "a composition is a child workflow")

	d.kill() // an approval does not depend on the worker that asked for it
	d.start()
	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/publish", "by": "ana", "digest": view.Pending[0].Digest})
	result := d.output(id)
	require.True(t, result.Success, "%+v", result.Error)
	require.JSONEq(t, `{"published":"true"}`, string(result.Data))
	requests, _ = r.count("w")
	require.Equal(t, 1, requests)
}

func TestComposition_StepDenied(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.compose(gatedSpec, map[string]any{"url": r.URL, "name": "w"})
	d.waiting(id)
	ruled, err := d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "1.1/publish", By: "ana", Answer: jig.AnswerDeny, Reason: "not today"}})
	require.NoError(t, err)
	require.Equal(t, jig.CallDenied, ruled.Decisions[0].Status)
	result := d.output(id)
	require.False(t, result.Success)
	require.Equal(t, jig.CodeDenied, result.Error.Code)
	requests, _ := r.count("w")
	require.Zero(t, requests)
}

// An agent calls a registered composition like any other tool, and its approvals are answered like those of other calls. A new version of
// the document does not affect a run that is waiting.
func TestComposition_IsCalledByAnAgent(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	name := "probe.gated" + strings.ToUpper(d.name[:4])
	document := strings.ReplaceAll(gatedSpec, "probe.gated", name)
	d.register(map[string]string{"gated.yaml": document})
	rules := fmt.Sprintf(`    - when: pass == 1
      calls:
        - {tool: test.quick, input: {value: beside}}
        - {tool: %s, input: {url: "${input.url}", name: "${input.name}"}}
    - answer: "${calls[1].success ? calls[1].data.published : calls[1].error.code}"
`, name)
	id := d.run(agent(`["*"]`, rules), map[string]any{"url": r.URL, "name": "w"})
	view := d.waiting(id)
	require.Equal(t, "1.2/publish", view.Pending[0].Call)
	require.True(t, eventually(t.Context(), patience, func() bool {
		count, err := shared.temporal.CountWorkflow(t.Context(), countRequest(
			fmt.Sprintf(`JigStatus="input_required" and WorkflowId=%q`, id)))
		return err == nil && count.GetCount() == 1
	}))

	d.register(map[string]string{"gated.yaml": strings.ReplaceAll(document, "${string(steps.publish.success)}", "another version")})
	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.2/publish", "by": "ana"})
	require.Equal(t, "true", d.finish(id).Answer, "the run keeps the version that it started with")

	result, err := d.Trigger(t.Context(), callInput(name, map[string]any{"url": r.URL, "name": "v"}), "")
	require.NoError(t, err)
	require.Equal(t, jig.CallExecuting, result.Status)
	d.waiting(result.SessionID)
	d.signal(result.SessionID, protocol.SignalApprove, map[string]string{"call": "1.1/publish", "by": "ana"})
	require.JSONEq(t, `{"published":"another version"}`, string(d.output(result.SessionID).Data))

	limited := d.run(agent(`["`+name+`"]`, strings.Replace(rules, "        - {tool: test.quick, input: {value: beside}}\n", "", 1)+"", "max_passes: 3"),
		map[string]any{"url": r.URL, "name": "u"})
	require.Equal(t, jig.StatusFailed, d.finish(limited).Status, "calls[1] is not there")
	require.Equal(t, jig.CodeNotPermitted, byID(d.stored(limited))["1.1/before"].Error.Code, "a composition can do what its caller may")
}

const waitingSpec = `kind: composition
name: probe.waits
description: Waits for a moment, then for an event.
steps:
  - wait: 1s
  - id: paid
    wait_for: {event: paid, when: "event.data.id == 7", timeout: 60s}
  - id: late
    wait_for: {event: never, timeout: 1s}
    on_error: continue
output: {paid: "${steps.paid.data}", late: "${steps.late.error.code}"}
`

// pay sends the events that waitingSpec waits for, once the composition has started.
func (d *testEnv) pay(id string) {
	d.t.Helper()
	require.True(d.t, eventually(d.t.Context(), patience, func() bool {
		_, err := shared.temporal.DescribeWorkflowExecution(d.t.Context(), workflows.FrameWorkflowID(id, "1.1"), "")
		return err == nil && len(d.events(id, jig.EventToolStarted)) > 0
	}))
	d.signal(id, protocol.SignalEvent, map[string]any{"name": "paid", "data": map[string]any{"id": 6}})
	d.signal(id, protocol.SignalEvent, map[string]any{"name": "paid", "data": map[string]any{"id": 7, "sum": 12.5}})
}

func TestComposition_Waits(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	id := d.compose(waitingSpec, nil)
	d.pay(id)
	d.kill()
	d.start()
	result := d.output(id)
	require.True(t, result.Success, "%+v", result.Error)
	var out struct {
		Paid json.RawMessage `json:"paid"`
		Late string          `json:"late"`
	}
	require.NoError(t, json.Unmarshal(result.Data, &out))
	require.Contains(t, string(out.Paid), `12.5`)
	require.Equal(t, "TIMEOUT", out.Late)
}

const undoing = `kind: composition
name: probe.undoing
description: Makes two things and fails, or waits, before it is over.
input_schema:
  type: object
  required: [url]
  properties: {url: {type: string}, wait: {type: boolean, default: false}}
steps:
  - id: one
    tool: test.keyed
    input: {url: "${input.url}", name: one}
    undo: {tool: test.keyed, input: {url: "${input.url}", name: undo-one}}
  - id: two
    for_each: "[1, 2]"
    tool: test.keyed
    input: {url: "${input.url}", name: "two-${item}"}
    undo: {tool: test.keyed, input: {url: "${input.url}", name: "undo-two-${item}"}}
  - if: input.wait
    wait: 1h
  - fail: {message: "it cannot go on", reason: nope}
`

func TestComposition_UndoesItsSteps(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.compose(undoing, map[string]any{"url": r.URL})
	result := d.output(id)
	require.False(t, result.Success)
	require.Equal(t, "nope", result.Error.Reason)
	require.Contains(t, result.Error.Message, "it cannot go on")
	r.mu.Lock()
	require.Equal(t, "undo-one", r.order[len(r.order)-1], "%v", r.order)
	r.mu.Unlock()
	for _, name := range []string{"undo-one", "undo-two-1", "undo-two-2"} {
		requests, _ := r.count(name)
		require.Equal(t, 1, requests, name)
	}
	require.Len(t, d.events(id, jig.EventToolUndone), 3)
}

func TestComposition_UndoesItsStepsWhenCanceled(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.compose(undoing, map[string]any{"url": r.URL, "wait": true})
	require.True(t, eventually(t.Context(), patience, func() bool { n, _ := r.count("two-2"); return n == 1 }))
	require.NoError(t, d.Cancel(t.Context(), jig.DefaultTenant, id))
	require.Equal(t, jig.StatusCanceled, d.finish(id).Status)
	for _, name := range []string{"undo-one", "undo-two-1", "undo-two-2"} {
		requests, _ := r.count(name)
		require.Equal(t, 1, requests, name)
	}
	require.Equal(t, jig.CallCanceled, byID(d.stored(id))["1.1"].Status)
	_, err := d.WaitCall(t.Context(), jig.DefaultTenant, id)
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeCanceled}, "a waiting client gets an error")
}

// nest starts a composition that calls another one, which waits for approval, and an agent.
func (d *testEnv) nest(r *receiver) string {
	d.t.Helper()
	tag := strings.ToUpper(d.name[:4])
	inner := strings.ReplaceAll(gatedSpec, "probe.gated", "probe.inner"+tag)
	name := "helper-" + strings.ToLower(tag)
	helper := strings.Replace(agent(`["test.*"]`, `    - when: pass == 1
      calls: [{tool: test.echo, input: {value: "${input.value}"}}]
    - answer: "the agent heard ${calls[0].data.value}"
`), "name: probe", "name: "+name, 1)
	d.register(map[string]string{"inner.yaml": inner, "helper.md": helper})
	return d.compose(fmt.Sprintf(`kind: composition
name: probe.outer
description: Calls another composition and an agent.
input_schema:
  type: object
  required: [url]
  properties: {url: {type: string}}
steps:
  - parallel:
      - id: inner
        composition: probe.inner%s
        input: {url: "${input.url}", name: nested}
      - id: asked
        prompt: {mode: agent, agent: %s, agent_input: {value: hello}}
output: {inner: "${steps.inner.data.published}", agent: "${steps.asked.data.answer}"}
`, tag, name), map[string]any{"url": r.URL})
}

func TestComposition_CallsCompositionsAndAgents(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.nest(r)
	require.Equal(t, "1.1/inner/publish", d.waiting(id).Pending[0].Call)
	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/inner/publish", "by": "ana"})
	result := d.output(id)
	require.True(t, result.Success, "%+v", result.Error)
	require.JSONEq(t, `{"inner":"true","agent":"the agent heard hello"}`, string(result.Data))
	child, err := d.Status(t.Context(), jig.DefaultTenant, jig.ChildSessionID(id, "1.1/asked"))
	require.NoError(t, err)
	require.Equal(t, jig.StatusCompleted, child.Status)
}

// loopSpec returns a composition that calls a tool for each of many items.
func loopSpec(tool string, items int) string {
	return fmt.Sprintf(`kind: composition
name: probe.loop
description: Does the same many times.
steps:
  - id: all
    for_each: lists.range(%[2]d)
    max_parallel: 50
    tool: %[1]s
    input: {value: "v${item}"}
output: {count: "${steps.all.size()}", last: "${steps.all[%[2]d - 1].data.value}"}
`, tool, items)
}

// A loop over many items completes with small histories, in several workflow runs.
func TestComposition_BigLoop(t *testing.T) {
	t.Parallel()
	items, _ := chaos(t, 10_000, 1000, 300)
	for _, tool := range []string{"test.quick", "test.echo"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			d := joinEnv(t)
			id := d.compose(loopSpec(tool, items), nil)
			result := d.output(id)
			require.True(t, result.Success, "%+v", result.Error)
			require.JSONEq(t, fmt.Sprintf(`{"count":%d,"last":"v%d"}`, items, items-1), string(result.Data))
			b := d.histories(workflows.FrameWorkflowID(id, "1.1"))
			require.LessOrEqual(t, b.events, int64(1000))
			require.LessOrEqual(t, b.bytes, int64(1<<20))
			t.Logf("%d items: %d runs, at most %d events and %d bytes", items, b.runs, b.events, b.bytes)
		})
	}
}

// If a composition's workflow is terminated from outside, its call fails, its open calls are closed, and its session continues.
func TestComposition_TerminatedExternally(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.compose(gatedSpec, map[string]any{"url": r.URL, "name": "w"})
	d.waiting(id)
	require.NoError(t, shared.temporal.TerminateWorkflow(t.Context(), workflows.FrameWorkflowID(id, "1.1"), "", "by mistake"))
	result := d.output(id)
	require.False(t, result.Success)
	require.Equal(t, jig.ReasonTerminated, result.Error.Reason)
	view := d.stored(id)
	require.Equal(t, jig.StatusFailed, view.Status)
	require.Empty(t, view.Pending)
	require.Equal(t, jig.CallCanceled, byID(view)["1.1/publish"].Status)
	list := d.imposed(id)
	require.Len(t, list, 1)
	require.Equal(t, audit.AuditTerminated, list[0].Kind)
	require.Equal(t, "1.1", list[0].Call)
	require.Equal(t, "by mistake", list[0].Reason)
	requests, _ := r.count("w")
	require.Zero(t, requests)
}

// After a reset, a session starts its composition again. The composition finds the finished steps and continues from there.
func TestComposition_SurvivesAReset(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.compose(strings.Replace(gatedSpec, "tool: test.quick\n    input: {value: a}", "tool: test.keyed\n    input: {url: \"${input.url}\", name: before}", 1),
		map[string]any{"url": r.URL, "name": "w"})
	d.waiting(id)
	described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
	_, err = shared.temporal.ResetWorkflowExecution(t.Context(), &workflowservicepb.ResetWorkflowExecutionRequest{
		Namespace: shared.stack.Namespace(), WorkflowExecution: described.GetWorkflowExecutionInfo().GetExecution(),
		Reason: "a test", RequestId: jig.NewSessionID(), WorkflowTaskFinishEventId: 3,
	})
	require.NoError(t, err)
	view := d.waiting(id)
	require.Equal(t, "1.1/publish", view.Pending[0].Call)
	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/publish", "by": "ana"})
	require.True(t, d.output(id).Success)
	list := d.imposed(id)
	require.Len(t, list, 1)
	require.Equal(t, audit.AuditReset, list[0].Kind)
	for _, name := range []string{"before", "w"} {
		requests, _ := r.count(name)
		require.Equal(t, 1, requests, name)
	}
}
