package e2e_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/protocol"
)

// budgetEnv is a tenant with budgets, and a stand-in for the providers of models.
type budgetEnv struct {
	*testEnv
	tenant string
}

// withBudget registers a budget for a new tenant.
func (d *testEnv) withBudget(tenant, document string) budgetEnv {
	d.t.Helper()
	s := budgetEnv{testEnv: d, tenant: d.name + "-" + tenant}
	s.budget(document)
	return s
}

// budget registers the tenant's budget, and waits until the worker knows that there is one.
func (s budgetEnv) budget(document string) {
	s.t.Helper()
	s.registerIn(s.tenant, map[string]string{"spending.yaml": "kind: budget\nname: spending\n" + document})
	require.True(s.t, eventually(s.t.Context(), patience, func() bool { return s.used().Currency != "" }))
}

// begins starts a session of an agent whose answers have at most 100 tokens.
func (s budgetEnv) begins(model, more string) string {
	s.t.Helper()
	document := fmt.Sprintf("---\nname: spender\ndescription: Talks to a model for a test.\nmodel: %s\nmax_tokens: 100\n%s---\nDo what you are asked.\n", model, more)
	started, err := s.Start(s.t.Context(), client.StartOptions{
		Tenant: s.tenant, Document: document, DocumentName: "spender.md", Task: "go", Principal: jig.Principal{ID: "tester"},
	})
	require.NoError(s.t, err)
	return started.SessionID
}

// used returns the usage of the tenant's agents by model and tool.
func (s budgetEnv) used() protocol.Usage {
	s.t.Helper()
	u, err := s.Usage(s.t.Context(), protocol.UsageRequest{Tenant: s.tenant, Agent: "draft:spender", By: []string{"model", "tool"}})
	require.NoError(s.t, err)
	return u
}

// exhausted returns what the events of a session say about budgets, e.g. "ask large".
func (s budgetEnv) exhausted(id string) []string {
	s.t.Helper()
	all, err := s.Events(s.t.Context(), s.tenant, id, 0)
	require.NoError(s.t, err)
	var list []string
	for i, e := range all {
		require.Equal(s.t, int64(i+1), e.Seq)
		var data struct{ Action, Limit string }
		if e.Type == jig.EventBudgetExhausted {
			require.NoError(s.t, json.Unmarshal(e.Data, &data))
			list = append(list, data.Action+" "+data.Limit)
		}
	}
	return list
}

// paused waits until a budget has paused a session.
func (s budgetEnv) paused(id string) {
	s.t.Helper()
	require.True(s.t, eventually(s.t.Context(), patience, func() bool {
		pauses, err := s.Pauses(s.t.Context(), s.tenant)
		return err == nil && len(pauses.Pauses) == 1 && pauses.Pauses[0].Target == id
	}))
	pauses, err := s.Pauses(s.t.Context(), s.tenant)
	require.NoError(s.t, err)
	require.Contains(s.t, pauses.Pauses[0].Reason, "of budget spending is exhausted")
}

func (s budgetEnv) completes(id string) {
	s.t.Helper()
	view := s.finish(id)
	require.Equal(s.t, jig.StatusCompleted, view.Status, "%v", view.Error)
}

func TestBudgets_Models(t *testing.T) {
	t.Parallel()
	d := withModel(t, func(modeltest.Request) modeltest.Reply {
		r := modeltest.Text("done")
		r.Usage = modeltest.Usage{Input: 40, Output: 10, CacheRead: 20}
		return r
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		s := d.withBudget("stop", "limits: [{name: all, level: tenant, window: day, tokens: 90}]")
		id := s.begins("anthropic/claude-test", "tools: []\n")
		view := s.finish(id)
		require.Equal(t, jig.StatusFailed, view.Status)
		require.Equal(t, jig.CodeBudgetExhausted, view.Error.Code)
		require.Contains(t, view.Error.Message, "limit all of budget spending is exhausted")
		require.Equal(t, []string{"stop all"}, s.exhausted(id))
		require.Empty(t, s.used().Rows, "the model was not asked")
	})
	t.Run("ask", func(t *testing.T) {
		t.Parallel()
		const limit = "limits: [{name: all, level: tenant, tokens: %d, exhausted: [{action: ask}]}]"
		s := d.withBudget("ask", fmt.Sprintf(limit, 90))
		id := s.begins("anthropic/claude-test", "tools: []\n")
		s.paused(id)
		said := s.jig("resume", "--session", id, "--tenant", s.tenant, "--as", "ana")
		require.Zero(t, said.code, said.err)
		s.completes(id)
		require.Equal(t, []string{"ask all"}, s.exhausted(id))

		another := s.begins("anthropic/claude-test", "tools: []\n")
		s.paused(another)
		s.budget(fmt.Sprintf(limit, 10_000))
		s.completes(another)
		budgets := s.used().Budgets
		require.Len(t, budgets, 1)
		require.Equal(t, []int64{140, 0}, []int64{budgets[0].UsedTokens, budgets[0].ReservedTokens})
	})
	t.Run("degrade", func(t *testing.T) {
		t.Parallel()
		s := d.withBudget("degrade", `
prices: {models: [{model: anthropic/*, input: 2000, output: 20000}, {model: openai/*, input: 1000, output: 10000, cached_input: 100}]}
limits:
  - {name: large, level: session, tokens: 90, when: model.startsWith('anthropic/'), exhausted: [{action: degrade, model: openai/small}]}
  - {name: all, level: tenant, cost: 100}
`)
		id := s.begins("anthropic/claude-test", "tools: []\n")
		s.completes(id)
		require.Equal(t, []string{"degrade large"}, s.exhausted(id))
		require.Equal(t, []protocol.UsageRow{
			{Model: "openai/small", Requests: 1, InputTokens: 40, OutputTokens: 10, CacheReadTokens: 20, Cost: "0.142"},
		}, s.used().Rows)
		said := s.jig("usage", "--tenant", s.tenant, "--by", "agent", "--output", "json")
		require.Zero(t, said.code, said.err)
		require.Contains(t, said.out, `"cache_read_tokens":20`)
		require.Contains(t, said.out, `"agent":"draft:spender"`)
	})
}

// The worker dies after it has reserved, while the model answers. The retry replaces the reservation, so that nothing stays reserved.
func TestBudgets_WorkerDiesBetweenReservationAndSettlement(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	d := withModel(t, func(modeltest.Request) modeltest.Reply {
		if asked.Add(1) == 1 {
			return modeltest.Reply{Text: "this answer never ends", Stall: true}
		}
		return modeltest.Text("done")
	})
	s := d.withBudget("killed", "limits: [{name: all, level: tenant, tokens: 200}]") // room for one reservation
	id := s.begins("anthropic/claude-test", "tools: []\n")
	require.True(t, eventually(t.Context(), patience, func() bool { return asked.Load() == 1 }))
	held := s.used().Budgets
	require.Len(t, held, 1)
	require.Greater(t, held[0].ReservedTokens, int64(100))
	s.kill()
	s.start()
	s.completes(id)
	require.Empty(t, s.exhausted(id))
	left := s.used().Budgets
	require.Equal(t, []int64{15, 0}, []int64{left[0].UsedTokens, left[0].ReservedTokens})
}

func TestBudgets_PricedTools(t *testing.T) {
	t.Parallel()
	const rules = `tools: [test.echo]
script:
  rules:
    - {when: "pass == 1", calls: [{tool: test.echo, input: {value: a}}]}
    - {when: "pass == 2", calls: [{tool: test.echo, input: {value: b}}]}
    - {answer: "done"}
`
	d := startEnv(t)
	document := `
prices: {tools: [{tool: test.echo, call: 0.4}]}
limits: [{name: all, level: session, cost: 0.5, exhausted: [%s]}]
`
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		s := d.withBudget("stop", fmt.Sprintf(document, ""))
		id := s.begins("script/spender", rules)
		s.completes(id)
		require.Equal(t, []string{"stop all"}, s.exhausted(id))
		view, err := s.Status(t.Context(), s.tenant, id)
		require.NoError(t, err)
		calls := byID(view)
		require.Equal(t, jig.CallSucceeded, calls["1.1"].Status)
		require.Equal(t, jig.CallFailed, calls["2.1"].Status)
		require.Equal(t, jig.CodeBudgetExhausted, calls["2.1"].Error.Code)
		require.Contains(t, s.used().Rows, protocol.UsageRow{Tool: "test.echo", Calls: 2, Cost: "0.40"})
	})
	t.Run("ask", func(t *testing.T) {
		t.Parallel()
		s := d.withBudget("ask", fmt.Sprintf(document, "{action: ask}"))
		id := s.begins("script/spender", rules)
		s.paused(id)
		said := s.jig("resume", "--session", id, "--tenant", s.tenant, "--as", "ana")
		require.Zero(t, said.code, said.err)
		s.completes(id)
		require.Equal(t, []string{"ask all"}, s.exhausted(id))
		budgets := s.used().Budgets
		require.Len(t, budgets, 1)
		require.Equal(t, json.Number("0.80"), budgets[0].UsedCost)
	})
}
