package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// heldRow is a row of the query CallHeld.
type heldRow struct {
	Tool   string
	HeldBy string
}

// NoteHeld records, once for each pause, the event that a pause holds back a call which has not begun or, if callID is empty, the session's
// next pass. A pass that is held back by a pause of its own session has no further event, because the pause has one. Nothing is recorded
// if no pause holds it back.
func (db *DB) NoteHeld(ctx context.Context, tenant, id, callID string) error {
	return db.transact(ctx, tenant, func(t *tx) error {
		var paused []jig.Pause
		var held *heldRow
		list(t.queue("PausesOfSession", tenant, id), &paused)
		first(t.queue("CallHeld", tenant, id, text(callID)), &held)
		if err := t.flush(ctx); err != nil {
			return err
		}
		tool := ""
		if held != nil {
			tool = held.Tool
		}
		by := holding(paused, tool)
		switch {
		case by == nil || callID != "" && (held == nil || held.HeldBy == pauseKey(by)):
			return nil
		case callID == "" && by.Scope == jig.PauseSession && by.Target == id:
			return nil
		}
		data := details{"scope": string(by.Scope), "target": by.Target, "by": by.By, "claimed": by.Claimed, "reason": by.Reason}.json()
		var last *int64
		if callID == "" {
			value(t.queue("SessionHeldBy", tenant, id, pauseKey(by), data), &last)
		} else {
			value(t.queue("CallHeldBy", tenant, id, callID, pauseKey(by), data), &last)
		}
		if err := t.commit(ctx); err != nil {
			return err
		}
		db.touched(tenant, id, last)
		return nil
	})
}

// HeldBack reports whether a call that has not begun can begin only when a person acts: one who lifts a pause, or decides about another call.
func (db *DB) HeldBack(ctx context.Context, tenant, id, callID string) (bool, error) {
	var held *bool
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("CallHeldBack", tenant, id, text(callID)), &held) })
	return held != nil && *held, err
}

// holding returns the first pause that holds back a call of a tool or, if tool is empty, a session's next pass.
func holding(pauses []jig.Pause, tool string) *jig.Pause {
	for i := range pauses {
		if pausing(pauses[i:i+1], tool) != "" {
			return &pauses[i]
		}
	}
	return nil
}

// pauseKey identifies a pause. The same pause set again later has another key.
func pauseKey(p *jig.Pause) string {
	return string(p.Scope) + ":" + p.Target + "@" + p.At.Format(time.RFC3339Nano)
}
