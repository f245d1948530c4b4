package meter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// budgets holds a tenant's prices and limits. It is immutable.
type budgets struct {
	// broken says why the documents cannot be used. No model and no priced tool is called while it is set.
	broken   error
	currency string
	models   []modelPrice
	// tools is nil if it is not known which tools have a price.
	tools  map[string]budget.Price
	limits []limit
}

// held reports whether calls of a tool are held back because the documents cannot be used.
func (b *budgets) held(tool string) bool {
	_, priced := b.tools[tool]
	return b.broken != nil && (priced || b.tools == nil) && !toolname.Registers(tool)
}

type modelPrice struct {
	pattern string
	budget.Price
}

// limit is a limit of a document with its compiled conditions. A nil condition always holds.
type limit struct {
	spec.BudgetLimit

	budget string
	when   *expr.Program
	rules  []rule
}

type rule struct {
	action budget.Action
	model  string
	when   *expr.Program
}

// newBudgets compiles documents, which are sorted by name.
func newBudgets(documents []spec.Budget) (*budgets, error) {
	env, err := expr.BudgetUse().Env()
	if err != nil {
		return nil, fmt.Errorf("compile budgets: %w", err)
	}
	b := &budgets{tools: map[string]budget.Price{}}
	first := ""
	for _, d := range documents {
		currency := d.Currency
		if currency == "" {
			currency = spec.DefaultCurrency
		}
		switch {
		case b.currency == "":
			b.currency, first = currency, d.Name
		case b.currency != currency:
			b.broken = jig.Errorf(jig.CodeUnavailable, "the budgets %s and %s have different currencies, so no model is called", first, d.Name).
				WithHint("give all budgets of the tenant the same currency: jig catalog add FILE")
		}
		b.addPrices(d)
		for _, l := range d.Limits {
			made, err := compile(env, d.Name, l)
			if err != nil {
				return nil, err
			}
			b.limits = append(b.limits, made)
		}
	}
	slices.SortStableFunc(b.models, func(x, y modelPrice) int { return specificity(y.pattern) - specificity(x.pattern) })
	return b, nil
}

// specificity orders patterns: a whole name counts more than any pattern, a longer pattern more than a shorter one.
func specificity(pattern string) int {
	if strings.HasSuffix(pattern, "*") {
		return len(pattern)
	}
	return 1 << 20
}

func (b *budgets) addPrices(d spec.Budget) {
	for _, m := range d.Prices.Models {
		p := budget.Price{Input: budget.MoneyOf(m.Input), Output: budget.MoneyOf(m.Output), Call: budget.MoneyOf(m.Call)}
		p.CachedInput, p.CacheWrite = p.Input, p.Input
		if m.CachedInput != nil {
			p.CachedInput = budget.MoneyOf(*m.CachedInput)
		}
		if m.CacheWrite != nil {
			p.CacheWrite = budget.MoneyOf(*m.CacheWrite)
		}
		b.models = append(b.models, modelPrice{m.Model, p})
	}
	for _, t := range d.Prices.Tools {
		if _, twice := b.tools[t.Tool]; !twice {
			b.tools[t.Tool] = budget.Price{Call: budget.MoneyOf(t.Call)}
		}
	}
}

func compile(env *expr.Env, name string, l spec.BudgetLimit) (limit, error) {
	made := limit{BudgetLimit: l, budget: name}
	var err error
	if made.when, err = condition(env, l.When); err != nil {
		return made, fmt.Errorf("budget %s, limit %s: %w", name, l.Name, err)
	}
	for _, r := range l.Exhausted {
		one := rule{action: r.Action, model: r.Model}
		if one.when, err = condition(env, r.When); err != nil {
			return made, fmt.Errorf("budget %s, limit %s: %w", name, l.Name, err)
		}
		made.rules = append(made.rules, one)
	}
	return made, nil
}

func condition(env *expr.Env, source spec.Expression) (*expr.Program, error) {
	if source == "" {
		return nil, nil // no condition: it always holds
	}
	return env.CompileAs(string(source), expr.Bool)
}

// price returns the price of a model. A script costs nothing unless it has a price.
func (b *budgets) price(model string) (budget.Price, bool) {
	for _, m := range b.models {
		prefix, wild := strings.CutSuffix(m.pattern, "*")
		if m.pattern == model || wild && strings.HasPrefix(model, prefix) {
			return m.Price, true
		}
	}
	return budget.Price{}, scripted(model)
}

// scripted reports whether a model is a script, which uses no tokens.
func scripted(model string) bool { return strings.HasPrefix(model, "script/") }

// account returns what a limit counts for a call.
func (l limit) account(at *situation, root string, now time.Time) budget.Account {
	a := budget.Account{Budget: l.budget, Limit: l.Name}
	switch l.Level {
	case budget.LevelTenant:
	case budget.LevelAgent:
		a.Scope = at.session.Agent.Name
	case budget.LevelSession:
		a.Scope = root
	case budget.LevelPass:
		a.Scope = fmt.Sprintf("%s/%d", at.session.ID, at.pass)
	}
	if l.Window == budget.WindowDay {
		a.Period = day(now)
	}
	return a
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// applies reports whether a limit applies to a call. It applies if its condition cannot be evaluated.
func (l limit) applies(ctx context.Context, vars map[string]any) bool {
	holds, err := evaluate(ctx, l.when, vars)
	return holds || err != nil
}

// rule returns what happens to a call that does not fit. A rule that cannot be evaluated applies, unless it is to degrade.
func (l limit) rule(ctx context.Context, vars map[string]any, e budget.Exhausted) rule {
	vars["limit"] = map[string]any{
		"name": l.Name, "level": string(l.Level), "tokens": l.Tokens, "cost": l.Cost,
		"used_tokens": e.Used.Spent.Tokens + e.Used.Held.Tokens, "used_cost": (e.Used.Spent.Cost + e.Used.Held.Cost).Float(),
	}
	for _, r := range l.rules {
		if holds, err := evaluate(ctx, r.when, vars); holds || err != nil && r.action != budget.ActionDegrade {
			return r
		}
	}
	return rule{action: budget.ActionStop}
}

func evaluate(ctx context.Context, p *expr.Program, vars map[string]any) (bool, error) {
	if p == nil {
		return true, nil
	}
	return p.EvalBool(ctx, vars)
}
