package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// requireWaits checks that Temporal shows that a session waits for people: in the query, the current details and the search attributes.
func (d *testEnv) requireWaits(id, below, call, via string) {
	d.t.Helper()
	pending := d.waiting(id).Pending
	require.Len(d.t, pending, 1)
	require.Equal(d.t, []string{below, call, via}, []string{pending[0].SessionID, pending[0].Call, pending[0].Via})
	require.True(d.t, eventually(d.t.Context(), patience, func() bool { return d.shows(id, jig.StatusInputRequired) }))
	page := d.page(id, "")
	require.Contains(d.t, page.GetCurrentDetails(), "--workflow-id "+below+" --name approve")
	require.Contains(d.t, page.GetCurrentDetails(), "In session `"+below+"`, which answers call "+via+".")
}

// A call that waits in the last of three sessions shows in the Temporal state of the other two, even on a worker that has only the histories,
// and disappears when it is answered.
func TestTemporal_ShowsWaitingCallsOfAChild(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	tag := strings.ToLower(d.queue[len(d.queue)-6:])
	middle, last := "middle-"+tag, "last-"+tag
	twice := agent(`["test.*"]`, `    - when: pass <= 2
      calls: [{tool: test.write, input: {url: "${input.url}", name: "${input.name}${pass}"}}]
    - answer: written
`)
	d.register(map[string]string{"middle.md": named(delegating(last), middle), "last.md": named(twice, last)})
	id := d.run(delegating(middle), map[string]any{"url": r.URL, "name": "w"})
	below := jig.ChildSessionID(id, "1.1")
	lowest := jig.ChildSessionID(below, "1.1")
	for pass := 1; pass <= 2; pass++ { // the child's second pass is another run of its workflow
		call := jig.CallID(pass, 1)
		parent := d.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 && v.Pending[0].Call == call })
		require.Equal(t, jig.StatusInputRequired, parent.Status)
		d.requireWaits(id, lowest, call, "1.1")
		d.requireWaits(below, lowest, call, "1.1")
		if pass == 1 {
			d.kill()
			d.start()
			d.requireWaits(id, lowest, call, "1.1")
		}
		d.signal(lowest, protocol.SignalApprove, map[string]string{"call": call, "by": "ana"})
	}
	require.Equal(t, "written", d.finish(id).Answer)
	require.True(t, eventually(t.Context(), patience, func() bool { return d.shows(id, jig.StatusCompleted) }))
	require.Len(t, d.runs(id), len(d.runs(below)), "neither session was restarted")
}

// A composition with an agent step, and a single call that starts an agent, wait while their agent waits.
func TestTemporal_ShowsWaitingCallsOfAnAgentStep(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	last := "last-" + strings.ToLower(d.name[:8])
	d.register(map[string]string{"last.md": named(agent(`["test.*"]`, gatedRules), last)})
	id := d.compose(fmt.Sprintf(`kind: composition
name: probe.delegates
description: Lets an agent write.
input_schema: {type: object}
steps:
  - id: write
    prompt: {mode: agent, agent: %s, agent_input: {url: "${input.url}", name: w}}
`, last), map[string]any{"url": r.URL})
	child := jig.ChildSessionID(id, "1.1/write")
	d.requireWaits(id, child, "1.1", "1.1/write")
	d.signal(child, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	require.True(t, d.output(id).Success)
	requests, _ := r.count("w")
	require.Equal(t, 1, requests)
}
