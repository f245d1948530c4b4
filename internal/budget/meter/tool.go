package meter

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/protocol"
)

// toolKey names the call of a priced tool within its session.
func toolKey(call string) string { return "call " + call }

// Priced reports whether the calls of a tool have a price.
func (m *Meter) Priced(ctx context.Context, tenant, tool string) (bool, error) {
	b, err := m.tenants.Of(ctx, tenant)
	if err != nil {
		return false, err
	}
	_, ok := b.tools[tool]
	return ok || b.held(tool), nil
}

// Charge runs an attempt of a call within the tenant's budgets. If the tool has a price, it is reserved before run, and charged afterwards
// unless the failure says that nothing happened.
func (m *Meter) Charge(ctx context.Context, call jig.Call, run func() jig.ToolResult) jig.ToolResult {
	b, err := m.tenants.Of(ctx, call.Tenant)
	if err == nil && b.held(call.Tool) {
		err = b.broken
	}
	if err != nil {
		return notRun(err)
	}
	price, ok := b.tools[call.Tool]
	if !ok {
		return run()
	}
	at := &situation{budgets: b}
	if len(b.limits) > 0 {
		if at.session, err = m.options.Counters.Session(ctx, call.Tenant, call.SessionID); err != nil {
			return notRun(err)
		}
	}
	at.pass, at.call, at.tool, at.key = call.Pass, call.ID, call.Tool, toolKey(call.ID)
	r, err := m.reserve(ctx, at, charge{Tool: call.Tool})
	if err != nil {
		return notRun(err)
	}
	result := run()
	s := budget.Settlement{Reservation: r.Reservation}
	s.Tenant, s.SessionID = call.Tenant, call.SessionID
	spent := budget.Amount{Cost: price.Call}
	if cause := result.Cause(); !result.Success && cause != nil && cause.NoEffect() {
		spent = budget.Amount{}
	} else {
		s.Record = &budget.Record{Pass: call.Pass, CallID: call.ID, Usage: chat.Usage{Cost: int64(price.Call)}}
	}
	for range r.Claims {
		s.Spent = append(s.Spent, spent)
	}
	m.settle(ctx, s)
	return result
}

// notRun returns the result of a call that a budget did not let run.
func notRun(err error) jig.ToolResult {
	e := *jig.AsError(err)
	e.NotExecuted = true
	return jig.Failure(&e)
}

// Limits adds to counters the limits that they belong to, as they are now. It leaves out counters whose limit no longer exists.
func (m *Meter) Limits(ctx context.Context, tenant string, used []budget.Used) (currency string, states []protocol.BudgetState, err error) {
	b, err := m.tenants.Of(ctx, tenant)
	if err != nil {
		return "", nil, err
	}
	states = []protocol.BudgetState{}
	for _, u := range used {
		i := slices.IndexFunc(b.limits, func(l limit) bool { return l.budget == u.Budget && l.Name == u.Limit })
		if i < 0 {
			continue
		}
		l := b.limits[i]
		s := protocol.BudgetState{
			Budget: u.Budget, Limit: u.Limit, Level: string(l.Level), Scope: u.Scope, Day: u.Period, Tokens: l.Tokens,
			UsedTokens: u.Spent.Tokens, UsedCost: number(u.Spent.Cost), ReservedTokens: u.Held.Tokens, ReservedCost: number(u.Held.Cost),
		}
		if l.Cost > 0 {
			s.Cost = number(budget.MoneyOf(l.Cost))
		}
		states = append(states, s)
	}
	return b.currency, states, nil
}

// Periods returns the periods that limits count now: the present day, and the total.
func (m *Meter) Periods() []string { return []string{"", day(m.options.Now())} }

func number(amount budget.Money) json.Number { return json.Number(amount.String()) }
