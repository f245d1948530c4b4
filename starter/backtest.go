package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/argument"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/suggest"
)

// shownExamples is the maximum number of calls that are shown for a group.
const shownExamples = 5

func (a *app) policyBacktestCommand() *cobra.Command {
	var since string
	var all bool
	cmd := &cobra.Command{
		Use:   "backtest FILE",
		Short: "Evaluate a policy document on past calls",
		Long: `Evaluate a policy document on the calls of the last days: which calls would have run, asked or been denied, and how that differs
from the policies in force. The document replaces the registered policy of the same name, or is added to the others. The worker
uses the tools that it has now and the recorded arguments, including edits by people. Calls that were refused before policy was
evaluated (unknown tool, bad input, duplicate) are left out. Nothing is called or changed.
JSON output: {"calls", "refused", "unknown", "recorded", "now", "new", "moves": [{"now", "new", "count"}],
"differences": [{"tool", "rule", "now", "new", "reason"?, "count", "examples": […]}], "results"?} ("results" with --all).`,
		Example: `  jig policy backtest production.yaml
  jig policy backtest production.yaml --since 7d --all --output json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := ago("--since", since, time.Now())
			if err != nil {
				return err
			}
			doc, _, err := a.readPolicy(args[0])
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), func(e engine) error {
				report := newBacktestReport(from)
				err := e.Backtest(cmd.Context(), a.flags.tenant, doc.Body, from, all, func(page client.BacktestPage) error {
					report.take(page, all)
					return nil
				})
				if err != nil {
					return err
				}
				report.sort()
				return a.output(report, func() error { return a.printBacktest(report) })
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "30d", "how far back to look")
	cmd.Flags().BoolVar(&all, "all", false, "list every call, even if its verdict does not change")
	return cmd
}

// backtestReport is the JSON output of `policy backtest`.
type backtestReport struct {
	Since time.Time `json:"since"`
	// Calls counts the evaluated calls, Refused the calls that never reached policy, and Unknown the calls of tools that no longer exist.
	Calls    int                       `json:"calls"`
	Refused  int                       `json:"refused"`
	Unknown  int                       `json:"unknown"`
	Recorded map[jig.Verdict]int       `json:"recorded"`
	Now      map[jig.Verdict]int       `json:"now"`
	New      map[jig.Verdict]int       `json:"new"`
	Moves    []backtestMove            `json:"moves"`
	Groups   []backtestGroup           `json:"differences"`
	Results  []protocol.BacktestResult `json:"results,omitempty"`

	unknownTools map[string]int
}

// backtestMove counts the calls whose verdict changes from one to another.
type backtestMove struct {
	Now   jig.Verdict `json:"now"`
	New   jig.Verdict `json:"new"`
	Count int         `json:"count"`
}

// backtestGroup counts the calls of one tool whose verdict changes in the same way because of the same rule. Rule is empty if the reason is
// that a rule no longer applies.
type backtestGroup struct {
	Tool     string                    `json:"tool"`
	Rule     string                    `json:"rule"`
	Now      jig.Verdict               `json:"now"`
	New      jig.Verdict               `json:"new"`
	Reason   string                    `json:"reason,omitempty"`
	Count    int                       `json:"count"`
	Examples []protocol.BacktestResult `json:"examples"`
}

func newBacktestReport(since time.Time) *backtestReport {
	return &backtestReport{
		Since: since, Recorded: map[jig.Verdict]int{}, Now: map[jig.Verdict]int{}, New: map[jig.Verdict]int{},
		Moves: []backtestMove{}, Groups: []backtestGroup{}, unknownTools: map[string]int{},
	}
}

func (r *backtestReport) take(page client.BacktestPage, all bool) {
	r.Refused += page.Refused
	r.Unknown += page.Unknown
	for _, c := range page.Tally {
		r.Calls += c.Count
		r.Recorded[c.Recorded] += c.Count
		r.Now[c.Now] += c.Count
		r.New[c.New] += c.Count
		i := slices.IndexFunc(r.Moves, func(m backtestMove) bool { return m.Now == c.Now && m.New == c.New })
		if i < 0 {
			i = len(r.Moves)
			r.Moves = append(r.Moves, backtestMove{Now: c.Now, New: c.New})
		}
		r.Moves[i].Count += c.Count
	}
	for _, result := range page.Results {
		switch {
		case result.New == "":
			r.unknownTools[result.Tool]++
		case result.Changed():
			r.group(result)
		}
		if all {
			r.Results = append(r.Results, result)
		}
	}
}

func (r *backtestReport) group(result protocol.BacktestResult) {
	rule := ""
	if len(result.Rules) > 0 {
		rule = result.Rules[0]
	}
	i := slices.IndexFunc(r.Groups, func(g backtestGroup) bool {
		return g.Tool == result.Tool && g.Rule == rule && g.Now == result.Now && g.New == result.New
	})
	if i < 0 {
		i = len(r.Groups)
		r.Groups = append(r.Groups, backtestGroup{Tool: result.Tool, Rule: rule, Now: result.Now, New: result.New, Reason: result.Reason})
	}
	g := &r.Groups[i]
	g.Count++
	if len(g.Examples) < shownExamples {
		g.Examples = append(g.Examples, result)
	}
}

// sort puts the largest counts first.
func (r *backtestReport) sort() {
	slices.SortFunc(r.Moves, func(a, b backtestMove) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Now, b.Now), cmp.Compare(a.New, b.New))
	})
	slices.SortFunc(r.Groups, func(a, b backtestGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.New, b.New))
	})
}

func (a *app) printBacktest(r *backtestReport) error {
	rows := [][]string{{plural(r.Calls, "call", "calls"), "RUN", "ASK", "DENY"}}
	for _, row := range []struct {
		name   string
		counts map[jig.Verdict]int
	}{{"as recorded", r.Recorded}, {"policies in force", r.Now}, {"with the document", r.New}} {
		cells := []string{row.name}
		for _, v := range []jig.Verdict{jig.VerdictRun, jig.VerdictAsk, jig.VerdictDeny} {
			cells = append(cells, strconv.Itoa(row.counts[v]))
		}
		rows = append(rows, cells)
	}
	a.table(rows)
	if err := a.printMoves(r); err != nil {
		return err
	}
	for _, g := range r.Groups {
		because := "no rule applies any more"
		if g.Rule != "" {
			because = fmt.Sprintf("%s: %s", g.Rule, oneLine(g.Reason, 200))
		}
		a.line("\n%s: %s to %s, %s (%s)", a.out.bold(oneLine(g.Tool, 0)), a.verdictWord(g.Now), a.verdictWord(g.New),
			plural(g.Count, "call", "calls"), because)
		if err := a.printResults(g.Examples, false); err != nil {
			return err
		}
		if more := g.Count - len(g.Examples); more > 0 {
			a.line("  … and %d more", more)
		}
	}
	if len(r.Results) > 0 {
		a.line("\nall calls")
		if err := a.printResults(r.Results, true); err != nil {
			return err
		}
	}
	a.sayLeftOut(r)
	return nil
}

// printMoves prints how many calls change from which verdict to which.
func (a *app) printMoves(r *backtestReport) error {
	same := 0
	var rows [][]string
	for _, m := range r.Moves {
		if m.Now == m.New {
			same += m.Count
			continue
		}
		rows = append(rows, []string{fmt.Sprintf("  %s to %s", m.Now, m.New), strconv.Itoa(m.Count)})
	}
	if len(rows) == 0 {
		return a.print("\nthe document changes nothing")
	}
	a.line("\nthe document changes %s, and leaves %d as they are", plural(r.Calls-same, "call", "calls"), same)
	return a.printTable(rows)
}

func (a *app) printResults(results []protocol.BacktestResult, verdicts bool) error {
	rows := make([][]string, len(results))
	for i, r := range results {
		row := []string{"  " + r.SessionID, r.Call, r.At.Local().Format(time.DateTime)}
		switch {
		case verdicts && r.New == "":
			row = append(row, oneLine(r.Tool, 60), "unknown tool")
		case verdicts:
			row = append(row, oneLine(r.Tool, 60), fmt.Sprintf("%s to %s", r.Now, r.New))
		}
		rows[i] = append(row, fmt.Sprintf("recorded: %s, %s", r.Recorded, r.Status))
	}
	return a.printTable(rows)
}

// sayLeftOut prints which calls were not evaluated, and why.
func (a *app) sayLeftOut(r *backtestReport) {
	if r.Refused > 0 {
		a.say("left out: %s refused before policy (unknown tool, bad input, duplicate)", plural(r.Refused, "call that was", "calls that were"))
	}
	if r.Unknown > 0 {
		names := make([]string, 0, len(r.unknownTools))
		for name := range r.unknownTools {
			names = append(names, oneLine(name, 60))
		}
		slices.Sort(names)
		a.say("left out: %s of tools that the worker does not have: %s", plural(r.Unknown, "call", "calls"), strings.Join(names, ", "))
	}
}

// toolOf returns the tool that the flags describe, or the one of that name in the catalog.
func (a *app) toolOf(ctx context.Context, q policyQuestion) (jig.Tool, error) {
	if q.toolPermission != "" || q.toolRisk != "" {
		return describedTool(q)
	}
	const describe = "--tool-permission to describe the tool"
	known, err := a.catalog(ctx, q.catalog)
	if err != nil {
		return jig.Tool{}, alsoTry(err, "give --catalog FILE, or "+describe)
	}
	tool, ok := toolIn(known)(q.tool)
	if ok {
		return tool, nil
	}
	hint := cmp.Or(suggest.OrKnown(q.tool, toolNames(*known)), "give "+describe)
	return tool, jig.Errorf(jig.CodeNotFound, "there is no tool %s", q.tool).WithField("tool").WithHint(hint)
}

// describedTool returns a tool with the permission and the risk of the flags, or their defaults.
func describedTool(q policyQuestion) (jig.Tool, error) {
	permissions := []jig.Permission{"", jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive}
	if !slices.Contains(permissions, jig.Permission(q.toolPermission)) {
		return jig.Tool{}, usagef("--tool-permission is %q; it must be read, draft, write or destructive", q.toolPermission)
	}
	if !slices.Contains([]jig.Risk{"", jig.RiskSafe, jig.RiskModerate, jig.RiskHigh}, jig.Risk(q.toolRisk)) {
		return jig.Tool{}, usagef("--tool-risk is %q; it must be safe, moderate or high", q.toolRisk)
	}
	return jig.Tool{Name: q.tool, Permission: jig.Permission(q.toolPermission), Risk: jig.Risk(q.toolRisk)}.WithDefaults(), nil
}

// inputOf builds an input from a JSON object, the key=value pairs, and the defaults at the top level of the tool's schema. The value of a
// pair is JSON, unless it is not valid JSON or the schema expects a string; then it becomes a string.
func inputOf(tool jig.Tool, given json.RawMessage, pairs map[string]string) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(given) > 0 {
		if err := json.Unmarshal(given, &fields); err != nil {
			return nil, usagef("--input is not a JSON object: %w", err)
		}
	}
	var schema struct {
		Properties map[string]struct {
			Type    any             `json:"type"`
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(tool.InputSchema, &schema) //nolint:errcheck // a schema without properties declares no types
	for name, text := range pairs {
		fields[name] = json.RawMessage(text)
		if schema.Properties[name].Type == "string" || !json.Valid([]byte(text)) {
			quoted, err := jsontext.Encode(text)
			if err != nil {
				return nil, err
			}
			fields[name] = quoted
		}
	}
	for name, property := range schema.Properties {
		if _, set := fields[name]; !set && property.Default != nil {
			fields[name] = property.Default
		}
	}
	input, err := jsontext.Encode(fields)
	if err != nil {
		return nil, err
	}
	return argument.Canonical(tool.InputSchema, input)
}
