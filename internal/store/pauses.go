package store

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/identity"
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
	var pauses []jig.Pause
	err := db.once(ctx, tenant, func(t *tx) { list(t.queue("Pauses", tenant, budget.Actor), &pauses) })
	return pauses, err
}
