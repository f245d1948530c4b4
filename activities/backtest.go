package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// Backtester says what a policy that is not in force would have made of calls. A Policy may be one.
type Backtester interface {
	// Backtest rules over recorded calls with the tenant's policies in force, and with a document (its text) put in the place
	// of the one of its name, or beside them; one result for each call, in their order. Nothing is changed. A document that
	// cannot be read is INVALID_INPUT.
	Backtest(ctx context.Context, tenant, document string, calls []jig.RecordedCall) ([]jig.BacktestResult, error)
}

// BacktestRequest asks what a policy document would have made of the calls since a time, a page at a time.
type BacktestRequest struct {
	Tenant string `json:"tenant"`
	// Document is the text of a policy document.
	Document string    `json:"document"`
	Since    time.Time `json:"since"`
	Cursor   string    `json:"cursor,omitempty"`
	// All asks for the results of calls that the document changes nothing for, too.
	All bool `json:"all,omitempty"`
}

// BacktestPage is what came of a page of recorded calls.
type BacktestPage struct {
	// Results are of the calls whose verdict the document changes (of all, when asked for), and of those whose tool is not known.
	Results []jig.BacktestResult `json:"results"`
	// Tally counts all calls that were ruled on.
	Tally []BacktestCount `json:"tally"`
	// Refused counts the calls that never reached policy: of unknown tools, with a bad input, duplicates. They are left out,
	// as are those of tools that are not known any more, which Unknown counts.
	Refused int `json:"refused,omitempty"`
	Unknown int `json:"unknown,omitempty"`
	// Next is the cursor of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

// BacktestCount is how many calls have the same three verdicts.
type BacktestCount struct {
	Recorded jig.Verdict `json:"recorded"`
	Now      jig.Verdict `json:"now"`
	New      jig.Verdict `json:"new"`
	Count    int         `json:"count"`
}

// Bounds of a page: how many calls are read, and how many rules a result names.
const (
	backtestCalls = 500
	backtestRules = 5
)

// Backtest rules over a page of recorded calls with a policy document that is not in force.
func (a *Activities) Backtest(ctx context.Context, in BacktestRequest) (BacktestPage, error) {
	page, err := a.backtest(ctx, in)
	return page, temporalError(err)
}

func (a *Activities) backtest(ctx context.Context, in BacktestRequest) (BacktestPage, error) {
	page := BacktestPage{Results: []jig.BacktestResult{}, Tally: []BacktestCount{}}
	tester, ok := a.policy.(Backtester)
	if !ok {
		return page, jig.Errorf(jig.CodeUnavailable, "the worker's policy cannot be tried on recorded calls")
	}
	recorded, next, err := a.store.RecordedCalls(ctx, in.Tenant, in.Since, in.Cursor, backtestCalls)
	if err != nil {
		return page, err
	}
	page.Next = next
	calls := make([]jig.RecordedCall, 0, len(recorded))
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
	results, err := tester.Backtest(ctx, in.Tenant, in.Document, calls) // also of no calls: a bad document is told of
	if err != nil {
		return page, err
	}
	page.take(results, in.All)
	return page, nil
}

// toolNow is the contract under which a call would be ruled on today. That of an execution spec is the version it was called as.
func (a *Activities) toolNow(ctx context.Context, c jig.Call) (jig.Tool, bool, error) {
	tool, known, err := a.tool(ctx, c.Tenant, c.Tool, c.Version)
	if code := jig.CodeOf(err); code == jig.CodeInvalidInput { // a spec of an older version of the language
		return jig.Tool{}, false, nil
	}
	return tool, known, err
}

// take counts results and keeps those that are asked for.
func (p *BacktestPage) take(results []jig.BacktestResult, all bool) {
	at := map[BacktestCount]int{}
	for _, r := range results {
		r.Rules = r.Rules[:min(len(r.Rules), backtestRules)]
		r.Reason = jig.Cut(r.Reason, 200)
		if r.New == "" {
			p.Unknown++
			p.Results = append(p.Results, r)
			continue
		}
		key := BacktestCount{Recorded: r.Recorded, Now: r.Now, New: r.New}
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
