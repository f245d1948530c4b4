package meter_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/budget/meter"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/confine"
)

// bank is a tenant with budgets and a model, in memory.
type bank struct {
	documents map[string]string
	session   jig.Session
	used      map[budget.Account]budget.Used
	asked     []budget.Account
	waiting   []budget.Waiting
	events    []string
	records   []budget.Record
	lifted    bool
	// models are the models that were asked. usage is the usage of each answer.
	models     []string
	usage      chat.Usage
	failure    error
	begun      bool
	statements int
}

func newBank(documents ...string) *bank {
	b := &bank{
		documents: map[string]string{}, used: map[budget.Account]budget.Used{}, usage: chat.Usage{InputTokens: 10, OutputTokens: 5},
		session: jig.Session{Tenant: "acme", ID: "ses_1", Agent: jig.Agent{Name: "researcher"}},
	}
	for i, d := range documents {
		b.documents["budget-"+strconv.Itoa(i)] = d
	}
	return b
}

func (b *bank) CurrentDocuments(context.Context, string, string) ([]bundle.DocumentVersion, error) {
	var list []bundle.DocumentVersion
	for i := range len(b.documents) {
		name := "budget-" + strconv.Itoa(i)
		list = append(list, bundle.DocumentVersion{Kind: "budget", Name: name, Version: b.documents[name]})
	}
	return list, nil
}

func (b *bank) DocumentAt(_ context.Context, _, _, name, _ string) ([]byte, error) {
	return []byte(b.documents[name]), nil
}

func (b *bank) ReserveBudget(_ context.Context, r budget.Request) ([]budget.Exhausted, error) {
	b.statements++
	used := make([]budget.Used, len(r.Claims))
	for i, c := range r.Claims {
		used[i] = b.used[c.Account]
	}
	if exhausted := budget.Decide(r.Claims, used, b.asked); len(exhausted) > 0 {
		return exhausted, nil
	}
	for _, c := range r.Claims {
		u := b.used[c.Account]
		u.Held = u.Held.Plus(c.Reserved)
		b.used[c.Account] = u
	}
	b.note(r.Events)
	return nil, nil
}

func (b *bank) RefuseBudget(_ context.Context, r budget.Refusal) error {
	b.note(r.Events)
	if r.Reason != "" {
		b.waiting = append(b.waiting, budget.Waiting{Key: r.Key, Call: r.Call})
	}
	return nil
}

func (b *bank) SettleBudget(_ context.Context, s budget.Settlement) error {
	b.statements++
	for i, c := range s.Claims {
		u := b.used[c.Account]
		u.Held = u.Held.Plus(budget.Amount{Tokens: -c.Reserved.Tokens, Cost: -c.Reserved.Cost})
		u.Spent = u.Spent.Plus(s.Spent[i])
		b.used[c.Account] = u
	}
	if s.Record != nil {
		b.records = append(b.records, *s.Record)
	}
	return nil
}

func (b *bank) WaitingForBudget(context.Context, string, string) ([]budget.Waiting, error) {
	return b.waiting, nil
}

func (b *bank) ResumeBudget(_ context.Context, _, _ string, claims []budget.Claim) (bool, error) {
	used := make([]budget.Used, len(claims))
	for i, c := range claims {
		used[i] = b.used[c.Account]
	}
	b.lifted = len(budget.Decide(claims, used, nil)) == 0
	return b.lifted, nil
}

func (b *bank) SessionRoot(context.Context, string, string) (string, error) { return "ses_root", nil }

func (b *bank) Session(context.Context, string, string) (jig.Session, error) {
	b.statements++
	return b.session, nil
}

func (b *bank) Answer(_ context.Context, r chat.Request, _ func(string)) (chat.Turn, error) {
	b.models = append(b.models, r.Model)
	return chat.Turn{Text: "answer", Usage: b.usage, Begun: b.begun}, b.failure
}

func (b *bank) Check(string) error { return nil }

func (b *bank) note(events []jig.Event) {
	for _, e := range events {
		var data struct{ Budget, Limit, Action, Model, Instead string }
		if json.Unmarshal(e.Data, &data) == nil {
			b.events = append(b.events, strings.TrimSpace(strings.Join([]string{string(e.Type), data.Action, data.Limit, data.Instead}, " ")))
		}
	}
}

func (b *bank) meter() *meter.Meter {
	return meter.New(meter.Options{
		Documents: b, Counters: b, Model: b, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Date(2026, 3, 31, 23, 0, 0, 0, time.UTC) },
	})
}

// request asks for an answer of at most 100 tokens to a prompt of at most 10.
func request(model string) chat.Request {
	return chat.Request{Model: model, System: strings.Repeat("x", 30), MaxTokens: 100, SessionID: "ses_1", Tenant: "acme", Pass: 3}
}

func ask(t *testing.T, m *meter.Meter, r chat.Request) (chat.Turn, error) {
	t.Helper()
	return m.Answer(t.Context(), r, func(string) {})
}

const head = "kind: budget\nname: spending\n"

func TestAnswer_WithoutBudgetsUsesNoStatement(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*bank{"none": newBank(), "prices only": newBank(head + "prices: {models: [{model: openai/*, input: 2}]}")} {
		turn, err := ask(t, b.meter(), request("openai/gpt"))
		require.NoError(t, err)
		require.Equal(t, "openai/gpt", turn.Asked)
		require.Zero(t, b.statements, name)
	}
}

func TestAnswer_ReservesTheMostAndChargesWhatWasUsed(t *testing.T) {
	t.Parallel()
	b := newBank(head + `
prices: {models: [{model: openai/*, input: 1000, output: 2000}, {model: openai/gpt, input: 1000000, output: 1000000}]}
limits:
  - {name: all, level: tenant, window: day, tokens: 1000, cost: 1000}
  - {name: one, level: agent, tokens: 1000}
  - {name: tree, level: session, tokens: 1000}
  - {name: turn, level: pass, tokens: 1000}
  - {name: others, level: tenant, tokens: 1, when: agent.name != 'researcher'}
`)
	b.session.Depth = 1
	turn, err := ask(t, b.meter(), request("openai/gpt"))
	require.NoError(t, err)
	require.Equal(t, int64(15_000_000_000), turn.Usage.Cost, "the exact name has precedence over the pattern")
	spent := budget.Amount{Tokens: 15, Cost: 15_000_000_000}
	at := func(limit, scope, period string) budget.Account {
		return budget.Account{Budget: "spending", Limit: limit, Scope: scope, Period: period}
	}
	require.Len(t, b.used, 4)
	for _, a := range []budget.Account{at("all", "", "2026-03-31"), at("one", "researcher", ""), at("tree", "ses_root", ""), at("turn", "ses_1/3", "")} {
		require.Equal(t, spent, b.used[a].Spent, a)
		require.Zero(t, b.used[a].Held, a)
	}
}

// A provider that reports nonsense gives no money back.
// A model reads the errors and the warnings of its calls, too.
func TestAnswer_ReservesWhatFailedCallsTake(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 900)
	for name, result := range map[string]jig.ToolResult{
		"error": jig.Failure(jig.Errorf(jig.CodeInternal, "%s", long)), "warning": {Success: true, Warnings: []string{long}},
	} {
		b := newBank(head + "limits: [{name: all, level: tenant, tokens: 400}]")
		r := request("openai/gpt")
		r.Exchanges = []chat.Exchange{{Calls: []jig.Call{{Result: &result}}}}
		_, err := ask(t, b.meter(), r)
		require.Equal(t, jig.CodeBudgetExhausted, jig.CodeOf(err), name)
	}
}

func TestAnswer_CountsNoNegativeUsage(t *testing.T) {
	t.Parallel()
	b := newBank(head + "limits: [{name: all, level: tenant, tokens: 1000}]")
	b.usage = chat.Usage{InputTokens: -1000, OutputTokens: 5}
	turn, err := ask(t, b.meter(), request("openai/gpt"))
	require.NoError(t, err)
	require.Equal(t, chat.Usage{OutputTokens: 5}, turn.Usage)
	require.Equal(t, int64(5), b.used[budget.Account{Budget: "spending", Limit: "all"}].Spent.Tokens)
}

// slow is a model that answers when it is told to.
type slow struct {
	*bank

	answer chan struct{}
}

func (s slow) Answer(ctx context.Context, r chat.Request, progress func(string)) (chat.Turn, error) {
	turn, err := s.bank.Answer(ctx, r, progress)
	<-s.answer
	return turn, err
}

// The requests of a call share a reservation, so one that is made at the same time waits for the other.
func TestAnswer_RequestsOfACallFollowOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(head + "limits: [{name: all, level: tenant, tokens: 1000}]")
		model := slow{b, make(chan struct{})}
		m := meter.New(meter.Options{Documents: b, Counters: b, Model: model, Logger: slog.New(slog.DiscardHandler)})
		r := request("openai/gpt")
		r.Call = "1.1"
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error)
		for _, ctx := range []context.Context{t.Context(), t.Context(), ctx} {
			go func() {
				_, err := m.Answer(ctx, r, nil)
				answers <- err
			}()
			synctest.Wait()
			require.Len(t, b.models, 1)
		}
		cancel()
		require.ErrorIs(t, <-answers, context.Canceled)
		for range 2 {
			model.answer <- struct{}{}
			require.NoError(t, <-answers)
		}
		require.Len(t, b.models, 2)
	})
}

func TestAnswer_FailedRequestsCostNothing(t *testing.T) {
	t.Parallel()
	b := newBank(head + "limits: [{name: all, level: tenant, tokens: 1000}]")
	b.failure, b.usage = jig.Errorf(jig.CodeUnavailable, "down"), chat.Usage{}
	_, err := ask(t, b.meter(), request("openai/gpt"))
	require.ErrorIs(t, err, b.failure)
	require.Zero(t, b.used[budget.Account{Budget: "spending", Limit: "all"}])
}

// An answer that its provider broke, or that broke off, costs what was reported, or else what its request and its text are estimated at. It is
// recorded, too.
func TestAnswer_BrokenAnswersCostWhatTheyUsed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ reported, charged chat.Usage }{
		"reported":         {chat.Usage{InputTokens: 40, OutputTokens: 9}, chat.Usage{InputTokens: 40, OutputTokens: 9}},
		"nothing reported": {chat.Usage{}, chat.Usage{InputTokens: 10, OutputTokens: 2}},
		"input reported":   {chat.Usage{CacheReadTokens: 7, OutputTokens: 1}, chat.Usage{CacheReadTokens: 7, OutputTokens: 2}},
	} {
		for _, call := range []string{"", "3.1"} {
			b := newBank(head + "limits: [{name: all, level: tenant, tokens: 1000}]")
			b.failure, b.usage, b.begun = jig.Errorf(jig.CodeUnavailable, "broken"), row.reported, true
			r := request("openai/gpt")
			r.Call = call
			_, err := ask(t, b.meter(), r)
			require.ErrorIs(t, err, b.failure)
			used := b.used[budget.Account{Budget: "spending", Limit: "all"}]
			require.Equal(t, budget.TokensOf(row.charged), used.Spent.Tokens, name)
			require.Zero(t, used.Held, name)
			require.Equal(t, []budget.Record{{Pass: 3, CallID: call, Model: "openai/gpt", Usage: row.charged}}, b.records, name)
		}
	}
}

func TestAnswer_Stops(t *testing.T) {
	t.Parallel()
	b := newBank(head + "limits: [{name: all, level: tenant, tokens: 109}]")
	_, err := ask(t, b.meter(), request("openai/gpt"))
	require.Equal(t, jig.CodeBudgetExhausted, jig.CodeOf(err))
	require.Equal(t, jig.ReasonBudget, jig.AsError(err).Reason)
	require.ErrorContains(t, err, "limit all of budget spending is exhausted: 0 of 109 tokens are used or reserved, and the call may need 110")
	require.Empty(t, b.models, "the model is not asked")
	require.Equal(t, []string{"budget.exhausted stop all"}, b.events)
}

func TestAnswer_Degrades(t *testing.T) {
	t.Parallel()
	b := newBank(head + `
limits:
  - name: large
    level: tenant
    tokens: 50
    when: model.startsWith('anthropic/')
    exhausted: [{action: degrade, model: openai/small}]
  - {name: all, level: tenant, tokens: 1000}
`)
	turn, err := ask(t, b.meter(), request("anthropic/large"))
	require.NoError(t, err)
	require.Equal(t, []string{"openai/small"}, b.models)
	require.Equal(t, "openai/small", turn.Asked)
	require.Equal(t, []string{"budget.exhausted degrade large openai/small"}, b.events)
	require.Equal(t, int64(15), b.used[budget.Account{Budget: "spending", Limit: "all"}].Spent.Tokens)

	b = newBank(head + "limits: [{name: all, level: tenant, tokens: 50, exhausted: [{action: degrade, model: openai/small}]}]")
	_, err = ask(t, b.meter(), request("anthropic/large"))
	require.Equal(t, jig.CodeBudgetExhausted, jig.CodeOf(err), "the other model does not fit either")
	require.Empty(t, b.models)
}

func TestAnswer_TheStrictestRuleCounts(t *testing.T) {
	t.Parallel()
	b := newBank(head + `
limits:
  - {name: a, level: tenant, tokens: 1, exhausted: [{action: degrade, model: openai/small}]}
  - {name: b, level: tenant, tokens: 2, exhausted: [{when: "limit.used_tokens > 5", action: stop}, {action: ask}]}
`)
	m := b.meter()
	_, err := ask(t, m, request("openai/gpt"))
	require.True(t, budget.Waits(err), "%v", err)
	require.Equal(t, []string{"budget.exhausted ask b"}, b.events)

	b.used[budget.Account{Budget: "spending", Limit: "b"}] = budget.Used{Spent: budget.Amount{Tokens: 6}}
	_, err = ask(t, m, request("openai/gpt"))
	require.Equal(t, jig.CodeBudgetExhausted, jig.CodeOf(err))
}

func TestAnswer_RulesThatCannotBeEvaluatedApplyUnlessTheyDegrade(t *testing.T) {
	t.Parallel()
	b := newBank(head + `
limits:
  - name: all
    level: tenant
    tokens: 1
    when: "int(session.id) > 0"
    exhausted: [{when: "int(session.id) > 0", action: degrade, model: openai/small}, {when: "int(session.id) > 0", action: ask}]
`)
	_, err := ask(t, b.meter(), request("openai/gpt"))
	require.True(t, budget.Waits(err), "%v", err)
}

func TestAnswer_AskedAndAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(head + "limits: [{name: all, level: tenant, tokens: 100, exhausted: [{action: ask}]}]")
		m := b.meter()
		_, err := ask(t, m, request("openai/gpt"))
		require.True(t, budget.Waits(err), "%v", err)
		held, err := m.Resume(t.Context(), "acme", "ses_1")
		require.NoError(t, err)
		require.Contains(t, held, "limit all of budget spending is exhausted")

		b.documents["budget-0"] = head + "limits: [{name: all, level: tenant, tokens: 110, exhausted: [{action: ask}]}]"
		time.Sleep(2 * time.Second) // until the meter looks for changes
		held, err = m.Resume(t.Context(), "acme", "ses_1")
		require.NoError(t, err)
		require.Empty(t, held, "somebody raised the limit")
		require.True(t, b.lifted)
		_, err = ask(t, m, request("openai/gpt"))
		require.NoError(t, err)

		_, err = ask(t, m, request("openai/gpt"))
		require.True(t, budget.Waits(err), "%v", err)
		b.asked = []budget.Account{{Budget: "spending", Limit: "all"}}
		_, err = ask(t, m, request("openai/gpt"))
		require.NoError(t, err, "a person allowed it")
	})
}

func TestAnswer_Scripts(t *testing.T) {
	t.Parallel()
	b := newBank(head + "limits: [{name: all, level: tenant, tokens: 1, cost: 1}]")
	b.usage = chat.Usage{}
	_, err := ask(t, b.meter(), request("script/plan"))
	require.NoError(t, err, "a script costs nothing")

	b = newBank(head + "prices: {models: [{model: script/*, call: 0.6}]}\nlimits: [{name: all, level: tenant, cost: 1}]")
	b.usage = chat.Usage{}
	m := b.meter()
	turn, err := ask(t, m, request("script/plan"))
	require.NoError(t, err)
	require.Equal(t, int64(600_000_000), turn.Usage.Cost)
	_, err = ask(t, m, request("script/plan"))
	require.Equal(t, jig.CodeBudgetExhausted, jig.CodeOf(err), "unless it has a price")
}

func TestAnswer_ModelsWithoutAPriceDoNotEscapeALimitOnTheCost(t *testing.T) {
	t.Parallel()
	b := newBank(head + "limits: [{name: all, level: tenant, cost: 1}]")
	_, err := ask(t, b.meter(), request("openai/gpt"))
	require.Equal(t, jig.CodeBudgetExhausted, jig.CodeOf(err))
	require.ErrorContains(t, err, "openai/gpt has no price")
	require.Empty(t, b.models)
}

func TestAnswer_UnusableDocumentsHoldModelsBack(t *testing.T) {
	t.Parallel()
	for name, documents := range map[string][]string{
		"newer":      {head + "limits: [{name: all, level: tenant, tokens: 1, hours: 3}]"},
		"currencies": {head + "currency: EUR\nprices: {tools: [{tool: web.search, call: 1}]}", head + "prices: {tools: [{tool: web.search, call: 1}]}"},
	} {
		b := newBank(documents...)
		m := b.meter()
		_, err := ask(t, m, request("script/plan"))
		require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err), name)
		require.Empty(t, b.models)
		result := m.Charge(t.Context(), jig.Call{Tenant: "acme", Tool: "web.search"}, func() jig.ToolResult {
			t.Error("the tool runs")
			return jig.ToolResult{}
		})
		require.True(t, result.Cause().NotExecuted, name)
		runs := func(tool string) bool {
			return m.Charge(t.Context(), jig.Call{Tenant: "acme", Tool: tool}, func() jig.ToolResult { return jig.ToolResult{Success: true} }).Success
		}
		require.True(t, runs("catalog.put"), "otherwise nobody could replace the document")
		require.Equal(t, name == "currencies", runs("web.fetch"), "it is known that the tool has no price")
	}
}

func TestAnswer_OfATool(t *testing.T) {
	t.Parallel()
	b := newBank()
	r := request("openai/gpt")
	r.Call, r.Pass = "7.2/page", 1
	_, err := ask(t, b.meter(), r)
	require.NoError(t, err)
	require.Equal(t, []budget.Record{{Pass: 7, CallID: "7.2/page", Model: "openai/gpt", Usage: b.usage}}, b.records)
}

func TestCharge_SettlesAPricedTool(t *testing.T) {
	t.Parallel()
	b := newBank(head + "prices: {tools: [{tool: web.search, call: 0.4}]}\nlimits: [{name: all, level: tenant, cost: 1}, {name: tokens, level: tenant, tokens: 1}]")
	m := b.meter()
	call := jig.Call{Tenant: "acme", SessionID: "ses_1", ID: "2.1", Pass: 2, Tool: "web.search"}
	account := budget.Account{Budget: "spending", Limit: "all"}
	run := func(result jig.ToolResult) jig.ToolResult {
		return m.Charge(t.Context(), call, func() jig.ToolResult {
			require.Equal(t, "0.40", b.used[account].Held.Cost.String(), "reserved while it runs")
			return result
		})
	}
	require.True(t, run(jig.ToolResult{Success: true}).Success)
	require.Equal(t, "0.40", b.used[account].Spent.Cost.String())
	nothing := jig.Errorf(jig.CodeInvalidInput, "no query")
	require.Equal(t, nothing, run(jig.Failure(nothing)).Error)
	require.Equal(t, "0.40", b.used[account].Spent.Cost.String(), "nothing happened")
	run(jig.Failure(jig.Errorf(jig.CodeInternal, "broken")))
	require.Equal(t, "0.80", b.used[account].Spent.Cost.String(), "it may have happened")
	require.Len(t, b.records, 2)

	result := run(jig.ToolResult{Success: true})
	require.Equal(t, jig.CodeBudgetExhausted, result.Cause().Code)
	require.True(t, result.Cause().NotExecuted)
	require.Equal(t, []string{"budget.exhausted stop all"}, b.events)
	for tool, priced := range map[string]bool{"web.search": true, "web.fetch": false} {
		got, err := m.Priced(t.Context(), "acme", tool)
		require.NoError(t, err)
		require.Equal(t, priced, got)
	}
	b.statements = 0
	call.Tool = "web.fetch"
	require.True(t, m.Charge(t.Context(), call, func() jig.ToolResult { return jig.ToolResult{Success: true} }).Success)
	require.Zero(t, b.statements)
}

// The cost of a preview could not be recorded, because a preview writes nothing.
func TestAnswer_RefusesPreviews(t *testing.T) {
	t.Parallel()
	b := newBank()
	_, err := b.meter().Answer(confine.ReadOnly(t.Context()), request("openai/gpt"), func(string) {})
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
	require.Empty(t, b.models)
}
