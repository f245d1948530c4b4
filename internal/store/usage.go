package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/protocol"
)

// maxUsage is the maximum number of rows of a usage report.
const maxUsage = 500

// usageRow is a row of the query UsageGrouped.
type usageRow struct {
	protocol.UsageRow

	Cost budget.Money
}

// Usage returns what a tenant's sessions used, grouped and filtered as requested; at most 500 rows.
func (db *DB) Usage(ctx context.Context, r protocol.UsageRequest) ([]protocol.UsageRow, error) {
	var rows []usageRow
	until := r.Until
	if until.IsZero() {
		until = farFuture
	}
	by := slices.Clone(r.By)
	if by == nil {
		by = []string{}
	}
	err := db.once(ctx, r.Tenant, func(t *tx) {
		list(t.queue("UsageGrouped", r.Tenant, r.Since, until, by, text(r.Agent), text(r.Model), text(r.Tool), text(r.SessionID), maxUsage), &rows)
	})
	usage := make([]protocol.UsageRow, len(rows))
	for i, u := range rows {
		usage[i] = u.UsageRow
		usage[i].Cost = json.Number(u.Cost.String())
	}
	return usage, err
}

// maxCounters is the maximum number of counters of budgets that are listed.
const maxCounters = 500

// BudgetCounters returns counters of the given periods: those with the given scope, or all if it is empty; at most 500.
func (db *DB) BudgetCounters(ctx context.Context, tenant string, periods []string, scope string) ([]budget.Used, error) {
	var rows []counterRow
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("BudgetCounters", tenant, periods, text(scope), maxCounters), &rows)
	})
	used := make([]budget.Used, len(rows))
	for i, r := range rows {
		used[i] = r.used()
	}
	return used, err
}

// SessionRoot returns the id of the first session of the tree that a session belongs to.
func (db *DB) SessionRoot(ctx context.Context, tenant, session string) (string, error) {
	var root *string
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("SessionRoot", tenant, session), &root) })
	if err == nil && root == nil {
		return "", noSession(session)
	}
	if err != nil {
		return "", err
	}
	return *root, nil
}
