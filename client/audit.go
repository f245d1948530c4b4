package client

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// readAudit is the activity type under which workers answer an AuditRequest.
const readAudit = "jig.audit"

// AuditRequest asks for the rows of a tenant's audit chain after a number, oldest first. SessionID, Since and Until narrow it:
// then the rows are no chain.
type AuditRequest struct {
	Tenant    string    `json:"tenant"`
	After     int64     `json:"after,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Until     time.Time `json:"until,omitzero"`
}

// AuditPage is a page of rows, at most 128 KiB of them.
type AuditPage struct {
	Rows []jig.AuditRow `json:"rows"`
	// More says that rows follow these.
	More bool `json:"more,omitempty"`
	// HeadN and HeadHash are the end of the tenant's chain, read before the rows.
	HeadN    int64  `json:"head_n"`
	HeadHash string `json:"head_hash"`
}

// Audit calls fn with page after page of a tenant's audit rows, at least once, until all were given or fn returns an error. Rows
// that are appended after the first page was asked for are left out, so that an export ends at the first page's head.
func (c *Client) Audit(ctx context.Context, request AuditRequest, fn func(AuditPage) error) error {
	head := int64(-1)
	for {
		var page AuditPage
		if err := c.ask(ctx, readAudit, 0, request, &page); err != nil {
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
