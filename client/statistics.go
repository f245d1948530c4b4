package client

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Types of the answers about approvals and recorded calls.
type (
	// PendingPage is a page of waiting calls. Next is the cursor of the next page, empty at the end.
	PendingPage = protocol.ApprovalList
	// BacktestPage is the outcome of a page of recorded calls.
	BacktestPage = protocol.BacktestPage
	// BacktestCount is the number of calls that have the same three verdicts.
	BacktestCount = protocol.BacktestCount
)

// Pending lists a tenant's waiting calls that match the filter, oldest first, starting after the cursor ("" for the beginning). It returns
// at most limit calls, or all of them if limit is not positive.
func (c *Client) Pending(ctx context.Context, tenant string, filter jig.PendingFilter, cursor string, limit int) (PendingPage, error) {
	tenant, filter.SessionID = named(tenant, filter.SessionID)
	all := PendingPage{Approvals: []jig.Pending{}, Next: cursor}
	for {
		request := protocol.PendingRequest{Tenant: tenant, Filter: filter, Cursor: all.Next}
		if limit > 0 {
			request.Limit = limit - len(all.Approvals)
		}
		var page PendingPage
		if err := c.ask(ctx, string(protocol.ReadPending), 0, request, &page); err != nil {
			return PendingPage{}, err
		}
		all.Approvals = append(all.Approvals, page.Approvals...)
		all.Next = page.Next
		if page.Next == "" || page.Next == request.Cursor || limit > 0 && len(all.Approvals) >= limit {
			return all, nil
		}
	}
}

// Review returns, for waiting calls, why a principal may not decide them and what policy demands today. signs reports that the principal would
// sign the decisions. Calls that no longer wait are left out.
func (c *Client) Review(ctx context.Context, tenant, principal string, signs bool, calls []protocol.WaitingCall) ([]protocol.Review, error) {
	var all []protocol.Review
	for part := range slices.Chunk(calls, protocol.MaxReviewed) {
		var page protocol.ReviewList
		request := protocol.ReviewRequest{Tenant: tenant, For: principal, Signs: signs, Calls: part}
		if err := c.ask(ctx, string(protocol.ReadReview), 0, request, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Reviews...)
	}
	return all, nil
}

// Statistics returns statistics of a tenant's approvals: those that wait now, and those decided since the given time.
func (c *Client) Statistics(ctx context.Context, tenant string, since time.Time) (protocol.ApprovalStats, error) {
	var f protocol.ApprovalStats
	err := c.ask(ctx, string(protocol.ReadStatistics), 0, protocol.StatisticsRequest{Tenant: tenant, Since: since}, &f)
	return f, err
}

// backtestWait is the additional time that a page of a backtest may take: it evaluates up to 500 calls, twice each.
const backtestWait = 30 * time.Second

// Backtest shows what a policy document would have decided about a tenant's calls since the given time. It changes nothing. It calls fn for
// each page and stops at fn's first error. With all, the results include calls that the document would not have changed.
func (c *Client) Backtest(
	ctx context.Context, tenant string, document []byte, since time.Time, all bool, fn func(BacktestPage) error,
) error {
	request := protocol.BacktestRequest{Tenant: tenant, Document: string(document), Since: since, All: all}
	for {
		page, err := c.BacktestOnce(ctx, request)
		if err != nil {
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

// BacktestOnce returns one page of a backtest.
func (c *Client) BacktestOnce(ctx context.Context, request protocol.BacktestRequest) (BacktestPage, error) {
	var page BacktestPage
	err := c.ask(ctx, string(protocol.ReadBacktest), backtestWait, request, &page)
	return page, err
}
