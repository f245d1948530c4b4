package starter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

func (a *app) policyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "policy",
		Short: "List policies, and try new ones safely",
		Long: `List the policies in force, and try new ones before you register them: run the cases of a policy document, or evaluate it on one call
or on the calls of the last days. Nothing is called or changed.`,
		Example: `  jig policy test production.yaml
  jig policy explain production.yaml --tool file.write --input path=docs/a.md`,
	}, a.policyListCommand(), a.policyTestCommand(), a.policyExplainCommand(), a.policyBacktestCommand())
}

// addCatalogFile adds --catalog without --offline, for commands that need the tools.
func (f *catalogFlags) addCatalogFile(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "catalog", "", "`FILE` written by \"catalog export\", to use instead of the worker's catalog")
	_ = cmd.MarkFlagFilename("catalog", "json") //nolint:errcheck // fails only for an unknown flag
}

func (a *app) policyTestCommand() *cobra.Command {
	var f catalogFlags
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Run the cases of a policy document",
		Long: `Run the cases of a policy document. Tools that cases give only by name are looked up in the catalog of the running worker or of
"catalog export"; a document whose cases all describe their tool needs neither. The exit code is 1 if a case fails.
JSON output: {"ok", "cases": [{"name", "expect", "got"?, "rules", "failed"?, "ok", "problem"?, "reasons"?, "terms"?}]}.`,
		Example: `  jig policy test production.yaml
  jig policy test production.yaml --catalog catalog.json --output json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, rules, err := a.readPolicy(args[0])
			if err != nil {
				return err
			}
			tools, err := a.toolsOfCases(cmd.Context(), doc.Policy().Cases, f)
			if err != nil {
				return err
			}
			return a.printCases(policy.Test(cmd.Context(), rules, tools))
		},
	}
	f.addCatalogFile(cmd)
	return cmd
}

// readPolicy reads and compiles a policy document.
func (a *app) readPolicy(file string) (spec.Document, *policy.Rules, error) {
	body, err := a.readFile(file)
	if err != nil {
		return spec.Document{}, nil, usage(err)
	}
	doc, problems := spec.Load(file, body)
	if kind := doc.Kind; kind != "" && doc.Policy() == nil && problems.OrNil() == nil {
		return doc, nil, usagef("%s describes the %s %s, but a policy is needed: kind: policy", file, kind, doc.Name)
	}
	if problems.OrNil() != nil {
		return doc, nil, usage(problems)
	}
	rules, err := policy.Compile(*doc.Policy(), doc.Version)
	return doc, rules, err
}

// toolsOfCases returns a function that looks up tools by name. It reads the catalog only if a case needs it, and otherwise returns nil.
func (a *app) toolsOfCases(ctx context.Context, cases []spec.PolicyCase, f catalogFlags) (func(string) (jig.Tool, bool), error) {
	for _, c := range cases {
		if !c.Lookup {
			continue
		}
		known, err := a.catalog(ctx, f)
		if err != nil {
			return nil, alsoTry(err, "give --catalog FILE, or spell out the tools of the cases: tool: {name: …, permission: …}")
		}
		return toolIn(known), nil
	}
	return nil, nil // nil: no case looks up a tool
}

func toolIn(known *client.Catalog) func(name string) (jig.Tool, bool) {
	return func(name string) (jig.Tool, bool) {
		for _, t := range known.Tools {
			if t.Name == name {
				return t, true
			}
		}
		return jig.Tool{}, false
	}
}

func (a *app) printCases(results []protocol.CaseResult) error {
	failed := 0
	for _, r := range results {
		if !r.OK {
			failed++
		}
	}
	code := exitDone
	if failed > 0 {
		code = exitFailed
	}
	if a.json() {
		return a.exitJSON(protocol.CasesPage{OK: failed == 0, Cases: results}, code)
	}
	for _, r := range results {
		if err := a.printCase(r); err != nil {
			return err
		}
	}
	total := plural(len(results), "case", "cases")
	switch {
	case len(results) == 0:
		a.say("the policy has no cases; see docs/policy.md")
	case failed > 0:
		a.say("%s: %d of %s", a.err.red("failed"), failed, total)
	default:
		a.say("%s: %s", a.err.green("ok"), total)
	}
	return silent(code)
}

func (a *app) printCase(r protocol.CaseResult) error {
	if r.OK {
		said := append([]string{string(r.Got)}, wanted(r.Terms)...)
		if r.Unless != "" {
			said = append(said, "unless "+r.Unless)
		}
		for _, rule := range r.Failed { // the case passes, but perhaps not for the reason that its author had in mind
			said = append(said, "rule "+rule+" failed")
		}
		return a.print("%s    %s: %s", a.out.green("ok"), oneLine(r.Name, 0), oneLine(strings.Join(said, ", "), 0))
	}
	a.line("%s  %s: %s", a.out.red("FAIL"), oneLine(r.Name, 0), oneLine(r.Problem, 0))
	for _, reason := range append(r.Reasons, conditions(r.Got, r.Terms)...) {
		a.line("        %s", oneLine(reason, 0))
	}
	return nil
}

// policyQuestion holds the flags of `policy explain`.
type policyQuestion struct {
	catalog          catalogFlags
	tool, agent, now string
	// toolPermission and toolRisk describe a tool that is not in the catalog.
	toolPermission, toolRisk string
	inputs                   []string
	groups, permissions      []string
}

func (a *app) policyExplainCommand() *cobra.Command {
	var q policyQuestion
	cmd := &cobra.Command{
		Use:   "explain FILE --tool NAME",
		Short: "Evaluate a policy document on one call",
		Long: `Evaluate a policy document on one call: print the verdict and every rule that applied. The tool is looked up in the catalog of the
running worker or of "catalog export". If it does not exist yet, describe it with --tool-permission and --tool-risk; the command then
needs no catalog. The call is evaluated as the first of a session that has written nothing, by the principal and tenant of --as and
--tenant. Defaults at the top level of the tool's schema are filled in; the input is not validated.
JSON output: {"tool", "verdict", "reasons", "policy_version", "expires"?, "terms"?, "base": {"verdict", "reasons"},
"rules": [{"rule", "verdict", "reason", "failed"?}]}.`,
		Example: `  jig policy explain production.yaml --tool file.write --input path=docs/a.md
  jig policy explain shop.yaml --tool shop.refund --tool-permission write --tool-risk high --input amount=20
  jig policy explain production.yaml --tool http.post --input @call.json --as ana --group ops --now 2026-12-24T20:00:00Z`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := jig.CheckToolName(q.tool); err != nil {
				return usagef("--tool: %w", err)
			}
			_, rules, err := a.readPolicy(args[0])
			if err != nil {
				return err
			}
			return a.explainCall(cmd.Context(), rules, q)
		},
	}
	q.catalog.addCatalogFile(cmd)
	flags := cmd.Flags()
	flags.StringVar(&q.tool, "tool", "", "tool to call")
	flags.StringVar(&q.toolPermission, "tool-permission", "", "read, draft, write or destructive: describes the tool instead of looking it up")
	flags.StringVar(&q.toolRisk, "tool-risk", "", "safe, moderate or high: describes the tool instead of looking it up")
	flags.StringArrayVar(&q.inputs, "input", nil, "input: key=value (repeatable), @file.json, @- or a JSON object")
	flags.StringVar(&q.agent, "agent", "", "agent that makes the call")
	flags.StringArrayVar(&q.groups, "group", nil, "group of the principal (repeatable)")
	flags.StringArrayVar(&q.permissions, "permission", nil, "permission of the principal (repeatable)")
	flags.StringVar(&q.now, "now", "", "time of the call (RFC 3339; default now)")
	return cmd
}

func (a *app) explainCall(ctx context.Context, rules *policy.Rules, q policyQuestion) error {
	now := time.Now()
	if q.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, q.now); err != nil {
			return usagef("--now is %q; write e.g. 2026-12-24T20:00:00Z", q.now)
		}
	}
	input, pairs, err := a.parseInputs(q.inputs)
	if err != nil {
		return err
	}
	tool, err := a.toolOf(ctx, q)
	if err != nil {
		return err
	}
	if input, err = inputOf(tool, input, pairs); err != nil {
		return err
	}
	call := jig.Call{Tenant: a.flags.tenant, ID: "1.1", Pass: 1, Ordinal: 1, Tool: tool.Name, Version: tool.Version, Input: input}
	session := jig.Session{Tenant: a.flags.tenant, Agent: jig.Agent{Name: q.agent, Registered: !strings.HasPrefix(q.agent, jig.DraftPrefix)}, Principal: a.principal(), Pass: 1}
	session.Principal.Groups, session.Principal.Permissions = q.groups, q.permissions
	return a.printExplanation(tool, policy.Tenant{Policies: policy.NewSet(rules)}.Explain(ctx, tool, call, session, now))
}

func (a *app) printExplanation(tool jig.Tool, x policy.Explanation) error {
	report := x.Report(tool.Name)
	if a.json() {
		return a.printJSON(report)
	}
	head := fmt.Sprintf("%s: %s", tool.Name, a.verdictWord(x.Verdict))
	if report.Expires != "" {
		head += ", for " + report.Expires
	}
	a.line("%s", head)
	for _, reason := range append(x.Reasons, conditions(x.Verdict, x.Terms)...) {
		a.line("  %s", oneLine(reason, 0))
	}
	if x.Verdict != x.Base.Verdict {
		a.say("without the policy: %s", x.Base.Verdict)
	}
	a.say("%s", a.err.dim("policy "+jig.ShortVersion(x.PolicyVersion)))
	return nil
}

// wanted lists, per requirement, how many approvals are needed and from whom. It is empty if any one person may approve.
func wanted(t jig.Terms) []string {
	list := make([]string, 0, len(t.Requirements))
	for _, r := range t.Requirements {
		list = append(list, approval.Quorum(r))
	}
	return list
}

// conditions returns the terms of a verdict's approval for people. It returns nothing if the call does not ask or any one person may approve.
func conditions(v jig.Verdict, t jig.Terms) []string {
	if v != jig.VerdictAsk || t.Plain() {
		return nil
	}
	return approval.Conditions(jig.Pending{Terms: &t})
}

func (a *app) verdictWord(v jig.Verdict) string {
	switch v {
	case jig.VerdictRun:
		return a.out.green(string(v))
	case jig.VerdictAsk:
		return a.out.yellow(string(v))
	case jig.VerdictDeny, jig.VerdictRefuse:
		return a.out.red(string(v))
	}
	return string(v)
}

func (a *app) policyListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the policies in force, and any that the worker cannot read",
		Long: `List the tenant's registered policies as the running worker sees them. If the worker cannot read one of them, because it was written
for a newer version of jig, the tenant's calls are held back: update the workers, or register the policy in a form that they can
read. JSON output: {"policies": [{"name", "version", "rules", "error"?}]}.`,
		Example: `  jig policy list
  jig policy list --output json | jq '.policies[] | select(.error)'`,
		Args: cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, e engine, _ []string) error {
			list, err := e.Policies(ctx, a.flags.tenant)
			if err != nil {
				return err
			}
			return a.output(api.PolicyList{Policies: append([]jig.PolicyState{}, list...)}, func() error { return a.printPolicies(list) })
		}),
	}
}

func (a *app) printPolicies(list []jig.PolicyState) error {
	rows, unreadable := make([][]string, len(list)), 0
	for i, p := range list {
		state := plural(p.Rules, "rule", "rules")
		if p.Error != "" {
			unreadable++
			state = a.out.red("cannot be read: " + oneLine(p.Error, 200))
		}
		rows[i] = []string{oneLine(p.Name, 0), oneLine(jig.ShortVersion(p.Version), 0), state}
	}
	a.table(rows)
	switch {
	case unreadable > 0:
		a.say("%s the calls of tenant %s are held back until %s can be read", a.err.yellow("warning:"), a.flags.tenant, plural(unreadable, "policy", "policies"))
	case len(list) == 0:
		a.say("tenant %s has no policies; the contracts of the tools decide", a.flags.tenant)
	}
	return nil
}
