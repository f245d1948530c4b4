package client

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/workflows"
)

// What is asked of a tenant's audit chain, and a page of what comes back.
type (
	// AuditRequest asks for the rows of a tenant's chain after a number, oldest first. With SessionID, Since or Until they are no
	// chain.
	AuditRequest = workflows.AuditRequest
	// AuditPage is a page of rows, at most 128 KiB of them, with the end of the tenant's chain.
	AuditPage = workflows.AuditPage
)

// Audit calls fn with page after page of a tenant's audit rows, at least once, until all were given or fn returns an error. Rows
// that are appended after the first page was asked for are left out, so that an export ends at the first page's head.
func (c *Client) Audit(ctx context.Context, request AuditRequest, fn func(AuditPage) error) error {
	request.Tenant, request.SessionID = named(request.Tenant, request.SessionID)
	head := int64(-1)
	for {
		var page AuditPage
		if err := c.ask(ctx, workflows.ReadAudit, 0, request, &page); err != nil {
			return err
		}
		if head < 0 {
			head = page.HeadN
		}
		later := slices.IndexFunc(page.Rows, func(row jig.AuditRow) bool { return row.N > head })
		if later >= 0 {
			page.Rows, page.More = page.Rows[:later], false
		}
		page.More = page.More && len(page.Rows) > 0
		if err := fn(page); err != nil {
			return err
		}
		if !page.More {
			return nil
		}
		request.After = page.Rows[len(page.Rows)-1].N
	}
}
