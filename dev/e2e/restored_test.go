package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
)

const stepsOnce = `kind: composition
name: probe.once
description: Changes something outside, once.
permission: write
approval: always_ask
input_schema: {type: object, required: [url, name]}
steps:
  - {id: effect, tool: test.effect, input: {url: "${input.url}", name: "${input.name}"}}
`

// After a restore from a backup, a call that may have run since the backup does not run until a person has said that it did not happen. This
// holds for a call that an attempt had started, and for a call or a composition that is approved only after the restore.
func TestMarkRestored_CallsAskBeforeTheyRun(t *testing.T) {
	t.Parallel()
	h, r := newRestartEnv(t), newReceiver(t)
	trusting := func(id string) { h.decided(id, jig.Decision{By: "operator", Answer: jig.AnswerApprove}) }
	h.install("tenant.yaml", h.tenantDocument(""), trusting)
	h.install("once.yaml", stepsOnce, trusting)
	in := callInput("test.effect", map[string]any{"url": r.URL, "name": "begun", "before": 600_000})
	in.Tenant = h.tenant
	begun := newID(h.tenant)
	_, err := h.StartCall(t.Context(), in, begun)
	require.NoError(t, err)
	h.waitFor(begun, func(v jig.SessionView) bool { return len(v.Calls) == 1 && v.Calls[0].Status == jig.CallExecuting })
	waits := h.trigger("test.write", map[string]any{"url": r.URL, "name": "keyed"})
	require.Equal(t, jig.CallWaiting, waits.Status, "%+v", waits.Result)
	once := h.trigger("test.once", map[string]any{"url": r.URL, "name": "waited"})
	require.Equal(t, jig.CallWaiting, once.Status, "%+v", once.Result)

	steps := h.trigger("probe.once", map[string]any{"url": r.URL, "name": "steps"})
	require.Equal(t, jig.CallWaiting, steps.Status, "%+v", steps.Result)

	h.kill()
	db, err := store.Open(t.Context(), h.stack.DatabaseURL(), store.Options{})
	require.NoError(t, err)
	marked, err := db.MarkRestored(t.Context(), false)
	db.Close()
	require.NoError(t, err)
	require.Len(t, marked, 4)
	h.begin()

	for _, id := range []string{once.SessionID, steps.SessionID, waits.SessionID} {
		require.Equal(t, jig.CallReserved, h.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Status)
	}
	h.ends(waits.SessionID)
	for _, id := range []string{begun, once.SessionID, steps.SessionID} {
		h.waitFor(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 && v.Pending[0].Kind == jig.PendingReconcile })
	}
	require.Zero(t, r.requests("begun")+r.requests("waited")+r.requests("steps"), "nothing ran")

	word := func(id string, w jig.Reconciliation) {
		view, err := h.Status(t.Context(), h.tenant, id)
		require.NoError(t, err)
		w.Call, w.By, w.Attempt = "1.1", "ana", view.Pending[0].Attempt
		ruled, err := h.Reconcile(t.Context(), h.tenant, id, w)
		require.NoError(t, err)
		require.Equal(t, jig.DecisionAccepted, ruled.Decisions[0].Outcome, ruled.Decisions[0].Reason)
		h.ends(id)
	}
	word(begun, jig.Reconciliation{Outcome: jig.OutcomeHappened, Result: json.RawMessage(`{"status":204}`)})
	word(once.SessionID, jig.Reconciliation{Outcome: jig.OutcomeNotHappened})
	word(steps.SessionID, jig.Reconciliation{Outcome: jig.OutcomeNotHappened})
	require.Zero(t, r.requests("begun"))
	require.Equal(t, 1, r.requests("waited"), "it ran once, under its earlier approval")
	require.Equal(t, 1, r.requests("steps"))
	require.Equal(t, 1, r.requests("keyed"))
	h.requireAudited(h.tenant)
}

func (r *receiver) requests(name string) int {
	requests, _ := r.count(name)
	return requests
}
