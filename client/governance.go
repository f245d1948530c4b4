package client

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// GrantsRequest names a grant to revoke and who revokes it; see [Client.RevokeGrant].
type GrantsRequest = protocol.GrantsRequest

// Grants lists a tenant's grants, latest first. Without all, it lists only grants that can be used, not those that are used up, expired or
// revoked.
func (c *Client) Grants(ctx context.Context, tenant string, all bool) ([]jig.Grant, error) {
	request := protocol.GrantsRequest{Tenant: tenant, All: all}
	return readAll(ctx, c, protocol.ReadGrants, request, func(r *protocol.GrantsRequest, page protocol.GrantsPage) ([]jig.Grant, bool) {
		return page.Grants, further(&r.Cursor, page.Next)
	})
}

// GrantFits returns the waiting calls that a grant covers and that a principal may decide, oldest first, at most as many as the grant has uses
// left. It approves none of them: decisions that name the grant do. An unknown grant is NOT_FOUND.
func (c *Client) GrantFits(ctx context.Context, tenant, grant, principal string) ([]jig.Pending, error) {
	list := []jig.Pending{}
	request := protocol.FitsRequest{Tenant: tenant, Grant: grant, For: principal}
	for {
		page, err := ask(ctx, c, protocol.ReadFits, request)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Approvals...)
		if left := page.Grant.MaxUses - page.Grant.Used; len(list) >= left {
			return list[:max(left, 0)], nil
		}
		if page.Next == "" || page.Next == request.Cursor {
			return list, nil
		}
		request.Cursor = page.Next
	}
}

// RevokeGrant revokes the grant that request.Revoke names and returns it. If the grant was already revoked, nothing changes and the
// returned grant names who revoked it first. An unknown grant is NOT_FOUND.
func (c *Client) RevokeGrant(ctx context.Context, request protocol.GrantsRequest) (jig.Grant, error) {
	if request.Revoke == "" {
		return jig.Grant{}, jig.Errorf(jig.CodeMissingParam, "no grant given").WithField("revoke").WithHint("give the id of a grant")
	}
	page, err := ask(ctx, c, protocol.ReadGrants, request)
	if err != nil {
		return jig.Grant{}, err
	}
	if len(page.Grants) != 1 || page.Grants[0].ID != request.Revoke {
		return jig.Grant{}, jig.Errorf(jig.CodeInternal, "the worker did not answer with grant %s", request.Revoke).
			WithHint("list all grants to see its current state")
	}
	return page.Grants[0], nil
}

type (
	// PauseRequest names the target to pause or to resume, and the principal who asks for it.
	PauseRequest = protocol.PauseRequest
	// PauseResult lists a tenant's current pauses.
	PauseResult = protocol.PauseResult
)

// Pause holds back the calls of a session, a tool or a tenant that have not started. If the target is already paused, nothing changes. The
// result says whether this request changed anything; the answer to a retried request says that it did not.
func (c *Client) Pause(ctx context.Context, request protocol.PauseRequest) (protocol.PauseResult, error) {
	return ask(ctx, c, protocol.WritePause, request)
}

// Resume ends the pause that [Client.Pause] began with the same scope and target. Other pauses that apply to the same calls stay in force.
func (c *Client) Resume(ctx context.Context, request protocol.PauseRequest) (protocol.PauseResult, error) {
	return ask(ctx, c, protocol.WriteResume, request)
}

// Pauses lists a tenant's pauses, oldest first.
func (c *Client) Pauses(ctx context.Context, tenant string) (protocol.PauseResult, error) {
	list, err := ask(ctx, c, protocol.ReadPauses, protocol.PausesRequest{Tenant: tenant})
	return protocol.PauseResult{Pauses: list.Pauses}, err
}

// Installation returns the id of the installation of jig, which tokens about pauses, grants and keys bind.
func (c *Client) Installation(ctx context.Context, tenant string) (id string, err error) {
	return ask(ctx, c, protocol.ReadInstallation, protocol.InstallationRequest{Tenant: tenant})
}

// Simulate rules on a call that nobody makes, by the policies in force or by a document that takes the place of one of them.
func (c *Client) Simulate(ctx context.Context, request protocol.VerdictRequest) (protocol.Verdict, error) {
	return ask(ctx, c, protocol.ReadVerdict, request)
}

// PolicyCases runs the cases of a policy document.
func (c *Client) PolicyCases(ctx context.Context, tenant, document string) (protocol.CasesPage, error) {
	return ask(ctx, c, protocol.ReadCases, protocol.CasesRequest{Tenant: tenant, Document: document})
}

// Policies lists a tenant's policies by name, as the worker that answers has loaded them. If the worker cannot read a policy, its state
// says why.
func (c *Client) Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	request := protocol.PoliciesRequest{Tenant: tenant}
	return readAll(ctx, c, protocol.ReadPolicies, request, func(r *protocol.PoliciesRequest, page protocol.PoliciesPage) ([]jig.PolicyState, bool) {
		if n := len(page.Policies); n > 0 {
			r.After = page.Policies[n-1].Name
		}
		return page.Policies, page.More && len(page.Policies) > 0
	})
}

// A request for a tenant's audit chain, and a page of the reply.
type (
	// AuditRequest asks for the rows of a tenant's chain after a row number, oldest first. With SessionID, Since or Until the rows are a
	// selection and no longer form a chain.
	AuditRequest = protocol.AuditRequest
	// AuditPage is a page of at most 128 KiB of rows, with the head of the tenant's chain.
	AuditPage = protocol.AuditPage
)

// Audit calls fn with the pages of a tenant's audit rows, at least once, until there are no more rows or fn returns an error. It leaves out
// rows that were appended after the first page was read, so that an export ends at the head that the first page names.
func (c *Client) Audit(ctx context.Context, request AuditRequest, fn func(AuditPage) error) error {
	return request.Pages(func(r AuditRequest) (AuditPage, error) { return c.AuditOnce(ctx, r) }, fn)
}

// AuditOnce returns one page of a tenant's audit rows.
func (c *Client) AuditOnce(ctx context.Context, request AuditRequest) (AuditPage, error) {
	request.Tenant, request.SessionID = named(request.Tenant, request.SessionID)
	return ask(ctx, c, protocol.ReadAudit, request)
}

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
		page, err := ask(ctx, c, protocol.ReadPending, request)
		if err != nil {
			return PendingPage{}, err
		}
		all.Approvals = append(all.Approvals, page.Approvals...)
		all.Next = page.Next
		if page.Next == "" || page.Next == request.Cursor || limit > 0 && len(all.Approvals) >= limit {
			return all, nil
		}
	}
}

// Decisions returns a page of the decisions about a tenant's calls that match the request, the latest first.
func (c *Client) Decisions(ctx context.Context, request protocol.DecisionsRequest) (PendingPage, error) {
	request.Tenant, request.Filter.SessionID = namedOrNone(request.Tenant, request.Filter.SessionID)
	return ask(ctx, c, protocol.ReadDecisions, request)
}

// Review returns, for waiting calls, why a principal may not decide them and what policy demands today. signs reports that the principal would
// sign the decisions. Calls that no longer wait are left out.
func (c *Client) Review(ctx context.Context, tenant, principal string, signs bool, calls []protocol.WaitingCall) ([]protocol.Review, error) {
	var all []protocol.Review
	for part := range slices.Chunk(calls, protocol.MaxReviewed) {
		request := protocol.ReviewRequest{Tenant: tenant, For: principal, Signs: signs, Calls: part}
		page, err := ask(ctx, c, protocol.ReadReview, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Reviews...)
	}
	return all, nil
}

// Statistics returns statistics of a tenant's approvals: those that wait now, and those decided since the given time.
func (c *Client) Statistics(ctx context.Context, tenant string, since time.Time) (protocol.ApprovalStats, error) {
	return ask(ctx, c, protocol.ReadStatistics, protocol.StatisticsRequest{Tenant: tenant, Since: since})
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

// Usage returns what a tenant's sessions used, grouped and filtered as requested, and how much of its budgets is used.
func (c *Client) Usage(ctx context.Context, request protocol.UsageRequest) (protocol.Usage, error) {
	request.Tenant, request.SessionID = named(request.Tenant, request.SessionID)
	return ask(ctx, c, protocol.ReadUsage, request)
}
