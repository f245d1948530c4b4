package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// TakeSettled takes up to limit calls of all tenants that were settled late and whose workflow nobody has tried to tell for at least
// age, by the database's clock. Only the tenant, session, id and frame of each call are set. A call is not handed out again before
// age has passed; [DB.ToldSettled] removes it for good.
func (db *DB) TakeSettled(ctx context.Context, age time.Duration, limit int) ([]jig.Call, error) {
	var settled []jig.Call
	err := db.once(ctx, "", func(t *tx) { list(t.queue("SettledTake", age, limit), &settled) })
	return settled, err
}

// TakeRechecks takes up to limit tenants whose open approvals are to be checked again, because the people who may decide them have changed, each
// with the time at which it is handed out again. That is after the duration lease, unless [DB.Rechecked] comes first.
func (db *DB) TakeRechecks(ctx context.Context, lease time.Duration, limit int) (map[string]time.Time, error) {
	var rows []struct {
		TenantID string
		Due      time.Time
	}
	err := db.once(ctx, "", func(t *tx) { list(t.queue("RechecksTake", lease, limit), &rows) })
	taken := map[string]time.Time{}
	for _, r := range rows {
		taken[r.TenantID] = r.Due
	}
	return taken, err
}

// Rechecked records that the open approvals of a tenant were checked that was handed out until due. It does nothing if people have changed since.
func (db *DB) Rechecked(ctx context.Context, tenant string, due time.Time) error {
	return db.once(ctx, tenant, func(t *tx) { t.queue("Rechecked", due) })
}

// ToldSettled records that a call's workflow knows that the call was settled late, or that the workflow has ended.
func (db *DB) ToldSettled(ctx context.Context, tenant, id, callID string) error {
	return db.once(ctx, tenant, func(t *tx) { t.queue("SettledTold", id, callID) })
}
