package spec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/expr"
)

// DefaultCurrency is the currency of budgets that name none.
const DefaultCurrency = "USD"

// Budget is a parsed document of kind budget: prices of models and tools, and limits on what calls may use.
type Budget struct {
	Kind        string        `json:"kind" spec:"required" jsonschema:"budget."`
	Name        string        `json:"name" spec:"required,max=128,form=name" hint:"add e.g. name: spending" jsonschema:"The budget's name: lower-case letters, digits, '.', '_' and '-'."`
	Description string        `json:"description,omitempty" spec:"max=4096" jsonschema:"What the budget is for."`
	Currency    string        `json:"currency,omitempty" spec:"form=currency" jsonschema:"The currency of all amounts, e.g. EUR; default USD. All budgets of a tenant have the same."`
	Prices      budgetPrices  `json:"prices,omitzero" jsonschema:"What models and tools cost. The prices of all budgets of a tenant count together."`
	Limits      []BudgetLimit `json:"limits,omitempty" spec:"max=100" jsonschema:"How much may be used. A call must fit into all limits that apply to it."`
}

type budgetPrices struct {
	Models []modelPrice `json:"models,omitempty" spec:"max=1000" jsonschema:"Prices of models."`
	Tools  []toolPrice  `json:"tools,omitempty" spec:"max=1000" jsonschema:"Prices of tools. Other tools cost nothing."`
}

type modelPrice struct {
	Model       string   `json:"model" spec:"required,max=256,form=model_choice" hint:"add e.g. model: anthropic/claude-sonnet-4-5" jsonschema:"provider/model, or with a * at the end for all models that begin so. The longest match counts."`
	Input       float64  `json:"input,omitempty" jsonschema:"The price of a million input tokens."`
	Output      float64  `json:"output,omitempty" jsonschema:"The price of a million output tokens."`
	CachedInput *float64 `json:"cached_input,omitempty" jsonschema:"The price of a million input tokens that the provider reads from its cache; default: input."`
	CacheWrite  *float64 `json:"cache_write,omitempty" jsonschema:"The price of a million input tokens that the provider writes to its cache; default: input."`
	Call        float64  `json:"call,omitempty" jsonschema:"The price of each request, in addition to its tokens."`
}

type toolPrice struct {
	Tool string  `json:"tool" spec:"required,max=64,form=tool_name" hint:"add e.g. tool: web.search" jsonschema:"The tool's name."`
	Call float64 `json:"call" spec:"required" hint:"add e.g. call: 0.01" jsonschema:"The price of each call that runs."`
}

// BudgetLimit bounds what the calls to which it applies may use together.
type BudgetLimit struct {
	Name   string        `json:"name" spec:"required,max=64,form=name" hint:"add e.g. name: per-day" jsonschema:"The limit's name, unique in the document. Errors and events name it."`
	Level  budget.Level  `json:"level" spec:"required,form=budget_level" hint:"add level: tenant, agent, session or pass" jsonschema:"What is counted together: tenant, agent, session (with all sessions that it starts) or pass."`
	Window budget.Window `json:"window,omitempty" spec:"form=budget_window" jsonschema:"day (by UTC) or total (the default)."`
	Tokens int64         `json:"tokens,omitempty" spec:"min=1" jsonschema:"How many tokens may be used: input and output, cached or not."`
	Cost   float64       `json:"cost,omitempty" jsonschema:"How much money may be spent."`
	// When selects the calls to which the limit applies; empty: all.
	When Expression `json:"when,omitempty" spec:"max=4096" jsonschema:"The calls to which the limit applies (CEL over model, tool, agent, principal, tenant, session and now); default: all."`
	// Exhausted says what happens to calls that do not fit. The first rule whose condition holds counts.
	Exhausted []budgetRule `json:"exhausted,omitempty" spec:"max=20" jsonschema:"What happens to a call that does not fit. The first rule whose condition holds counts; without one the session stops."`
}

type budgetRule struct {
	When   Expression    `json:"when,omitempty" spec:"max=4096" jsonschema:"When the rule applies (CEL over the same variables and limit); default: always."`
	Action budget.Action `json:"action" spec:"required,form=budget_action" hint:"add action: stop, ask or degrade" jsonschema:"stop (the session ends, a call of a tool fails), ask (the session waits for a person) or degrade (another model answers)."`
	Model  string        `json:"model,omitempty" spec:"max=256,form=model" jsonschema:"The model that answers instead; with action: degrade."`
}

// LoadBudget reads a document of kind budget, in YAML or JSON. document is the file name for error messages. The error is a [Problems] with
// everything that is wrong.
func LoadBudget(document string, body []byte) (Budget, error) {
	return loadAs[Budget](KindBudget, document, body)
}

func (d *decoder) budget(b Budget, _ source) Budget {
	if len(b.Prices.Models)+len(b.Prices.Tools)+len(b.Limits) == 0 && len(d.problems) == 0 {
		d.at("", ProblemMissingKey, "add prices or limits", "the budget has neither prices nor limits")
	}
	d.checkPrices(b.Prices)
	for i, limit := range b.Limits {
		d.checkLimit(indexPath("limits", i), limit)
	}
	d.unique("prices.models", "model", len(b.Prices.Models), func(i int) string { return b.Prices.Models[i].Model })
	d.unique("prices.tools", "tool", len(b.Prices.Tools), func(i int) string { return b.Prices.Tools[i].Tool })
	d.unique("limits", "name", len(b.Limits), func(i int) string { return b.Limits[i].Name })
	d.checkBudgetExpressions(b.Limits)
	return b
}

// maxAmount bounds prices and limits, so that sums of billionths fit into 64 bits.
const maxAmount = 1_000_000

func (d *decoder) checkPrices(p budgetPrices) {
	for i, m := range p.Models {
		at := indexPath("prices.models", i)
		for _, key := range []string{"input", "output", "cached_input", "cache_write", "call"} {
			value := map[string]float64{"input": m.Input, "output": m.Output, "call": m.Call}[key]
			if key == "cached_input" && m.CachedInput != nil {
				value = *m.CachedInput
			}
			if key == "cache_write" && m.CacheWrite != nil {
				value = *m.CacheWrite
			}
			d.checkAmount(at+"."+key, value)
		}
	}
	for i, t := range p.Tools {
		d.checkAmount(indexPath("prices.tools", i)+".call", t.Call)
	}
}

func (d *decoder) checkAmount(path string, amount float64) {
	if amount < 0 || amount > maxAmount {
		d.at(path, ProblemOutOfRange, fmt.Sprintf("use 0 to %d", maxAmount), "%v is out of range", amount)
	}
}

func (d *decoder) checkLimit(path string, limit BudgetLimit) {
	d.checkAmount(path+".cost", limit.Cost)
	if !d.has(path+".tokens") && !d.has(path+".cost") {
		d.at(path, ProblemMissingKey, "add tokens or cost", "the limit bounds nothing")
	}
	if d.has(path+".cost") && limit.Cost == 0 {
		d.at(path+".cost", ProblemOutOfRange, "leave it out if there is no limit on the cost", "a limit of 0 is not allowed")
	}
	for i, rule := range limit.Exhausted {
		at := indexPath(path+".exhausted", i)
		switch {
		case rule.Action == budget.ActionDegrade && !d.has(at+".model"):
			d.at(at, ProblemMissingKey, "add e.g. model: openai/gpt-5-mini", "action: degrade needs the model that answers instead")
		case rule.Action != budget.ActionDegrade && d.has(at+".model"):
			d.at(at+".model", ProblemBadShape, "remove it, or write action: degrade", "only action: degrade has a model")
		}
	}
}

// BudgetShapes returns the JSON Schemas of the variables that budgets can read, by name. model is empty for the call of a tool, and tool for
// a session's own request to its model.
func BudgetShapes() expr.Shapes {
	shapes := PolicyShapes()
	of := func(raw string) []byte { return []byte(raw) }
	return expr.Shapes{
		"agent":     shapes["agent"],
		"principal": of(`{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string"}}}`),
		"session": of(`{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string"},"pass":{"type":"integer"},` +
			`"root_agent":{"type":"string"},"parent_agent":{"type":"string"},"depth":{"type":"integer"},"source":{"type":"string"}}}`),
		"limit": of(`{"type":"object","additionalProperties":false,"properties":{"name":{"type":"string"},"level":{"type":"string"},` +
			`"tokens":{"type":"integer"},"cost":{"type":"number"},"used_tokens":{"type":"integer"},"used_cost":{"type":"number"}}}`),
	}
}

func (d *decoder) checkBudgetExpressions(limits []BudgetLimit) {
	env, err := expr.BudgetUse().Env()
	if err != nil {
		d.at("limits", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	c, shapes := compiler{decoder: d, env: env}, BudgetShapes()
	check := func(path string, source Expression) {
		if source == "" {
			return
		}
		if err := env.Check(string(source), expr.Bool, shapes); err != nil {
			c.report(path, err)
		}
	}
	for i, limit := range limits {
		path := indexPath("limits", i)
		check(path+".when", limit.When)
		for j, rule := range limit.Exhausted {
			check(indexPath(path+".exhausted", j)+".when", rule.When)
		}
	}
}

// explainBudget says what a budget limits, and what happens to calls that do not fit.
func explainBudget(doc Document, _ []Document, _ []jig.Tool) (text, diagram string) {
	b := doc.Budget()
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("budget %s", b.Name)
	if b.Description != "" {
		line("%s", b.Description)
	}
	currency := cmp.Or(b.Currency, DefaultCurrency)
	line("it has prices of %d models and %d tools, in %s", len(b.Prices.Models), len(b.Prices.Tools), currency)
	for _, l := range b.Limits {
		var most []string
		if l.Tokens > 0 {
			most = append(most, fmt.Sprintf("%d tokens", l.Tokens))
		}
		if l.Cost > 0 {
			most = append(most, budget.MoneyOf(l.Cost).String()+" "+currency)
		}
		per := map[budget.Level]string{
			budget.LevelTenant: "the tenant", budget.LevelAgent: "each agent", budget.LevelSession: "each session with those that it starts",
			budget.LevelPass: "each pass",
		}[l.Level]
		when, which := "in total", ""
		if l.Window == budget.WindowDay {
			when = "a day"
		}
		if l.When != "" {
			which = ", counting calls for which " + string(l.When)
		}
		line("%s: %s may use %s %s%s", l.Name, per, strings.Join(most, " and "), when, which)
		line("  then: %s", thenText(l.Exhausted))
	}
	return out.String(), ""
}

// thenText says what the rules of a limit do.
func thenText(rules []budgetRule) string {
	words := map[budget.Action]string{
		budget.ActionStop: "the session stops", budget.ActionAsk: "the session waits for a person", budget.ActionDegrade: "%s answers instead",
	}
	var parts []string
	for _, r := range rules {
		text := words[r.Action]
		if r.Action == budget.ActionDegrade {
			text = fmt.Sprintf(text, r.Model)
		}
		if r.When == "" {
			return strings.Join(append(parts, text), "; else ")
		}
		parts = append(parts, text+" if "+string(r.When))
	}
	return strings.Join(append(parts, words[budget.ActionStop]), "; else ")
}
