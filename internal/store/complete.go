package store

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// Complete records the end of an attempt with its events, in one transaction, if the fence is still that of the attempt. A completion with
// an old fence changes nothing. In either case Complete returns the call as stored. A completion that arrives late, when the call is
// already unknown, still settles the call if it knows the outcome.
func (db *DB) Complete(ctx context.Context, c ledger.Completion) (ledger.Completed, error) {
	switch c.Status {
	case jig.CallSucceeded, jig.CallFailed, jig.CallCanceled:
		if len(c.Whole) == 0 {
			return db.completeFast(ctx, c)
		}
	case jig.CallUnknown, jig.CallReserved:
	case jig.CallWaiting, jig.CallExecuting, jig.CallDenied, jig.CallExpired, jig.CallDuplicate:
		return ledger.Completed{}, badCompletion(c.Status)
	default:
		return ledger.Completed{}, badCompletion(c.Status)
	}
	return db.completeLocked(ctx, c)
}

// completeLocked records the end of an attempt when that takes more than one statement.
func (db *DB) completeLocked(ctx context.Context, c ledger.Completion) (ledger.Completed, error) {
	var row *callRow
	late := false
	err := db.transact(ctx, c.Tenant, func(t *tx) error {
		first(t.queue("CallLock", c.Tenant, c.SessionID, c.CallID), &row)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if row == nil {
			return noCall(c.SessionID, c.CallID)
		}
		var changed **callRow
		var err error
		switch {
		case row.Fence == c.Fence && row.status() == jig.CallExecuting:
			changed, err = t.complete(ctx, c, row, &log{})
		case settlesLate(c, row):
			late = true
			changed, err = t.completeLate(ctx, c, row)
		default:
			return nil
		}
		if err == nil {
			row = *changed
		}
		return err
	})
	if err != nil {
		return ledger.Completed{}, err
	}
	return completion(row, late)
}

func completion(row *callRow, late bool) (ledger.Completed, error) {
	call, err := row.call()
	return ledger.Completed{Call: call, Late: late}, err
}

func badCompletion(s jig.CallStatus) error {
	return jig.Errorf(jig.CodeInvalidInput, "an attempt cannot end as %q", s).WithField("status").
		WithHint("succeeded, failed, canceled, unknown, or reserved to give it back")
}

// completeFast records the end of an attempt in one statement and one round trip. Ordinary calls take this path.
func (db *DB) completeFast(ctx context.Context, c ledger.Completion) (ledger.Completed, error) {
	columns, err := columnsOf(c.Result)
	if err != nil {
		return ledger.Completed{}, err
	}
	kind, d := completed(c, "")
	var done *startedRow
	var row *callRow
	err = db.once(ctx, c.Tenant, func(t *tx) {
		first(t.queue("CallFinishFast", c.Tenant, c.SessionID, c.CallID, c.Fence, c.Status, columns.body, columns.summary,
			columns.err, string(d.json()), kind), &done)
	})
	if err != nil {
		return ledger.Completed{}, err
	}
	if done != nil {
		db.touched(c.Tenant, c.SessionID, &done.LastSeq)
		return completion(&done.callRow, false)
	}
	if err := db.once(ctx, c.Tenant, func(t *tx) { first(t.queue("CallGet", c.Tenant, c.SessionID, c.CallID), &row) }); err != nil {
		return ledger.Completed{}, err
	}
	switch {
	case row == nil:
		return ledger.Completed{}, noCall(c.SessionID, c.CallID)
	case settlesLate(c, row):
		return db.completeLocked(ctx, c)
	}
	return completion(row, false)
}

// complete ends the attempt of a call whose row is locked, or returns the call to reserved.
func (t *tx) complete(ctx context.Context, c ledger.Completion, row *callRow, l *log) (**callRow, error) {
	if c.Status == jig.CallUnknown {
		why := "the attempt ended without knowing whether it took effect"
		if c.Result.Error != nil {
			why += ": " + cut(c.Result.Error.Message, 500)
		}
		changed, err := t.unknown(row, l, why, c.Result.Error)
		if err != nil {
			return nil, err
		}
		return changed, t.finish(ctx, l, row.SessionID)
	}
	var changed *callRow
	if c.Status == jig.CallReserved {
		first(t.queue("CallGiveBack", t.tenant, row.SessionID, row.CallID, row.InDoubt || c.InDoubt), &changed)
		return &changed, t.finish(ctx, l, row.SessionID)
	}
	columns, err := columnsOf(c.Result)
	if err != nil {
		return nil, err
	}
	artifact := ""
	if len(c.Whole) > 0 {
		artifact = t.keep(row.SessionID, "application/json", c.Whole)
	}
	first(t.queue("CallSet", t.tenant, row.SessionID, row.CallID, c.Status, columns.body, columns.summary, columns.err, artifact), &changed)
	if err := t.flush(ctx); err != nil { // the database computes the duration
		return nil, err
	}
	if row.Write && c.Status == jig.CallSucceeded {
		t.queue("SessionCountWrite", t.tenant, row.SessionID)
	}
	kind, d := completed(c, artifact)
	d["duration_ms"] = changed.FinishedAt.Sub(*changed.StartedAt).Milliseconds()
	l.of(row, kind, d)
	return &changed, t.finish(ctx, l, row.SessionID)
}

// completed returns the event of a finished attempt, without the duration. Its details are never empty.
func completed(c ledger.Completion, artifact string) (jig.EventType, details) {
	kind := jig.EventToolCompleted
	switch c.Status {
	case jig.CallFailed:
		kind = jig.EventToolFailed
	case jig.CallCanceled:
		kind = jig.EventToolCancelled
	case jig.CallSucceeded, jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown, jig.CallDenied,
		jig.CallExpired, jig.CallDuplicate:
	}
	d := resultDetails(c.Result)
	d["attempt"], d["result_artifact"] = c.Fence, artifact
	return kind, d
}

// resultDetails returns the part of a result that an event shows.
func resultDetails(r jig.ToolResult) details { return ledger.ResultDetails(r) }
