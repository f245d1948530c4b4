package starter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
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
			return a.with(cmd.Context(), func(e engine) error {
				u, err := ask(cmd.Context(), a, e, api.GetUsage, request)
				if err != nil {
					return err
				}
				return a.output(u, func() error { return a.printUsage(request.By, u) })
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
	a.table(rows)
	if len(u.Budgets) == 0 {
		return nil
	}
	a.line("")
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

func (a *app) statisticsCommand() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "statistics",
		Short: "Show approval statistics: waiting calls, time to decision, expiry",
		Long: `Show approval statistics: what is waiting and for how long, how recent approvals ended, and how long people took to decide, per
reviewer and per tool. An approval that needs several people counts for the person who completed it; "votes" counts every vote.
JSON output: the statistics as one document, with times in seconds.`,
		Example: `  jig approvals statistics
  jig approvals statistics --since 7d --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := ago("--since", since, time.Now())
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), func(e engine) error {
				f, err := ask(cmd.Context(), a, e, api.GetStatistics, protocol.StatisticsRequest{Since: from})
				if err != nil {
					return err
				}
				return a.output(f, func() error { return a.printStatistics(f) })
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "30d", "how far back to count decisions")
	return cmd
}

func (a *app) printStatistics(f protocol.ApprovalStats) error {
	waits := "no call"
	if f.Open.Count > 0 {
		var kinds []string
		for _, kind := range []jig.PendingKind{jig.PendingApproval, jig.PendingReconcile, jig.PendingQuestion} {
			if n := f.Open.Kinds[kind]; n > 0 {
				kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
			}
		}
		waits = fmt.Sprintf("%d (%s); the oldest for %s, half of them for %s or more", f.Open.Count, strings.Join(kinds, ", "),
			lasting(f.Open.Age.Max), lasting(f.Open.Age.P50))
	}
	rows := [][]string{{"waiting", waits}, {"ended", a.outcomes(f)}}
	if f.Decided.Time.Max > 0 {
		rows = append(rows, []string{"time to decision", fmt.Sprintf("half within %s, 90%% within %s, the longest %s",
			lasting(f.Decided.Time.P50), lasting(f.Decided.Time.P90), lasting(f.Decided.Time.Max))})
	}
	rows = append(rows, []string{"expiry rate", percent(f.Decided.ExpiryRate)})
	a.table(rows)
	if len(f.Reviewers) > 0 {
		rows = [][]string{{"REVIEWER", "APPROVED", "DENIED", "VOTES", "MEDIAN"}}
		for _, r := range f.Reviewers {
			rows = append(rows, []string{oneLine(r.By, 60), strconv.Itoa(r.Approved), strconv.Itoa(r.Denied), strconv.Itoa(r.Votes), lasting(r.Median)})
		}
		a.line("")
		a.table(rows)
	}
	if len(f.Tools) > 0 {
		rows = [][]string{{"TOOL", "WAITING", "DECIDED", "APPROVED", "EXPIRED", "MEDIAN"}}
		for _, r := range f.Tools {
			approved := "–"
			if r.Decided > 0 {
				approved = percent(r.ApprovedShare)
			}
			rows = append(rows, []string{
				oneLine(r.Tool, 60), strconv.Itoa(r.Open), strconv.Itoa(r.Decided), approved, strconv.Itoa(r.Expired), lasting(r.Median),
			})
		}
		a.line("")
		a.table(rows)
	}
	return nil
}

func (a *app) outcomes(f protocol.ApprovalStats) string {
	text := fmt.Sprintf("%d since %s", f.Decided.Count, f.Since.Local().Format(time.DateTime))
	var parts []string
	for _, o := range []protocol.ApprovalOutcome{
		protocol.OutcomeApproved, protocol.OutcomeGranted, protocol.OutcomeDenied, protocol.OutcomeExpired, protocol.OutcomeReplaced, protocol.OutcomeCanceled,
	} {
		if n := f.Decided.Outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// lasting formats a number of seconds with one or two units.
func lasting(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	day := 24 * time.Hour
	switch {
	case seconds <= 0:
		return "–"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(1, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", d/day, int(d.Hours())%24)
	}
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + "%" }
