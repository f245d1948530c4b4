package activities_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/budget/meter"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/protocol"
)

// within gives the office's tenant a budget.
func within(t *testing.T, document string) func(*office) {
	t.Helper()
	return func(o *office) {
		require.NoError(t, o.db.PutDocument(t.Context(), o.tenant, "budget", "spending", jig.NewSessionID(), []byte("kind: budget\nname: spending\n"+document)))
		m := meter.New(meter.Options{Documents: o.db, Counters: o.db, Model: o.model, Logger: slog.New(slog.DiscardHandler)})
		o.model, o.budgets = m, m
	}
}

func TestThink_WaitsForABudget(t *testing.T) {
	t.Parallel()
	m := &answering{answer: chat.Turn{Text: "done"}}
	o := newOffice(t, func(o *office) { o.model = m }, within(t, "prices: {models: [{model: \"*\", call: 0.007}]}\nlimits: [{name: all, level: session, cost: 0.001, exhausted: [{action: ask}]}]"))
	require.Equal(t, activities.Thought{Paused: true}, o.thinks(t, 1, 100))
	require.Zero(t, m.asked)
	ref := activities.PassRef{SessionRef: o.ref(), Pass: 1}
	err := o.AwaitResume(t.Context(), ref)
	require.ErrorContains(t, err, "pass 1 is held back: limit all of budget spending is exhausted")
	require.Equal(t, activities.Thought{Paused: true}, o.thinks(t, 1, 100), "the retry of a worker that died")

	_, err = o.Resume(t.Context(), protocol.PauseRequest{Tenant: o.tenant, Scope: jig.PauseSession, Target: o.session, By: "ana"})
	require.NoError(t, err)
	require.NoError(t, o.AwaitResume(t.Context(), ref))
	require.NotNil(t, o.thinks(t, 1, 100).Ended)
	require.Equal(t, 1, m.asked)
	usage, err := o.Usage(t.Context(), protocol.UsageRequest{Tenant: o.tenant, By: []string{"model"}})
	require.NoError(t, err)
	require.Len(t, usage.Rows, 1)
	require.Equal(t, json.Number("0.007"), usage.Rows[0].Cost)
	require.Equal(t, json.Number("0.007"), usage.Budgets[0].UsedCost)
}

func TestThink_BudgetExhausted(t *testing.T) {
	t.Parallel()
	m := &answering{}
	o := newOffice(t, func(o *office) { o.model = m }, within(t, "prices: {models: [{model: \"*\", call: 2}]}\nlimits: [{name: all, level: tenant, cost: 1}]"))
	_, err := o.Think(t.Context(), activities.ThinkInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: 1}, Limit: 100})
	e := activities.ErrorFrom(err)
	require.Equal(t, jig.CodeBudgetExhausted, e.Code)
	require.Contains(t, e.Message, "limit all of budget spending")
	require.Zero(t, m.asked)
}

// A call that only reads is not run before its price is reserved.
func TestRead_OfAPricedToolIsReserved(t *testing.T) {
	t.Parallel()
	o, ledger, runs := reading(t, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return found(`{}`) })
	o.model = anyModel{}
	within(t, "prices: {tools: [{tool: "+payTool+", call: 0.4}]}\nlimits: [{name: all, level: session, cost: 0.3}]")(o)
	o.deploy(t)
	require.Equal(t, jig.CallFailed, o.runs(t, "1.1"))
	require.Equal(t, jig.CodeBudgetExhausted, o.call(t, "1.1").Result.Error.Code)
	require.Zero(t, runs.Load())
	require.EqualValues(t, 1, ledger.reserved.Load())
}
