package spec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
)

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
