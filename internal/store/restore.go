package store

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// restoredPage is the number of sessions that are read at once.
const restoredPage = 500

// Restored is an open call that may have run since the backup that the database was restored from.
type Restored struct {
	Tenant    string
	SessionID string
	Call      string
	Tool      string
	Status    jig.CallStatus
	// Asks is set if a person must say whether the call happened before it can run. It is false where repeating the call under the
	// same key has no further effect: for an idempotent tool, and for a composition whose steps are in the backup.
	Asks bool
}

// restoredRow is a row of the query SessionsAfter.
type restoredRow struct{ TenantID, SessionID string }

// MarkRestored marks the open calls of all tenants that may have run since the backup from which the database was restored, by the rules of
// [ledger.MarkRestored]. It returns those that were not marked before. If dry is set, nothing is changed.
//
// Each session is marked in a transaction of its own. After an error the returned calls are marked; calling MarkRestored again marks the
// rest.
func (db *DB) MarkRestored(ctx context.Context, dry bool) ([]Restored, error) {
	var marked []Restored
	for after := (restoredRow{}); ; {
		var page []restoredRow
		err := db.once(ctx, "", func(t *tx) {
			list(t.queue("SessionsAfter", after.TenantID, after.SessionID, restoredPage), &page)
		})
		if err != nil || len(page) == 0 {
			return marked, err
		}
		for _, s := range page {
			some, err := db.markRestored(ctx, s.TenantID, s.SessionID, dry)
			if err != nil {
				return marked, err
			}
			marked = append(marked, some...)
		}
		after = page[len(page)-1]
	}
}

// markRestored marks the calls of one session.
func (db *DB) markRestored(ctx context.Context, tenant, session string, dry bool) ([]Restored, error) {
	var marked []Restored
	err := db.transact(ctx, tenant, func(t *tx) error {
		var open []callRow
		list(t.queue("CallsLockOpen", tenant, session), &open)
		if err := t.flush(ctx); err != nil {
			return err
		}
		ids := make([]string, len(open))
		for i := range open {
			ids[i] = open[i].ID
		}
		var compositions []string
		column(t.queue("CompositionsNotBegun", tenant, session, ids), &compositions)
		if err := t.flush(ctx); err != nil {
			return err
		}
		marked, ids = nil, nil
		var asked []string
		l := &log{}
		for i := range open {
			row := &open[i]
			change := ledger.MarkRestored(row.ledger(tenant), slices.Contains(compositions, row.ID))
			if !change.Changes() {
				continue
			}
			ids = append(ids, row.ID)
			if change.Raises > 0 {
				asked = append(asked, row.ID)
			}
			marked = append(marked, Restored{
				Tenant: tenant, SessionID: session, Call: row.ID, Tool: row.Tool, Status: row.Status, Asks: change.Raises > 0,
			})
			l.take(change.Transition)
		}
		if dry || len(marked) == 0 {
			return nil
		}
		t.queue("CallsMarkRestored", tenant, session, ids, asked, ledger.RestoredFence)
		t.queue("ApprovalsMarkRestored", tenant, session, ids)
		return t.finish(ctx, l, session)
	})
	return marked, err
}
