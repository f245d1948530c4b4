package store

import (
	"bufio"
	"context"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig"
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
	var gone *int64
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("Prune", before), &gone) })
	if err != nil || gone == nil {
		return 0, err
	}
	return *gone, nil
}
