package store

import (
	"bufio"
	"context"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// exports lists the queries of an export, each with the kind that labels its rows.
var exports = [...]struct{ query, name string }{
	{"ExportSessions", "session"},
	{"ExportRetiredSessions", "retired_session"},
	{"ExportAskers", "asker"},
	{"ExportMessages", "message"},
	{"ExportTurns", "turn"},
	{"ExportPassEnds", "pass_end"},
	{"ExportBudgetCounters", "budget_counter"},
	{"ExportBudgetReservations", "budget_reservation"},
	{"ExportUsageRecords", "usage_record"},
	{"ExportUsageDays", "usage_day"},
	{"ExportRateBuckets", "rate_bucket"},
	{"ExportRateCalls", "rate_call"},
	{"ExportCalls", "call"},
	{"ExportSettledCalls", "settled_call"},
	{"ExportFrames", "frame"},
	{"ExportFrameValues", "frame_value"},
	{"ExportReceived", "received"},
	{"ExportReceivedConsumed", "received_consumed"},
	{"ExportApprovals", "approval"},
	{"ExportDecisions", "decision"},
	{"ExportGrants", "grant"},
	{"ExportPauses", "pause"},
	{"ExportUsedTokens", "used_token"},
	{"ExportNotices", "notice"},
	{"ExportNoticeDeliveries", "notice_delivery"},
	{"ExportAudit", "audit"},
	{"ExportEvents", "event"},
	{"ExportArtifacts", "artifact"},
	{"ExportArtifactChunks", "artifact_chunk"},
	{"ExportDocuments", "document"},
	{"ExportBundles", "bundle"},
	{"ExportEntities", "entity"},
	{"ExportEntityTasks", "entity_task"},
	{"ExportRelations", "relation"},
	{"ExportWorkspaces", "workspace"},
	{"ExportTexts", "text"},
	{"ExportTextChunks", "text_chunk"},
}

// ExportTenant writes everything that a tenant has, in one snapshot, as JSON lines {"kind": …, "row": {…}}. Bytes are written in
// hexadecimal after "\x".
func (db *DB) ExportTenant(ctx context.Context, tenant string, w io.Writer) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return db.translate(err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return db.translate(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() //nolint:errcheck // the transaction only reads
	out := bufio.NewWriter(w)
	for _, setup := range []string{"set local statement_timeout = 0", "set local row_security = on"} {
		if _, err := tx.Exec(ctx, setup); err != nil {
			return db.translate(err)
		}
	}
	if _, err := tx.Exec(ctx, db.queries["TenantSet"], tenant); err != nil {
		return db.translate(err)
	}
	for _, e := range exports {
		if err := db.exportRows(ctx, tx, e.query, e.name, tenant, out); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return jig.Errorf(jig.CodeInternal, "writing the export: %w", err)
	}
	return nil
}

func (db *DB) exportRows(ctx context.Context, tx pgx.Tx, query, name, tenant string, out *bufio.Writer) error {
	rows, err := tx.Query(ctx, db.queries[query], tenant)
	if err != nil {
		return db.translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		row := rows.RawValues()[0]
		for _, part := range [][]byte{[]byte(`{"kind":"` + name + `","row":`), row, []byte("}\n")} {
			if _, err := out.Write(part); err != nil {
				return jig.Errorf(jig.CodeInternal, "writing the export: %w", err)
			}
		}
	}
	return db.translate(rows.Err())
}

// EraseTenant deletes everything that a tenant has. It cannot be undone. Two kinds of hashes stay: those of its session ids, which can
// never be used again, and those of used tokens, until the tokens expire.
func (db *DB) EraseTenant(ctx context.Context, tenant string) error {
	if err := jig.CheckTenant(tenant); err != nil {
		return err
	}
	return db.once(ctx, tenant, func(t *tx) { t.queue("Erase") })
}

// PruneTenant deletes a tenant's ended sessions that have not changed since a time, with everything that belongs to them, and returns how
// many it deleted. Hashes of their ids stay, so that no new session can use such an id.
func (db *DB) PruneTenant(ctx context.Context, tenant string, before time.Time) (int64, error) {
	gone, err := ask(ctx, db, tenant, value[int64], "Prune", before)
	return orZero(gone), err
}

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

// TakeSettled takes up to limit calls of all tenants that were settled late and whose workflow nobody has tried to tell for at least
// age, by the database's clock. Only the tenant, session, id and frame of each call are set. A call is not handed out again before
// age has passed; [DB.ToldSettled] removes it for good.
func (db *DB) TakeSettled(ctx context.Context, age time.Duration, limit int) ([]jig.Call, error) {
	return ask(ctx, db, "", list[jig.Call], "SettledTake", age, limit)
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
