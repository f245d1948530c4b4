package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// pauses sets a pause and returns the function that lifts it.
func (o tenantEnv) pauses(scope jig.PauseScope, target string) (resume func()) {
	o.t.Helper()
	in := protocol.PauseRequest{Tenant: o.tenant, Scope: scope, Target: target, By: "ana"}
	_, err := o.Pause(o.t.Context(), in)
	require.NoError(o.t, err)
	return func() {
		_, err := o.Resume(o.t.Context(), in)
		require.NoError(o.t, err)
	}
}

// composes starts a composition in the tenant.
func (o tenantEnv) composes(steps, url string) string {
	o.t.Helper()
	started, err := o.StartCall(o.t.Context(), client.CallInput{
		Tenant: o.tenant, DocumentName: "probe.yaml", Principal: jig.Principal{ID: "tester"},
		Document: "kind: composition\nname: probe.stands\ndescription: Waits.\ninput_schema: {type: object, properties: {url: {type: string}}}\nsteps:\n" + steps,
		Input:    fmt.Appendf(nil, `{"url":%q}`, url),
	}, "")
	require.NoError(o.t, err)
	return started.SessionID
}

// stands waits until the store and Temporal agree on the status of a session.
func (o tenantEnv) stands(id string, status jig.Status) {
	o.t.Helper()
	var stored jig.SessionView
	require.True(o.t, eventually(o.t.Context(), patience, func() bool {
		view, err := o.Status(o.t.Context(), o.tenant, id)
		stored = view
		return err == nil && view.Status == status && o.shows(id, status)
	}), "the store says %s, Temporal %s: %+v", stored.Status, status, stored.Calls)
}

// A session is input_required, in the store and in Temporal, exactly while nothing in it goes on until a person acts, whichever way it waits.
func TestStatus_AgreesWithTemporal(t *testing.T) {
	t.Parallel()
	echo, serial := `test.echo {value: a}`, `test.serial {url: "%s", name: "%s", key: k}`
	child := func(o tenantEnv, rules string) string {
		name := "below-" + strings.ToLower(o.name[:8])
		o.registerIn(o.tenant, map[string]string{name + ".md": named(agent(`["*"]`, rules), name)})
		return name
	}
	for name, play := range map[string]func(o tenantEnv, r *receiver){
		"a tool pause": func(o tenantEnv, _ *receiver) {
			resume := o.pauses(jig.PauseTool, "test.echo")
			id := o.run(agent(`["*"]`, calls(echo)), nil)
			o.stands(id, jig.StatusInputRequired)
			resume()
			o.stands(id, jig.StatusCompleted)
		},
		"a tool pause of a quick tool, beside a call that runs": func(o tenantEnv, _ *receiver) {
			defer o.pauses(jig.PauseTool, "test.quick")()
			id := o.run(agent(`["*"]`, calls(`test.quick {value: a}`, `test.sleep {ms: 600000, name: s}`)), nil)
			require.True(o.t, eventually(o.t.Context(), patience, func() bool { return len(o.eventsOf(id, jig.EventToolPaused)) == 1 }))
			o.stands(id, jig.StatusWorking)
			require.NoError(o.t, o.Cancel(o.t.Context(), o.tenant, id))
		},
		"a pass under a pause of the tenant": func(o tenantEnv, _ *receiver) {
			resume := o.pauses(jig.PauseTenant, "")
			id := o.run(agent(`["*"]`, calls(echo)), nil)
			o.stands(id, jig.StatusInputRequired)
			resume()
			o.stands(id, jig.StatusCompleted)
		},
		"calls of a concurrency key behind a pause": func(o tenantEnv, r *receiver) {
			defer o.pauses(jig.PauseTool, "test.serial")()
			id := o.run(agent(`["*"]`, calls(fmt.Sprintf(serial, r.URL, "a"), fmt.Sprintf(serial, r.URL, "b"))), nil)
			o.stands(id, jig.StatusInputRequired)
		},
		"a pause and max_parallel_calls": func(o tenantEnv, _ *receiver) {
			resume := o.pauses(jig.PauseTool, "test.echo")
			id := o.run(agent(`["*"]`, calls(echo, `test.big {bytes: 10, name: b}`), "max_parallel_calls: 1"), nil)
			o.stands(id, jig.StatusInputRequired)
			view, err := o.Status(o.t.Context(), o.tenant, id)
			require.NoError(o.t, err)
			require.Equal(o.t, jig.CallSucceeded, byID(view)["1.2"].Status, "a paused call keeps none from running")
			resume()
			o.stands(id, jig.StatusCompleted)
		},
		"a rate limit": func(o tenantEnv, _ *receiver) {
			p := rateLimitEnv(o)
			p.limit("  - {name: slow, tools: [test.echo], rate: 1, per: 1h}\n")
			id := o.run(agent(`["*"]`, calls(echo, `test.echo {value: b}`)), nil)
			require.True(o.t, eventually(o.t.Context(), patience, func() bool { return len(o.eventsOf(id, jig.EventToolHeld)) == 1 }))
			o.stands(id, jig.StatusWorking)
			defer o.pauses(jig.PauseTool, "test.echo")()
			o.stands(id, jig.StatusInputRequired)
		},
		"a composition that a pause holds back": func(o tenantEnv, r *receiver) {
			defer o.pauses(jig.PauseTool, "probe.stands")()
			o.stands(o.composes("  - {id: a, tool: test.echo, input: {value: a}}\n", r.URL), jig.StatusInputRequired)
		},
		"a step that a pause holds back": func(o tenantEnv, r *receiver) {
			resume := o.pauses(jig.PauseTool, "test.echo")
			id := o.composes("  - {id: a, tool: test.echo, input: {value: a}}\n", r.URL)
			o.stands(id, jig.StatusInputRequired)
			resume()
			o.stands(id, jig.StatusCompleted)
		},
		"a composition with an approval and a child session": func(o tenantEnv, r *receiver) {
			below := child(o, gatedRules)
			id := o.composes(`  - parallel:
      - {id: own, tool: test.write, input: {url: "${input.url}", name: own}}
      - {id: asks, prompt: {mode: agent, agent: `+below+`, agent_input: {url: "${input.url}", name: below}}}
`, r.URL)
			o.stands(id, jig.StatusInputRequired)
			o.signal(jig.ChildSessionID(id, "1.1/asks"), protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
			o.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/own", "by": "ana"})
			o.stands(id, jig.StatusCompleted)
		},
		"a child session that waits, beside a step that runs": func(o tenantEnv, r *receiver) {
			below := child(o, gatedRules)
			id := o.composes(`  - parallel:
      - {id: own, tool: test.sleep, input: {ms: 600000, name: s}}
      - {id: asks, prompt: {mode: agent, agent: `+below+`, agent_input: {url: "${input.url}", name: below}}}
`, r.URL)
			o.stands(jig.ChildSessionID(id, "1.1/asks"), jig.StatusInputRequired)
			o.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 })
			o.stands(id, jig.StatusWorking)
			require.NoError(o.t, o.Cancel(o.t.Context(), o.tenant, id))
		},
		"a child session that waits for an event": func(o tenantEnv, r *receiver) {
			o.registerIn(o.tenant, map[string]string{"pays.yaml": "kind: composition\nname: probe.pays\ndescription: Waits.\nsteps:\n  - {id: paid, wait_for: {event: paid}}\n"})
			below := child(o, calls("probe.pays {}"))
			id := o.composes(`  - {id: asks, prompt: {mode: agent, agent: `+below+`, agent_input: {}}}
`, r.URL)
			session := jig.ChildSessionID(id, "1.1/asks")
			wait := jig.Wait{Call: "1.1/paid", Event: "paid", SessionID: session, Via: "1.1/asks"}
			require.True(o.t, eventually(o.t.Context(), patience, func() bool {
				view, err := o.Status(o.t.Context(), o.tenant, id)
				return err == nil && len(view.Waits) == 1 && view.Waits[0] == wait && view.Idle
			}))
			require.True(o.t, eventually(o.t.Context(), patience, func() bool {
				return strings.Contains(o.page(id, "").GetCurrentDetails(), "jig event "+session+" paid")
			}))
			o.stands(id, jig.StatusWorking)
			o.signal(session, protocol.SignalEvent, map[string]any{"name": "paid", "data": map[string]any{}})
			o.stands(id, jig.StatusCompleted)
		},
		"below a session that is paused": func(o tenantEnv, r *receiver) {
			below := child(o, gatedRules)
			id := o.composes(`  - {id: asks, prompt: {mode: agent, agent: `+below+`, agent_input: {url: "${input.url}", name: below}}}
`, r.URL)
			session := jig.ChildSessionID(id, "1.1/asks")
			o.stands(session, jig.StatusInputRequired)
			resume := o.pauses(jig.PauseSession, id)
			o.signal(session, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
			require.True(o.t, eventually(o.t.Context(), patience, func() bool { return len(o.eventsOf(session, jig.EventToolPaused)) == 1 }))
			o.stands(session, jig.StatusInputRequired)
			o.stands(id, jig.StatusInputRequired)
			resume()
			o.stands(id, jig.StatusCompleted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(joinTenantEnv(t), newReceiver(t))
		})
	}
}

// A start that a worker refuses, because none could check it before, leaves its id free, over Temporal and over HTTP. A start that is accepted
// and held back by a pause uses up its id.
func TestRefusedStart_FreesItsID(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	tag := strings.ToLower(d.name[:8])
	composed := "probe.late" + strings.ToUpper(tag)
	c := apiClient{d.serve(), d.apiKey(jig.DefaultTenant, everything()...)}
	overHTTP := func(id, task string) response {
		answer, _ := c.send(http.MethodPost, "/v1/sessions", map[string]any{"agent": "late-" + tag, "task": task, "id": id})
		return answer
	}
	trigger := func(input string) (client.Started, error) {
		return d.StartCall(t.Context(), client.CallInput{Tool: composed, Input: []byte(input), Principal: jig.Principal{ID: "tester"}}, "call-"+tag)
	}
	d.kill()
	_, err := trigger(`{"n":1}`)
	require.NoError(t, err, "no worker can check it")
	require.Equal(t, http.StatusCreated, overHTTP("http-"+tag, "go").StatusCode)
	d.start()
	for _, id := range []string{jig.DefaultTenant + ".call-" + tag, jig.DefaultTenant + ".http-" + tag} {
		require.True(t, eventually(t.Context(), patience, func() bool { return d.shows(id, jig.StatusFailed) }), id)
	}
	d.register(map[string]string{
		"late.md":   named(agent(`["*"]`, "    - answer: done\n"), "late-"+tag),
		"late.yaml": "kind: composition\nname: " + composed + "\ndescription: Comes late.\ninput_schema: {type: object, properties: {n: {type: integer}}}\nsteps:\n  - {id: a, tool: test.echo, input: {value: a}}\n",
	})
	_, err = trigger(`{"n":2}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, overHTTP("http-"+tag, "another").StatusCode)
	for _, id := range []string{jig.DefaultTenant + ".call-" + tag, jig.DefaultTenant + ".http-" + tag} {
		require.True(t, eventually(t.Context(), patience, func() bool { return d.shows(id, jig.StatusCompleted) }), id)
	}
	_, err = trigger(`{"n":3}`)
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeConflict}, "the id is used up now")

	pause := protocol.PauseRequest{Tenant: "held-" + tag, Scope: jig.PauseTenant, By: "ana"}
	_, err = d.Pause(t.Context(), pause)
	require.NoError(t, err)
	held := client.StartOptions{Tenant: "held-" + tag, Document: agent(`["*"]`, "    - answer: done\n"), Task: "held", ID: "held-" + tag, Principal: jig.Principal{ID: "tester"}}
	first, err := d.Start(t.Context(), held)
	require.NoError(t, err)
	d.waiting(first.SessionID)
	again, err := d.Start(t.Context(), held)
	require.NoError(t, err)
	require.True(t, again.Existing)
	_, err = d.Resume(t.Context(), pause)
	require.NoError(t, err)
	require.Equal(t, "done", d.finish(first.SessionID).Answer)
}
