package activities

import (
	"context"

	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// auditPageRows is how many rows are read for one page. Most are smaller than a kilobyte.
const auditPageRows = 100

// ReadAudit returns a page of a tenant's audit rows.
func (a *Activities) ReadAudit(ctx context.Context, in protocol.AuditRequest) (protocol.AuditPage, error) {
	page, err := a.readAudit(ctx, in)
	return page, temporalError(err)
}

func (a *Activities) readAudit(ctx context.Context, in protocol.AuditRequest) (page protocol.AuditPage, err error) {
	if page.HeadN, page.HeadHash, err = a.Store.AuditHead(ctx, in.Tenant); err != nil {
		return page, err
	}
	var rows []audit.Row
	if in.SessionID == "" && in.Since.IsZero() && in.Until.IsZero() {
		rows, err = a.Store.AuditRows(ctx, in.Tenant, in.After, auditPageRows)
	} else {
		rows, err = a.Store.FindAudit(ctx, in.Tenant, in.SessionID, in.Since, in.Until, in.After, auditPageRows)
	}
	size := 0
	for _, row := range rows {
		if size += sizeOf(row); size > pageBytes && len(page.Rows) > 0 {
			break
		}
		page.Rows = append(page.Rows, row)
	}
	page.More = len(page.Rows) < len(rows) || len(rows) == auditPageRows
	return page, err
}
