package store

import (
	"context"
	"time"

	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/protocol"
)

// OpenSessions counts the sessions that have not ended, over all tenants.
func (db *DB) OpenSessions(ctx context.Context) ([]protocol.SessionCount, error) {
	var counts []protocol.SessionCount
	err := db.once(ctx, "", func(t *tx) { list(t.queue("SessionsOpenEverywhere"), &counts) })
	return counts, err
}

// PendingDeliveries counts the notices that webhooks have not received yet, over all tenants.
func (db *DB) PendingDeliveries(ctx context.Context) ([]protocol.DeliveryCount, error) {
	var counts []protocol.DeliveryCount
	err := db.once(ctx, "", func(t *tx) { list(t.queue("DeliveriesPendingEverywhere"), &counts) })
	return counts, err
}

// maxBudgetsUsed is the maximum number of counters that BudgetsUsed returns.
const maxBudgetsUsed = 10_000

// BudgetsUsed returns, by tenant, the counters of limits of tenants and agents: those of the given day and those without a window; at most
// 10,000 in total. It leaves out the counters of sessions and passes, of which there are too many.
func (db *DB) BudgetsUsed(ctx context.Context, day string) (map[string][]budget.Used, error) {
	var rows []usedRow
	err := db.once(ctx, "", func(t *tx) { list(t.queue("BudgetsUsedEverywhere", day, maxBudgetsUsed), &rows) })
	used := map[string][]budget.Used{}
	for _, r := range rows {
		used[r.Tenant] = append(used[r.Tenant], r.used())
	}
	return used, err
}

// usedRow is a row of the query BudgetsUsedEverywhere.
type usedRow struct {
	Tenant string
	counterRow
}

// PoolStats describes the connections of a DB to its database.
type PoolStats struct {
	// InUse, Idle and Max count connections.
	InUse, Idle, Max int
	// Acquired counts the connections that were handed out, Waited those for which a caller had to wait, since the DB was opened. WaitTime is
	// how long callers have waited in total.
	Acquired, Waited int64
	WaitTime         time.Duration
}

// PoolStats returns the present state of the connections.
func (db *DB) PoolStats() PoolStats {
	s := db.pool.Stat()
	return PoolStats{
		InUse: int(s.AcquiredConns()), Idle: int(s.IdleConns()), Max: int(s.MaxConns()),
		Acquired: s.AcquireCount(), Waited: s.EmptyAcquireCount(), WaitTime: s.EmptyAcquireWaitTime(),
	}
}
