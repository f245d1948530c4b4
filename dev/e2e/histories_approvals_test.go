package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

// approvalPaths returns the paths through a session in which people do more than approve or deny one call.
func approvalPaths() map[string]func(*testEnv, *receiver) string {
	return map[string]func(*testEnv, *receiver) string{
		"twenty":           twenty,
		"question":         questioned,
		"grant":            covered,
		"votes":            voted,
		"paused":           held,
		"paused-pass":      rested,
		"ending-fail":      lapsed("fail", false),
		"ending-cancel":    lapsed("cancel", false),
		"ending-composed":  lapsed("fail", true),
		"composition-vote": votedInside,
	}
}

// withTenant returns an environment with its own tenant and the given policies.
func (d *testEnv) withTenant(documents ...string) tenantEnv {
	d.t.Helper()
	o := tenantEnv{testEnv: d, tenant: "office-" + d.name[:8]}
	o.install("tenant.yaml", o.tenantDocument(""), o.trusting)
	for i, body := range documents {
		o.install(fmt.Sprintf("policy-%d.yaml", i), body, o.trusting)
	}
	o.ruledBy(documents...)
	return o
}

// ruledBy waits until the worker applies the given policies. The worker checks for changes at most once a second.
func (o tenantEnv) ruledBy(documents ...string) {
	o.t.Helper()
	for i, body := range documents {
		doc, problems := spec.Load("policy.yaml", []byte(body))
		require.Empty(o.t, problems.Errors())
		require.True(o.t, eventually(o.t.Context(), patience, func() bool {
			asked := o.trigger("catalog.put", map[string]any{"documents": []map[string]string{{"path": "probe.yaml", "body": body}}})
			view := o.waiting(asked.SessionID)
			o.signal(asked.SessionID, protocol.SignalDeny, map[string]string{"call": "1.1", "by": "ana"})
			return strings.Contains(view.Pending[0].PolicyVersion, doc.Version)
		}), "policy %d", i)
	}
}

// run starts a session in the tenant.
func (o tenantEnv) run(document string, input any) string {
	o.t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(o.t, err)
	started, err := o.Start(o.t.Context(), client.StartOptions{
		Tenant: o.tenant, Document: document, DocumentName: "probe.md", Input: raw, Principal: jig.Principal{ID: "tester"},
	})
	require.NoError(o.t, err)
	return started.SessionID
}

const twentyRules = `    - when: pass == 1
      for_each: "lists.range(20)"
      calls: [{tool: test.write, input: {url: "${input.url}", name: "t${item}"}}]
    - answer: done
`

// twenty decides twenty calls of one pass in random order, with mixed answers.
func twenty(d *testEnv, r *receiver) string {
	id := d.run(agent(`["*"]`, twentyRules), map[string]any{"url": r.URL})
	require.Len(d.t, d.waiting(id).Pending, 20)
	random := rand.New(rand.NewPCG(20, 26)) // a fixed seed, so that the order can be repeated
	for _, i := range random.Perm(20) {
		call := jig.CallID(1, i+1)
		switch random.IntN(4) {
		case 0:
			d.signal(id, protocol.SignalDeny, map[string]string{"call": call, "by": "ana", "reason": "not this one"})
		case 1:
			changed := json.RawMessage(fmt.Sprintf(`{"url":%q,"name":"changed%d"}`, r.URL, i))
			_, err := d.Decide(d.t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: call, By: "ana", Input: changed}})
			require.NoError(d.t, err)
		default:
			d.signal(id, protocol.SignalApprove, map[string]string{"call": call, "by": "ana"})
		}
	}
	return id
}

func questioned(d *testEnv, _ *receiver) string {
	id := d.run(agent(`["*"]`, `    - when: pass == 1
      calls: [{tool: person.ask, input: {question: "Which?", options: [a, b]}}]
    - answer: "${calls[0].data.answer}"
`), nil)
	d.waiting(id)
	d.signal(id, protocol.SignalAnswer, map[string]any{"call": "1.1", "by": "ana", "value": "c"})
	d.signal(id, protocol.SignalAnswer, map[string]any{"call": "1.1", "by": "ana", "value": "b"})
	return id
}

const twiceRules = `    - when: pass < 3
      calls: [{tool: test.write, input: {url: "${input.url}", name: "n${pass}"}}]
    - answer: done
`

func covered(d *testEnv, r *receiver) string {
	o := d.withTenant()
	id := o.run(agent(`["*"]`, twiceRules), map[string]any{"url": r.URL})
	d.waiting(id)
	o.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{MaxUses: 1}})
	return id
}

func voted(d *testEnv, r *receiver) string {
	o := d.withTenant(financePolicy)
	id := o.run(agent(`["*"]`, `    - when: pass == 1
      calls: [{tool: test.write, input: {url: "${input.url}", name: large-1}}]
    - answer: done
`), map[string]any{"url": r.URL})
	d.waiting(id)
	require.Equal(d.t, jig.CallWaiting, o.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Status)
	o.decided(id, jig.Decision{By: "ben", Answer: jig.AnswerDelegate, To: "dora"})
	o.decided(id, jig.Decision{By: "dora", Answer: jig.AnswerApprove})
	return id
}

func votedInside(d *testEnv, r *receiver) string {
	o := d.withTenant(financePolicy)
	started, err := o.StartCall(o.t.Context(), client.CallInput{
		Tenant: o.tenant, Document: gatedSpec, DocumentName: "probe.yaml", Principal: jig.Principal{ID: "tester"},
		Input: json.RawMessage(fmt.Sprintf(`{"url":%q,"name":"large-2"}`, r.URL)),
	}, "")
	require.NoError(o.t, err)
	id := started.SessionID
	d.waiting(id)
	require.Equal(d.t, jig.CallWaiting, o.decided(id, jig.Decision{Call: "1.1/publish", By: "ana", Answer: jig.AnswerApprove}).Status)
	o.decided(id, jig.Decision{Call: "1.1/publish", By: "ben", Answer: jig.AnswerApprove})
	return id
}

func held(d *testEnv, _ *receiver) string {
	o := d.withTenant()
	_, err := o.Pause(o.t.Context(), protocol.PauseRequest{Tenant: o.tenant, Scope: jig.PauseTool, Target: "test.quick", By: "ana"})
	require.NoError(o.t, err)
	id := o.run(agent(`["*"]`, calls(`test.quick {value: a}`, `test.echo {value: b}`)), nil)
	d.until(id, func(v jig.SessionView) bool { return byID(v)["1.2"].Status == jig.CallSucceeded })
	_, err = o.Resume(o.t.Context(), protocol.PauseRequest{Tenant: o.tenant, Scope: jig.PauseTool, Target: "test.quick", By: "ana"})
	require.NoError(o.t, err)
	return id
}

// rested starts a session whose first pass waits until a pause of the tenant is lifted.
func rested(d *testEnv, _ *receiver) string {
	o := d.withTenant()
	resume := o.pauses(jig.PauseTenant, "")
	id := o.run(agent(`["*"]`, calls(`test.echo {value: a}`)), nil)
	o.waiting(id)
	resume()
	return id
}

// lapsed lets an approval expire under a policy that then ends the session.
func lapsed(outcome string, inside bool) func(*testEnv, *receiver) string {
	return func(d *testEnv, r *receiver) string {
		o := d.withTenant(fmt.Sprintf(`kind: policy
name: hurry
rules:
  - {name: soon, when: "tool.name == 'test.write'", verdict: ask, expires: 2s, on_expiry: %s}
`, outcome))
		if inside {
			started, err := o.StartCall(o.t.Context(), client.CallInput{
				Tenant: o.tenant, Document: gatedSpec, DocumentName: "probe.yaml", Principal: jig.Principal{ID: "tester"},
				Input: json.RawMessage(fmt.Sprintf(`{"url":%q,"name":"w"}`, r.URL)),
			}, "")
			require.NoError(o.t, err)
			o.requireEnded(started.SessionID, outcome)
			return started.SessionID
		}
		id := o.run(agent(`["*"]`, gatedRules), map[string]any{"url": r.URL, "name": "w"})
		o.requireEnded(id, outcome)
		return id
	}
}

// requireEnded waits for a session's end and checks that it ended as its policy says for an expiry.
func (o tenantEnv) requireEnded(id, outcome string) {
	o.t.Helper()
	want := map[string]jig.Status{"fail": jig.StatusFailed, "cancel": jig.StatusCanceled}[outcome]
	var view jig.SessionView
	require.True(o.t, eventually(o.t.Context(), patience, func() bool {
		var err error
		view, err = o.Status(o.t.Context(), o.tenant, id)
		return err == nil && view.Status.Final()
	}))
	require.Equal(o.t, want, view.Status)
	require.Equal(o.t, jig.ReasonExpired, view.Reason)
}
