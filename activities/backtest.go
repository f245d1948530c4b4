package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// Backtester evaluates recorded calls against a policy that is not in force. A Policy may implement it.
type Backtester interface {
	// Backtest rules on recorded calls with the tenant's current policies, and again with a document (its text) that replaces the
	// policy of the same name or is added to them. It returns one result for each call, in the same order, and changes nothing. A
	// document that cannot be read is INVALID_INPUT.
	Backtest(ctx context.Context, tenant, document string, calls []jig.RecordedCall) ([]jig.BacktestResult, error)
}

// BacktestRequest asks how a policy document would have decided the calls since a given time. It returns one page at a time.
type BacktestRequest struct {
	Tenant string `json:"tenant"`
	// Document is the text of a policy document.
	Document string    `json:"document"`
	Since    time.Time `json:"since"`
	Cursor   string    `json:"cursor,omitempty"`
	// All asks for the results of all calls, including those whose verdict the document does not change.
	All bool `json:"all,omitempty"`
}

// BacktestPage is the outcome for a page of recorded calls.
type BacktestPage struct {
	// Results lists the calls whose verdict the document changes (or all calls, if requested) and the calls whose tool is unknown.
	Results []jig.BacktestResult `json:"results"`
	// Tally counts all calls that were ruled on.
	Tally []BacktestCount `json:"tally"`
	// Refused counts the calls that never reached policy: unknown tools, bad input, duplicates. Unknown counts the calls whose tool is no
	// longer known. Tally includes neither.
	Refused int `json:"refused,omitempty"`
	Unknown int `json:"unknown,omitempty"`
	// Next is the cursor of the next page. It is empty at the end.
	Next string `json:"next,omitempty"`
}

// BacktestCount is the number of calls with the same three verdicts.
type BacktestCount struct {
	Recorded jig.Verdict `json:"recorded"`
	Now      jig.Verdict `json:"now"`
	New      jig.Verdict `json:"new"`
	Count    int         `json:"count"`
}

// Limits of a page: how many calls are read, and how many rules a result names.
const (
	backtestCalls = 500
	backtestRules = 5
)

// Backtest rules on a page of recorded calls with a policy document that is not in force.
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
func take(p *BacktestPage, results []jig.BacktestResult, all bool) {
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
