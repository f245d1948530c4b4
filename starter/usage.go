package starter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/internal/protocol"
)

func (a *app) usageCommand() *cobra.Command {
	request := protocol.UsageRequest{By: []string{"model"}}
	var since string
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what sessions used: tokens, calls, cost; and what is left of the budgets",
		Long: `Show what the tenant's sessions used, by agent, model, tool or day: requests to models with their tokens, calls of tools, and what they
cost at the prices of that time. Tokens that the provider read from its cache are counted apart from other input. Deleted sessions are
left out. The second table shows how much of the tenant's budgets is used and reserved now.
JSON output: {"since", "currency"?, "rows": […], "budgets": […]}.`,
		Example: `  jig usage
  jig usage --since 7d --by day,model
  jig usage --agent researcher --by tool --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, by := range request.By {
				if !slices.Contains(protocol.UsageDimensions(), by) {
					return usagef("--by is %q; write some of %s", by, strings.Join(protocol.UsageDimensions(), ","))
				}
			}
			var err error
			if request.Since, err = ago("--since", since, time.Now()); err != nil {
				return err
			}
			request.Tenant = a.flags.tenant
			return a.with(cmd.Context(), func(e engine) error {
				u, err := e.Usage(cmd.Context(), request)
				if err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(u)
				}
				return a.printUsage(request.By, u)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "30d", "how far back to count")
	flags.StringSliceVar(&request.By, "by", request.By, "what to group by: agent, model, tool, day")
	flags.StringVar(&request.Agent, "agent", "", "only this agent's sessions")
	flags.StringVar(&request.Model, "model", "", "only this model, as provider/name")
	flags.StringVar(&request.Tool, "tool", "", "only this tool, and the models that it asked")
	flags.StringVar(&request.SessionID, "session", "", "only this session, without those that it started")
	return cmd
}

func (a *app) printUsage(by []string, u protocol.Usage) error {
	cost := "COST"
	if u.Currency != "" {
		cost += " " + u.Currency
	}
	var head []string
	for _, one := range by {
		head = append(head, strings.ToUpper(one))
	}
	rows := [][]string{append(head, "REQUESTS", "CALLS", "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT", cost)}
	for _, r := range u.Rows {
		var row []string
		for _, one := range by {
			value := map[string]string{"agent": r.Agent, "model": r.Model, "tool": r.Tool, "day": r.Day}[one]
			row = append(row, cmp.Or(oneLine(value, 60), "–"))
		}
		for _, n := range []int64{r.Requests, r.Calls, r.InputTokens, r.CacheReadTokens, r.CacheCreateTokens, r.OutputTokens} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, append(row, r.Cost.String()))
	}
	if err := table(a.stdout, rows); err != nil || len(u.Budgets) == 0 {
		return err
	}
	rows = [][]string{{"BUDGET", "LIMIT", "OF", "DAY", "TOKENS", cost}}
	for _, b := range u.Budgets {
		tokens, money := "–", "–"
		if b.Tokens > 0 {
			tokens = used(strconv.FormatInt(b.UsedTokens, 10), strconv.FormatInt(b.ReservedTokens, 10), strconv.FormatInt(b.Tokens, 10))
		}
		if b.Cost != "" {
			money = used(b.UsedCost.String(), b.ReservedCost.String(), b.Cost.String())
		}
		rows = append(rows, []string{
			oneLine(b.Budget, 40), oneLine(b.Limit, 40), strings.TrimSpace(b.Level + " " + oneLine(b.Scope, 60)), cmp.Or(b.Day, "–"), tokens, money,
		})
	}
	return a.printTable(rows)
}

// used formats a part of a limit, e.g. "30 of 100 (20 reserved)".
func used(spent, reserved, limit string) string {
	text := spent + " of " + limit
	if strings.Trim(reserved, "0.") != "" {
		text += " (" + reserved + " reserved)"
	}
	return text
}
