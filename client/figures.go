package client

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/workflows"
)

// What a client gives of approvals and recorded calls.
type (
	// PendingPage is a page of what waits; Next is the cursor of the next one, empty at the end.
	PendingPage = workflows.ApprovalsPage
	// BacktestPage is what came of a page of recorded calls.
	BacktestPage = workflows.BacktestPage
	// BacktestCount is how many calls have the same three verdicts.
	BacktestCount = workflows.BacktestCount
)

// Pending lists what waits in a tenant and passes a filter, oldest first, after a cursor ("" to begin): limit at most, all
// when it is not positive.
func (c *Client) Pending(ctx context.Context, tenant string, filter jig.PendingFilter, cursor string, limit int) (PendingPage, error) {
	tenant, filter.SessionID = named(tenant, filter.SessionID)
	all := PendingPage{Approvals: []jig.Pending{}, Next: cursor}
	for {
		request := workflows.PendingRequest{Tenant: tenant, Filter: filter, Cursor: all.Next}
		if limit > 0 {
			request.Limit = limit - len(all.Approvals)
		}
		var page PendingPage
		if err := c.ask(ctx, workflows.ReadPending, 0, request, &page); err != nil {
			return PendingPage{}, err
		}
		all.Approvals = append(all.Approvals, page.Approvals...)
		all.Next = page.Next
		if page.Next == "" || page.Next == request.Cursor || limit > 0 && len(all.Approvals) >= limit {
			return all, nil
		}
	}
}

// Figures says how a tenant's approvals fare: what waits now, and what was decided since a time.
func (c *Client) Figures(ctx context.Context, tenant string, since time.Time) (jig.Figures, error) {
	var f jig.Figures
	err := c.ask(ctx, workflows.ReadFigures, 0, workflows.FiguresRequest{Tenant: tenant, Since: since}, &f)
	return f, err
}

// backtestWait is what a page of a backtest may take beyond other answers: it rules on 500 calls, twice.
const backtestWait = 30 * time.Second

// Backtest says what a policy document would have made of a tenant's calls since a time. fn is told of it page by page; its
// error ends the test. Nothing is changed. With all, calls that the document changes nothing for are among the results.
func (c *Client) Backtest(
	ctx context.Context, tenant string, document []byte, since time.Time, all bool, fn func(BacktestPage) error,
) error {
	request := workflows.BacktestRequest{Tenant: tenant, Document: string(document), Since: since, All: all}
	for {
		var page BacktestPage
		if err := c.ask(ctx, workflows.ReadBacktest, backtestWait, request, &page); err != nil {
			return err
		}
		if err := fn(page); err != nil {
			return err
		}
		if page.Next == "" || page.Next == request.Cursor {
			return nil
		}
		request.Cursor = page.Next
	}
}
