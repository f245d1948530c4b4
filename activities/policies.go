package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/argument"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// ListPolicies returns a page of a tenant's policies as this worker sees them.
func (a *Activities) ListPolicies(ctx context.Context, in protocol.PoliciesRequest) (protocol.PoliciesPage, error) {
	states, err := a.Policy.Policies(ctx, in.Tenant)
	states = slices.DeleteFunc(slices.Clone(states), func(s jig.PolicyState) bool { return s.Name <= in.After })
	fits := fitting(states, sizeOf)
	return protocol.PoliciesPage{Policies: append([]jig.PolicyState{}, fits...), More: len(fits) < len(states)}, temporalError(err)
}

// heldBack returns the policies that hold back the calls of a tenant because this worker cannot read them. The server has no policies: it finds none.
func (a *Activities) heldBack(ctx context.Context, tenant string) ([]string, error) {
	if a.Policy == nil {
		return nil, nil
	}
	states, err := a.Policy.Policies(ctx, tenant)
	var held []string
	for _, s := range states {
		if s.Error != "" {
			held = append(held, s.Unreadable())
		}
	}
	return held, err
}

// Verdict rules on a call that nobody makes. It changes nothing. The input is not validated, but its paths and URLs must be acceptable.
func (a *Activities) Verdict(ctx context.Context, in protocol.VerdictRequest) (_ protocol.Verdict, err error) {
	defer asTemporal(&err)
	tool, known, err := a.tool(ctx, in.Tenant, in.Tool, "")
	if err != nil {
		return protocol.Verdict{}, err
	}
	if !known {
		return protocol.Verdict{}, jig.Errorf(jig.CodeToolNotFound, "there is no tool %s", in.Tool).WithField("tool").WithHint("`jig catalog` lists the tools")
	}
	call := jig.Call{Tenant: in.Tenant, ID: jig.CallID(1, 1), Pass: 1, Ordinal: 1, Tool: tool.Name, Version: tool.Version, Input: in.Input}
	if len(call.Input) == 0 {
		call.Input = json.RawMessage("{}")
	}
	if call.Input, err = argument.Canonical(tool.InputSchema, withDefaults(tool.InputSchema, call.Input)); err != nil {
		return protocol.Verdict{}, err
	}
	session := jig.Session{
		Tenant: in.Tenant, Pass: 1, Principal: jig.Principal{ID: in.By},
		Agent: jig.Agent{Name: cmp.Or(in.Agent, jig.CallAgent), Registered: in.Agent != "" && !strings.HasPrefix(in.Agent, jig.DraftPrefix)},
	}
	if err := a.acting(ctx, &session); err != nil {
		return protocol.Verdict{}, err
	}
	return a.Policy.Simulate(ctx, in.Document, tool, call, session, a.Now())
}

// PolicyCases runs the cases of a policy document. It changes nothing.
func (a *Activities) PolicyCases(ctx context.Context, in protocol.CasesRequest) (protocol.CasesPage, error) {
	var failed error
	page, err := a.Policy.Cases(ctx, in.Document, func(name string) (jig.Tool, bool) {
		tool, known, err := a.tool(ctx, in.Tenant, name, "")
		failed = cmp.Or(failed, err)
		return tool, known && err == nil
	})
	return page, temporalError(cmp.Or(err, failed))
}

// These limits apply to a page: how many calls it covers, and how many rules a result names.
const (
	backtestCalls = 500
	backtestRules = 5
)

// Backtest evaluates a page of recorded calls against a policy document that is not in force.
func (a *Activities) Backtest(ctx context.Context, in protocol.BacktestRequest) (_ protocol.BacktestPage, err error) {
	defer asTemporal(&err)
	page := protocol.BacktestPage{Results: []protocol.BacktestResult{}, Tally: []protocol.BacktestCount{}}
	recorded, next, err := a.Store.RecordedCalls(ctx, in.Tenant, in.Since, in.Cursor, backtestCalls)
	if err != nil {
		return page, err
	}
	page.Next = next
	calls := make([]ledger.RecordedCall, 0, len(recorded))
	for _, c := range recorded {
		if c.Call.Verdict == jig.VerdictRefuse {
			page.Refused++
			continue
		}
		tool, known, err := a.currentTool(ctx, c.Call)
		if err != nil {
			return page, err
		}
		if known {
			c.Tool = &tool
		}
		if err := a.acting(ctx, &c.Session); err != nil {
			return page, err
		}
		calls = append(calls, c)
	}
	results, err := a.Policy.Backtest(ctx, in.Tenant, in.Document, calls) // even without calls, so that a bad document is reported
	if err != nil {
		return page, err
	}
	tally(&page, results, in.All)
	return page, nil
}

// currentTool returns the contract that would apply to a call today. For an execution spec it is the version that was called.
func (a *Activities) currentTool(ctx context.Context, c jig.Call) (jig.Tool, bool, error) {
	tool, known, err := a.tool(ctx, c.Tenant, c.Tool, c.Version)
	if code := jig.CodeOf(err); code == jig.CodeInvalidInput { // a spec in an older version of the language
		return jig.Tool{}, false, nil
	}
	return tool, known, err
}

// tally counts the results and keeps those that were asked for.
func tally(p *protocol.BacktestPage, results []protocol.BacktestResult, all bool) {
	at := map[protocol.BacktestCount]int{}
	for _, r := range results {
		r.Rules = r.Rules[:min(len(r.Rules), backtestRules)]
		r.Reason = jig.Cut(r.Reason, 200)
		if r.New == "" {
			p.Unknown++
			p.Results = append(p.Results, r)
			continue
		}
		key := protocol.BacktestCount{Recorded: r.Recorded, Now: r.Now, New: r.New}
		i, counted := at[key]
		if !counted {
			i = len(p.Tally)
			at[key] = i
			p.Tally = append(p.Tally, key)
		}
		p.Tally[i].Count++
		if all || r.Changed() {
			p.Results = append(p.Results, r)
		}
	}
}
