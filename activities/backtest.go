package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// These limits apply to a page: how many calls it covers, and how many rules a result names.
const (
	backtestCalls = 500
	backtestRules = 5
)

// Backtest evaluates a page of recorded calls against a policy document that is not in force.
func (a *Activities) Backtest(ctx context.Context, in protocol.BacktestRequest) (protocol.BacktestPage, error) {
	page, err := a.backtest(ctx, in)
	return page, temporalError(err)
}

func (a *Activities) backtest(ctx context.Context, in protocol.BacktestRequest) (protocol.BacktestPage, error) {
	page := protocol.BacktestPage{Results: []protocol.BacktestResult{}, Tally: []protocol.BacktestCount{}}
	tester, ok := a.Policy.(backtester)
	if !ok {
		return page, jig.Errorf(jig.CodeUnavailable, "this worker's policy does not support backtests")
	}
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
		tool, known, err := a.toolNow(ctx, c.Call)
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
	results, err := tester.Backtest(ctx, in.Tenant, in.Document, calls) // even without calls, so that a bad document is reported
	if err != nil {
		return page, err
	}
	take(&page, results, in.All)
	return page, nil
}

// toolNow returns the contract that would apply to a call today. For an execution spec it is the version that was called.
func (a *Activities) toolNow(ctx context.Context, c jig.Call) (jig.Tool, bool, error) {
	tool, known, err := a.tool(ctx, c.Tenant, c.Tool, c.Version)
	if code := jig.CodeOf(err); code == jig.CodeInvalidInput { // a spec in an older version of the language
		return jig.Tool{}, false, nil
	}
	return tool, known, err
}

// take counts the results and keeps those that were asked for.
func take(p *protocol.BacktestPage, results []protocol.BacktestResult, all bool) {
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
