package client

import (
	"context"

	"github.com/jig-run/jig/internal/protocol"
)

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
	var page AuditPage
	err := c.ask(ctx, string(protocol.ReadAudit), 0, request, &page)
	return page, err
}
