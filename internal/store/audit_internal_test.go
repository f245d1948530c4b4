package store

import (
	"context"

	"github.com/jig-run/jig/internal/audit"
)

// Audit appends rows in a transaction that does nothing else.
func (db *DB) Audit(ctx context.Context, tenant string, entries ...audit.Entry) error {
	return db.transact(ctx, tenant, func(t *tx) error {
		for _, e := range entries {
			if err := t.audit(e); err != nil {
				return err
			}
		}
		return t.commit(ctx)
	})
}

// AuditAndFail appends a row in a transaction that is rolled back.
func (db *DB) AuditAndFail(ctx context.Context, tenant string, e audit.Entry, why error) error {
	return db.transact(ctx, tenant, func(t *tx) error {
		if err := t.audit(e); err != nil {
			return err
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		return why
	})
}
