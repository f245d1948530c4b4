package store

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
)

const (
	// restoredFence is added to the fence of a call that a person must be asked about after a restore from a backup. It is higher than
	// the number of attempts that the call can have had since the backup, so that none of them can finish the call.
	restoredFence = 1000
	// restoredPage is the number of sessions that are read at once.
	restoredPage = 500
	// restoredReason is why a person is asked about a marked call.
	restoredReason = "the database was restored from a backup, and the call may have run since the backup was made"
)

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

// MarkRestored marks the open calls of all tenants that may have run since the backup from which the database was restored. It returns
// those that were not marked before. A marked call of a tool that is not idempotent does not begin: the next attempt finds it unknown and
// asks a person. The same holds for a composition that writes and has not begun in the backup, because the backup knows none of its steps.
// Other idempotent calls that write may begin, but it stays uncertain whether they took effect before. If dry is set, nothing is changed.
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
		open = slices.DeleteFunc(open, func(row callRow) bool { return !row.mayHaveRunSince() })
		ids := make([]string, len(open))
		for i := range open {
			ids[i] = open[i].CallID
		}
		var compositions []string
		column(t.queue("CompositionsNotBegun", tenant, session, ids), &compositions)
		if err := t.flush(ctx); err != nil {
			return err
		}
		marked = nil
		var asked []string
		l := &log{}
		for i := range open {
			row := &open[i]
			asks := !row.Idempotent || slices.Contains(compositions, row.CallID)
			if asks {
				asked = append(asked, row.CallID)
			}
			marked = append(marked, Restored{
				Tenant: tenant, SessionID: session, Call: row.CallID, Tool: row.Tool, Status: row.status(), Asks: asks,
			})
			l.of(row, jig.EventToolInDoubt, details{"reason": restoredReason, "status": row.Status})
			entry := approval.State{SessionID: session, Call: new(row.facts())}.Entry(audit.AuditInDoubt, jig.Principal{}, nil)
			entry.Reason, entry.Status = restoredReason, row.status()
			l.audits = append(l.audits, entry)
		}
		if dry || len(marked) == 0 {
			return nil
		}
		t.queue("CallsMarkRestored", tenant, session, ids, asked, restoredFence)
		t.queue("ApprovalsMarkRestored", tenant, session, ids)
		return t.finish(ctx, l, session)
	})
	return marked, err
}

// mayHaveRunSince reports whether an open call must be marked after a restore: its tool writes or is not idempotent, and the call is
// not yet marked. An idempotent call whose outcome is unknown waits for a person anyway.
func (r *callRow) mayHaveRunSince() bool {
	if r.InDoubt {
		return false
	}
	return !r.Idempotent || r.Write && r.status() != jig.CallUnknown
}

// asksAfterRestore reports whether a person must say whether the call happened before it can begin, because [DB.MarkRestored] marked
// it.
func (r *callRow) asksAfterRestore() bool {
	return r.InDoubt && r.Fence >= restoredFence
}
