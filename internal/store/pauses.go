package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/ledger"
)

// pausing returns the scope of the first pause that holds back a call of a tool, or "" when no pause does. pauses are those that
// concern the call's session.
func pausing(pauses []jig.Pause, tool string) jig.PauseScope {
	for _, p := range pauses {
		if p.Scope != jig.PauseTool || p.Target == tool {
			return p.Scope
		}
	}
	return ""
}

// Pause holds back calls that have not begun. A pause that is already in force is left alone, unless a budget made it. changed reports whether
// the pause is new. The error is NOT_PERMITTED when the token was used for another request.
func (db *DB) Pause(ctx context.Context, tenant string, p jig.Pause, evidence *identity.Evidence) (changed bool, err error) {
	return db.pausing(ctx, tenant, p, audit.AuditPaused, evidence, func(t *tx, n *int64) {
		affected(t.queue("PausePut", tenant, string(p.Scope), text(p.Target), text(p.By), p.Claimed, text(p.Reason), p.At, budget.Actor), n)
	})
}

// Resume lifts a pause. changed reports whether the pause was in force. The error is NOT_PERMITTED when the token was used for another
// request.
func (db *DB) Resume(ctx context.Context, tenant string, p jig.Pause, evidence *identity.Evidence) (changed bool, err error) {
	return db.pausing(ctx, tenant, p, audit.AuditResumed, evidence, func(t *tx, n *int64) {
		affected(t.queue("PauseLift", tenant, string(p.Scope), text(p.Target), p.At, text(p.By)), n)
	})
}

func (db *DB) pausing(
	ctx context.Context, tenant string, p jig.Pause, kind audit.Kind, evidence *identity.Evidence, change func(t *tx, n *int64),
) (changed bool, err error) {
	err = db.transact(ctx, tenant, func(t *tx) error {
		var n int64
		var use *tokenUse
		changed = false
		t.queue("TenantEnsure", tenant)
		t.usedToken(evidence, &use)
		if err := t.flush(ctx); err != nil {
			return err
		}
		e := audit.By(jig.Principal{ID: p.By, Claimed: p.Claimed}, evidence, "")
		e.Kind, e.Reason, e.Subject = kind, p.Reason, string(p.Scope)
		session := ""
		if p.Target != "" {
			e.Subject += ":" + p.Target
		}
		if p.Scope == jig.PauseSession {
			session, e.SessionID = p.Target, p.Target
		}
		switch {
		case use.again(evidence):
			return t.reused(ctx, e)
		case use != nil: // never done twice: it may have been undone since
			changed = use.Changed
			return nil
		}
		change(t, &n)
		if err := t.flush(ctx); err != nil {
			return err
		}
		changed = n > 0
		t.useToken(evidence, changed)
		l := &log{}
		if !changed {
			return t.finish(ctx, l, "")
		}
		if p.Scope == jig.PauseSession {
			event := jig.EventSessionPaused
			if kind == audit.AuditResumed {
				event = jig.EventSessionResumed
			}
			l.add(jig.Event{Type: event, Data: details{"by": p.By, "claimed": p.Claimed, "reason": p.Reason}.json()})
		}
		l.audits = append(l.audits, e)
		return t.finish(ctx, l, session)
	})
	return changed, err
}

// Pauses lists the pauses in force in a tenant, oldest first, without those of budgets whose sessions have ended.
func (db *DB) Pauses(ctx context.Context, tenant string) ([]jig.Pause, error) {
	return ask(ctx, db, tenant, list[jig.Pause], "Pauses", tenant, budget.Actor)
}

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
		db.committed(tenant, id, last)
		return nil
	})
}

// HeldBack reports whether a call that has not begun can begin only when a person acts: one who lifts a pause, or decides about another call.
func (db *DB) HeldBack(ctx context.Context, tenant, id, callID string) (bool, error) {
	held, err := ask(ctx, db, tenant, value[bool], "CallHeldBack", tenant, id, text(callID))
	return orZero(held), err
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

// ModelWait returns why the latest request to a model failed, for the latest pass of a session or, if callID is not empty, for a call. It is nil
// if none failed, or if the pass has its turn.
func (db *DB) ModelWait(ctx context.Context, tenant, id, callID string) (*ledger.ModelWait, error) {
	var found *ledger.ModelWait
	err := db.once(ctx, tenant, func(t *tx) {
		if callID == "" {
			value(t.queue("ModelWait", tenant, id), &found)
			return
		}
		value(t.queue("CallModelWait", tenant, id, callID), &found)
	})
	return found, err
}

// NoteModelWait records, with an event, that the model is asked again for the turn of a pass or by a call. Nothing is recorded if the session
// has ended, or if another attempt of the call has begun.
func (db *DB) NoteModelWait(ctx context.Context, tenant, id string, w ledger.ModelWait) error {
	w.Message = text(w.Message)
	data, err := encode(w)
	if err != nil {
		return err
	}
	var last *int64
	err = db.once(ctx, tenant, func(t *tx) {
		if w.Call == "" {
			value(t.queue("ModelWaits", tenant, id, w.Pass, string(data)), &last)
			return
		}
		value(t.queue("CallModelWaits", tenant, id, w.Call, w.Attempt, string(data)), &last)
	})
	if err != nil {
		return err
	}
	db.committed(tenant, id, last)
	return nil
}
