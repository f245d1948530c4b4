package store

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// writtenCallRow is a row of the query CallsWritten.
type writtenCallRow struct {
	callRow

	Undone            bool
	BySession, ByCall string
}

// Written lists up to limit calls of a session that have changed something, or nobody knows whether they have: those that write or use one of the
// given tools. Calls that consist of other calls are listed, too. Those that ended last come first.
func (db *DB) Written(ctx context.Context, tenant, id string, tools []string, limit int) ([]ledger.Written, error) {
	rows, err := ask(ctx, db, tenant, list[writtenCallRow], "CallsWritten", tenant, text(id), tools, limit)
	var written []ledger.Written
	for i := range rows {
		w := ledger.Written{Call: rows[i].call(), Undone: rows[i].Undone}
		doubtful := w.Call.Write && w.Call.Result != nil && jig.CodeOf(w.Call.Result.Error) == jig.CodeOutcomeUnknown
		if w.Call.Status != jig.CallSucceeded && !doubtful {
			continue
		}
		if rows[i].BySession != "" {
			w.Before = &ledger.CallName{SessionID: rows[i].BySession, Call: rows[i].ByCall}
		}
		written = append(written, w)
	}
	return written, err
}

// undoRow is a row of the query UndoLock.
type undoRow struct {
	BySession, ByCall string
	// SessionStatus is that of the session that makes the call; empty if it was deleted.
	SessionStatus jig.Status
}

// ClaimUndo makes a call the one that undoes another call, so that nothing is undone twice. If another call has undone it, or may still do so,
// ClaimUndo returns that call and changes nothing. The session of by must exist.
func (db *DB) ClaimUndo(ctx context.Context, tenant string, of, by ledger.CallName) (other *ledger.CallName, err error) {
	err = db.transact(ctx, tenant, func(t *tx) error {
		var held *undoRow
		t.queue("UndoInsert", tenant, of.SessionID, of.Call, by.SessionID, by.Call)
		first(t.queue("UndoLock", tenant, of.SessionID, of.Call), &held)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if held == nil {
			return noCall(of.SessionID, of.Call)
		}
		holder := ledger.CallName{SessionID: held.BySession, Call: held.ByCall}
		if holder == by {
			return t.commit(ctx)
		}
		var undo *callRow
		first(t.queue("CallGet", tenant, holder.SessionID, holder.Call), &undo)
		if err := t.flush(ctx); err != nil {
			return err
		}
		// A session that was deleted has kept no call, and may have undone it. One that has ended without the call will never make it.
		again := undo == nil && held.SessionStatus.Final()
		if undo != nil {
			again = ledger.MayUndoAgain(undo.call())
		}
		if !again {
			other = &holder
			return nil
		}
		t.queue("UndoPut", tenant, of.SessionID, of.Call, by.SessionID, by.Call)
		return t.commit(ctx)
	})
	return other, err
}
