package e2e_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// Two tenants use the same ids for everything that they can name, and each tries to reach the other's sessions and files.
func TestTenants_SameIDsAreSeparate(t *testing.T) {
	t.Parallel()
	a, r := newTenantEnv(t), newReceiver(t)
	b := tenantEnv{testEnv: a.testEnv, tenant: a.tenant + "-2"}
	ctx, results := t.Context(), map[string]protocol.CallResult{}
	effect := func(o tenantEnv, name string) protocol.CallInput {
		in := callInput("test.effect", map[string]any{"url": r.URL, "name": name})
		in.Tenant = o.tenant
		return in
	}
	for _, o := range []tenantEnv{a, b} {
		result, err := o.Trigger(ctx, effect(o, "paid"), "order-7")
		require.NoError(t, err)
		require.Equal(t, jig.CallSucceeded, result.Status)
		require.Equal(t, []string{o.tenant + ".order-7", "order-7"}, []string{result.SessionID, result.ClientID})
		again, err := o.Trigger(ctx, effect(o, "paid"), "order-7")
		require.NoError(t, err)
		require.Equal(t, result, again, "the same request gets the first result")
		results[o.tenant] = result
	}
	requests, keys := r.count("paid")
	require.Equal(t, []int{2, 2}, []int{requests, keys}, "each tenant's effect has its own key")
	require.Contains(t, r.keys["paid"], jig.IdempotencyKey(installation, a.tenant, a.tenant+".order-7", "1.1"))

	_, err := a.Trigger(ctx, effect(a, "other"), "order-7")
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err))
	_, err = a.StartCall(ctx, effect(a, "other"), "order-7")
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err))

	// Only an identical request returns the waiting call.
	gated := func(o tenantEnv, name string) protocol.CallInput {
		in := callInput("test.write", map[string]any{"url": r.URL, "name": name})
		in.Tenant = o.tenant
		return in
	}
	for range 2 {
		waiting, err := a.Trigger(ctx, gated(a, "w"), "waits")
		require.NoError(t, err)
		require.Equal(t, jig.CallWaiting, waiting.Status)
	}
	_, err = a.Trigger(ctx, gated(a, "v"), "waits")
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err))

	for _, id := range []string{"waits", a.tenant + ".waits"} {
		_, err := b.Status(ctx, b.tenant, id)
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), id)
		_, err = b.Decide(ctx, b.tenant, id, []jig.Decision{{Call: "1.1", By: "thief"}})
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), id)
		_, err = b.WaitCall(ctx, b.tenant, id)
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), id)
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(b.Cancel(ctx, b.tenant, id)), id)
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(b.Message(ctx, b.tenant, id, "hello", "thief")), id)
	}
	random := a.trigger("test.write", map[string]any{"url": r.URL, "name": "w"}).SessionID
	_, err = b.Decide(ctx, b.tenant, random, []jig.Decision{{Call: "1.1", By: "thief"}})
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), "another tenant's id is not found")
	view, err := a.Status(ctx, a.tenant, "waits")
	require.NoError(t, err)
	require.Len(t, view.Pending, 1)

	// Nobody can take the id of another tenant's child session first, not even without the client.
	_, err = b.StartCall(ctx, effect(b, "squat"), jig.ChildSessionID(a.tenant+".order-8", "1.1"))
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	raw, err := shared.temporal.ExecuteWorkflow(ctx, sdk.StartWorkflowOptions{ID: a.tenant + ".order-8", TaskQueue: a.queue},
		protocol.CallWorkflow, effect(b, "squat"))
	require.NoError(t, err)
	require.Error(t, raw.Get(ctx, nil), "another tenant cannot take this session id")
	requests, _ = r.count("squat")
	require.Zero(t, requests)

	// The same rules apply to sessions of agents, and to files.
	document := agent(`["file.write"]`, "    - when: pass == 1\n      calls:\n        - {tool: file.write, input: {path: same.txt, content: \"${input.text}\"}}\n    - answer: done\n")
	for _, o := range []tenantEnv{a, b} {
		raw, err := json.Marshal(map[string]any{"text": o.tenant})
		require.NoError(t, err)
		options := client.StartOptions{
			Tenant: o.tenant, ID: "writer", Document: document, DocumentName: "probe.md", Input: raw, Principal: jig.Principal{ID: "tester"},
		}
		started, err := o.Start(ctx, options)
		require.NoError(t, err)
		require.Equal(t, client.Started{SessionID: o.tenant + ".writer", ClientID: "writer"}, started)
		stands := func(holds func(jig.SessionView) bool) {
			require.True(t, eventually(ctx, patience, func() bool {
				view, err := o.Status(ctx, o.tenant, "writer")
				return err == nil && holds(view)
			}))
		}
		stands(func(v jig.SessionView) bool { return len(v.Pending) == 1 })
		o.trusting(started.SessionID)
		stands(func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
	}
	for _, o := range []tenantEnv{a, b} {
		content, err := os.ReadFile(o.workdir("same.txt"))
		require.NoError(t, err)
		require.Equal(t, o.tenant, string(content))
	}
}
