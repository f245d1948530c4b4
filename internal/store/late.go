package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
)

// settlesLate reports whether a completion settles a call that has become unknown in the meantime. The completion must come from the
// latest attempt and must know the outcome. If a person has said that nothing happened, a success still counts as long as the call has
// neither changed nor begun again, because it must not run a second time.
func settlesLate(c ledger.Completion, row *callRow) bool {
	if c.Fence != row.Fence || c.Status == jig.CallUnknown || c.InDoubt {
		return false
	}
	return row.status() == jig.CallUnknown ||
		row.status() == jig.CallReserved && c.Status == jig.CallSucceeded && c.Digest == row.Digest
}

// completeLate ends a locked call with the outcome that its attempt reported late, and withdraws the question that people were asked. It
// also records that the workflow must be told, in case this worker dies first; see [DB.TakeSettled].
func (t *tx) completeLate(ctx context.Context, c ledger.Completion, row *callRow) (**callRow, error) {
	outcome := jig.OutcomeNotHappened
	switch { //nolint:staticcheck // one case per line reads like a table
	case c.Status == jig.CallSucceeded:
		outcome = jig.OutcomeHappened
	case c.Status == jig.CallReserved: // nothing happened, and no attempt is left to try again
		c.Status = jig.CallFailed
	}
	const why = "the attempt reported late how it ended"
	var asked []approvalRow
	list(t.queue("ApprovalsOfCallsOpenLock", t.tenant, row.SessionID, []string{row.CallID}), &asked)
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	l := &log{}
	l.of(row, jig.EventToolReconciled, details{"outcome": string(outcome), "reason": why, "attempt": row.Fence})
	for i := range asked {
		s, err := locked{session: row.SessionID, call: row, open: &asked[i]}.state(t.tenant)
		if err != nil {
			return nil, err
		}
		entry := s.Entry(audit.AuditWithdrawn, jig.Principal{}, nil)
		entry.Reason, entry.Status = why, c.Status
		l.audits = append(l.audits, entry)
		n := s.Notice(jig.NoticeDecided, s.Open.Pending, why)
		n.Status, n.Reason = c.Status, string(outcome)
		l.notices = append(l.notices, n)
	}
	t.queue("ApprovalsCancelOf", t.tenant, row.SessionID, []string{row.CallID}, why)
	t.queue("SettledInsert", t.tenant, row.SessionID, row.CallID, row.Frame)
	return t.complete(ctx, c, row, l)
}

// settledRow is a row of the query SettledTake.
type settledRow struct{ TenantID, SessionID, CallID, Frame string }

// TakeSettled takes up to limit calls of all tenants that were settled late and whose workflow nobody has tried to tell for at least
// age, by the database's clock. Only the tenant, session, id and frame of each call are set. A call is not handed out again before
// age has passed; [DB.ToldSettled] removes it for good.
func (db *DB) TakeSettled(ctx context.Context, age time.Duration, limit int) ([]jig.Call, error) {
	var rows []settledRow
	if err := db.once(ctx, "", func(t *tx) { list(t.queue("SettledTake", age, limit), &rows) }); err != nil {
		return nil, err
	}
	calls := make([]jig.Call, len(rows))
	for i, r := range rows {
		calls[i] = jig.Call{Tenant: r.TenantID, SessionID: r.SessionID, ID: r.CallID, Frame: r.Frame}
	}
	return calls, nil
}

// ToldSettled records that a call's workflow knows that the call was settled late, or that the workflow has ended.
func (db *DB) ToldSettled(ctx context.Context, tenant, id, callID string) error {
	return db.once(ctx, tenant, func(t *tx) { t.queue("SettledTold", id, callID) })
}
