package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// fairnessKeys returns the fairness keys of the runs of a workflow.
func (d *testEnv) fairnessKeys(id string) []string {
	d.t.Helper()
	var keys []string
	for _, run := range d.runs(id) {
		first, err := shared.temporal.GetWorkflowHistory(context.WithoutCancel(d.t.Context()), id, run, false, 0).Next()
		require.NoError(d.t, err)
		keys = append(keys, first.GetWorkflowExecutionStartedEventAttributes().GetPriority().GetFairnessKey())
	}
	return keys
}

// Temporal hands out the tasks of tenants in turn only if each run has its tenant as fairness key: the first run of a session, those that continue
// it, those of the sessions that answer its calls, and those of single calls.
func TestFairness_RunsHaveTheirTenantAsKey(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	below := "below-" + strings.ToLower(d.queue[len(d.queue)-6:])
	d.register(map[string]string{"below.md": named(agent(`["test.*"]`, `    - when: pass <= 2
      calls: [{tool: test.echo, input: {value: "${pass}"}}]
    - answer: done
`), below)})
	id := d.run(delegating(below), map[string]any{"url": r.URL, "name": "w"})
	require.Equal(t, "done", d.finish(id).Answer)
	child := d.fairnessKeys(jig.ChildSessionID(id, "1.1"))
	require.Greater(t, len(child), 1, "the second pass is another run")
	for _, key := range append(d.fairnessKeys(id), child...) {
		require.Equal(t, jig.DefaultTenant, key)
	}
	in := callInput("test.echo", map[string]any{"value": "a"})
	in.Tenant = d.name
	called, err := d.Trigger(t.Context(), in, "")
	require.NoError(t, err)
	require.Equal(t, []string{d.name}, d.fairnessKeys(called.SessionID))
}
