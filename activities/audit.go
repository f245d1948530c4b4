package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// Audits reads the audit chain of a tenant.
type Audits interface {
	// AuditHead returns the number and the hash (in hex) of the last row of a tenant's chain. For an empty chain it returns 0 and the
	// hash that precedes the first row.
	AuditHead(ctx context.Context, tenant string) (n int64, hash string, err error)
	// AuditRows returns at most limit rows of a tenant's chain after row n, in order.
	AuditRows(ctx context.Context, tenant string, after int64, limit int) ([]jig.AuditRow, error)
	// FindAudit returns rows like AuditRows, limited to a session (unless it is "") and to those written at or after since and
	// before until. A zero time means no limit.
	FindAudit(ctx context.Context, tenant, session string, since, until time.Time, after int64, limit int) ([]jig.AuditRow, error)
}

// auditPageRows is how many rows are read for one page. Most are smaller than a kilobyte.
const auditPageRows = 100

// AuditRequest asks for the rows of a tenant's audit chain after a number, oldest first. SessionID, Since and Until filter the
// rows; filtered rows do not form a chain.
type AuditRequest struct {
	Tenant    string    `json:"tenant"`
	After     int64     `json:"after,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Until     time.Time `json:"until,omitzero"`
}

// AuditPage is a page of rows, at most 128 KiB.
type AuditPage struct {
	Rows []jig.AuditRow `json:"rows"`
	// More reports whether there are more rows.
	More bool `json:"more,omitempty"`
	// HeadN and HeadHash describe the end of the tenant's chain. They are read before the rows.
	HeadN    int64  `json:"head_n"`
	HeadHash string `json:"head_hash"`
}

// ReadAudit returns a page of a tenant's audit rows.
func (a *Activities) ReadAudit(ctx context.Context, in AuditRequest) (AuditPage, error) {
	page, err := a.readAudit(ctx, in)
	return page, temporalError(err)
}

func (a *Activities) readAudit(ctx context.Context, in AuditRequest) (page AuditPage, err error) {
	if page.HeadN, page.HeadHash, err = a.store.AuditHead(ctx, in.Tenant); err != nil {
		return page, err
	}
	var rows []jig.AuditRow
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
