package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/argument"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

// Test runs the document's cases, in their order. tools returns the contract of a tool by name, for cases that only name the tool; it may
// be nil if no contracts are known.
func Test(ctx context.Context, p *Rules, tools func(name string) (jig.Tool, bool)) []protocol.CaseResult {
	if p == nil {
		return nil
	}
	results := make([]protocol.CaseResult, 0, len(p.cases))
	for _, c := range p.cases {
		results = append(results, p.test(ctx, c, tools))
	}
	return results
}

// CheckDocument returns an error if a document of kind policy does not compile or fails one of its own cases. tools are the tenant's tools.
func CheckDocument(ctx context.Context, doc spec.Document, tools []jig.Tool) error {
	if doc.Policy() == nil {
		return nil
	}
	rules, err := Compile(*doc.Policy(), doc.Version)
	if err != nil {
		return err
	}
	find := func(name string) (jig.Tool, bool) {
		i := slices.IndexFunc(tools, func(t jig.Tool) bool { return t.Name == name })
		if i < 0 {
			return jig.Tool{}, false
		}
		return tools[i], true
	}
	for _, result := range Test(ctx, rules, find) {
		if !result.OK {
			return jig.Errorf(jig.CodeInvalidInput, "policy %s: its case %q does not hold", doc.Name, result.Name).
				WithHint(jig.Templatef("`jig policy test %s` shows the expected verdict and the actual one", doc.Path))
		}
	}
	return nil
}

func (r *Rules) test(ctx context.Context, c spec.PolicyCase, tools func(name string) (jig.Tool, bool)) protocol.CaseResult {
	result := protocol.CaseResult{Name: c.Name, Expect: c.Expect, Rules: []string{}}
	tool := c.Tool
	if c.Lookup {
		known := false
		if tools != nil {
			tool, known = tools(c.Tool.Name)
		}
		if !known {
			result.Problem = fmt.Sprintf("the tool %s is not known; write its contract: {name: %s, permission: …}", c.Tool.Name, c.Tool.Name)
			return result
		}
	}
	if tools != nil && len(tool.InputSchema) == 0 {
		if known, ok := tools(c.Tool.Name); ok {
			tool.InputSchema = known.InputSchema
		}
	}
	var err error
	if c.Input, err = argument.Canonical(tool.InputSchema, c.Input); err != nil {
		result.Problem = "the input would be refused: " + jig.AsError(err).Error()
		return result
	}
	x := r.Explain(ctx, tool, callOf(c), sessionOf(c), c.Now)
	result.Got, result.Reasons, result.Terms, result.Unless = x.Verdict, x.Reasons, x.Terms, x.unless(tool, c)
	for _, s := range x.Rules {
		result.Rules = append(result.Rules, s.Rule)
		if s.Failed {
			result.Failed = append(result.Failed, s.Rule)
		}
	}
	var wrong []string
	if result.Got != c.Expect {
		wrong = append(wrong, fmt.Sprintf("the verdict is %s, not %s", result.Got, c.Expect))
	}
	for _, name := range c.Rules {
		if !slices.Contains(result.Rules, name) {
			wrong = append(wrong, "the rule "+name+" did not apply")
		}
	}
	if c.Quorum > 0 && result.Got == jig.VerdictAsk && quorum(x.Terms) != c.Quorum {
		wrong = append(wrong, fmt.Sprintf("the largest quorum is %d, not %d", quorum(x.Terms), c.Quorum))
	}
	if result.Got != c.Expect && c.Assumed {
		wrong = append(wrong, fmt.Sprintf(
			"the case gives %s no permission, so it counts as a tool that writes: add permission, or write tool: %s to take the contract from the catalog",
			c.Tool.Name, c.Tool.Name))
	}
	result.OK, result.Problem = len(wrong) == 0, strings.Join(wrong, "; ")
	return result
}

// unless returns when a call like that of a case would ask although the case says that it runs.
func (x Explanation) unless(tool jig.Tool, c spec.PolicyCase) string {
	guarded := (tool.Permission.Writes() || tool.Sends()) && !slices.ContainsFunc(x.Rules, func(s AppliedRule) bool { return s.rule.Untraced && s.counts() })
	if x.Verdict != jig.VerdictRun || c.Session.ReadUntrusted || !guarded {
		return ""
	}
	return "the session has read untrusted data"
}

// quorum returns the largest quorum among the requirements, at least 1.
func quorum(t jig.Terms) int {
	most := 1
	for _, r := range t.Requirements {
		most = max(most, r.Quorum)
	}
	return most
}

func callOf(c spec.PolicyCase) jig.Call {
	pass := max(c.Session.Pass, 1)
	var flow *jig.DataFlow
	if c.Session.ReadPrivate || c.Session.ReadUntrusted {
		flow = &jig.DataFlow{
			ReadPrivate: c.Session.ReadPrivate, ReadUntrusted: c.Session.ReadUntrusted,
			UntrustedArguments: c.UntrustedArguments, UnknownDestinations: c.UnknownDestinations,
			ComputedArguments: c.ComputedArguments,
		}
	}
	return jig.Call{
		Tenant: c.Tenant, SessionID: c.Session.ID, ID: fmt.Sprintf("%d.1", pass), Pass: pass, Ordinal: 1, Tool: c.Tool.Name, Input: c.Input, Flow: flow,
	}
}

func sessionOf(c spec.PolicyCase) jig.Session {
	return jig.Session{
		Tenant: c.Tenant, ID: c.Session.ID, Agent: c.Agent, Principal: c.Principal, Input: c.Session.Input,
		Task: c.Session.Task, Pass: max(c.Session.Pass, 1), Writes: c.Session.Writes,
		RootAgent: c.Session.RootAgent, ParentAgent: c.Session.ParentAgent, Depth: c.Session.Depth, Source: c.Session.Source,
	}
}

// Backtest decides recorded calls, as of the time when they were made, both with the current policies and with others in their place. It
// returns one result for each call, in order. A call whose tool is unknown (nil) gets no verdict. Backtest returns an error only if ctx ends.
func Backtest(ctx context.Context, inForce, instead Tenant, calls []ledger.RecordedCall) ([]protocol.BacktestResult, error) {
	results := make([]protocol.BacktestResult, len(calls))
	for i, c := range calls {
		if err := ctx.Err(); err != nil {
			return nil, err //nolint:wrapcheck // the error of the caller's context
		}
		r := protocol.BacktestResult{
			SessionID: c.Call.SessionID, Call: c.Call.ID, Tool: c.Call.Tool, At: c.Call.CreatedAt,
			Recorded: c.Call.Verdict, Status: c.Call.Status,
		}
		if c.Tool != nil {
			x := instead.Explain(ctx, *c.Tool, c.Call, c.Session, c.Call.CreatedAt)
			r.Now = inForce.Explain(ctx, *c.Tool, c.Call, c.Session, c.Call.CreatedAt).Verdict
			r.New = x.Verdict
			for _, applied := range x.Rules {
				r.Rules = append(r.Rules, applied.Policy+"/"+applied.Rule)
			}
			if len(x.Rules) > 0 {
				r.Reason = x.Rules[0].Reason
			}
		}
		results[i] = r
	}
	return results, nil
}

// With returns a copy of the set with r added. If the set has a document with the same name, r replaces it.
func (s Set) With(r *Rules) Set {
	list := []*Rules{r}
	for _, other := range s {
		if other.Name() != r.Name() {
			list = append(list, other)
		}
	}
	return NewSet(list...)
}
