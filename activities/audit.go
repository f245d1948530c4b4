package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// Audits reads the audit chain of a tenant.
type Audits interface {
	// AuditHead returns the number and the hash (in hex) of the last row of a tenant's chain. For an empty chain it returns 0 and the
	// hash that precedes the first row.
	AuditHead(ctx context.Context, tenant string) (n int64, hash string, err error)
	// AuditRows returns at most limit rows of a tenant's chain after row n, in order.
	AuditRows(ctx context.Context, tenant string, after int64, limit int) ([]audit.Row, error)
	// FindAudit returns rows like AuditRows, limited to a session (unless it is "") and to those written at or after since and
	// before until. A zero time means no limit.
	FindAudit(ctx context.Context, tenant, session string, since, until time.Time, after int64, limit int) ([]audit.Row, error)
}

// auditPageRows is how many rows are read for one page. Most are smaller than a kilobyte.
const auditPageRows = 100

// ReadAudit returns a page of a tenant's audit rows.
func (a *Activities) ReadAudit(ctx context.Context, in protocol.AuditRequest) (protocol.AuditPage, error) {
	page, err := a.readAudit(ctx, in)
	return page, temporalError(err)
}

func (a *Activities) readAudit(ctx context.Context, in protocol.AuditRequest) (page protocol.AuditPage, err error) {
	if page.HeadN, page.HeadHash, err = a.store.AuditHead(ctx, in.Tenant); err != nil {
		return page, err
	}
	var rows []audit.Row
	if in.SessionID == "" && in.Since.IsZero() && in.Until.IsZero() {
		rows, err = a.store.AuditRows(ctx, in.Tenant, in.After, auditPageRows)
	} else {
		rows, err = a.store.FindAudit(ctx, in.Tenant, in.SessionID, in.Since, in.Until, in.After, auditPageRows)
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
