package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
)

// Reconcile applies a person's answer about an unknown outcome. It is idempotent by Key. "happened" ends the call as succeeded with
// the given result, "not_happened" lets it run again under the approval it had, and "give_up" ends it as failed.
func (db *DB) Reconcile(ctx context.Context, r approval.ReconcileRequest) (jig.Ruled, error) {
	w := r.Reconciliation
	return db.ruling(ctx, r.Tenant, r.SessionID, r.Key, w.Call, r.Evidence, func(t *tx, s subject, l *log) (jig.Ruled, error) {
		why := reconcileObjection(r, s)
		if why == "" {
			var err error
			if why, err = t.mayReconcile(ctx, r, s); err != nil {
				return jig.Ruled{}, err
			}
		}
		if why != "" {
			d := details{"by": r.Principal.ID, "claimed": r.Principal.Claimed, "answer": string(w.Outcome)}
			return s.refused(l, w.Call, why, d, entryOf(r.Principal, r.Evidence, w.Note)), nil
		}
		return t.reconcile(ctx, r, s, l)
	})
}

// mayReconcile returns why a person may not say what happened to a call, or "". The tenant can name the people who may. If it does not,
// everybody may who could have approved the call.
func (t *tx) mayReconcile(ctx context.Context, r approval.ReconcileRequest, s subject) (string, error) {
	if r.Reconcilers != nil {
		if r.Reconcilers.Include(r.Principal) {
			return "", nil
		}
		return fmt.Sprintf("%s may not say what became of a call: it is for %s", r.Principal.ID, r.Reconcilers), nil
	}
	var asked *approvalRow
	first(t.queue("ApprovalLatest", t.tenant, s.session, s.call.CallID), &asked)
	if err := t.flush(ctx); err != nil || asked == nil {
		return "", err
	}
	pending, err := asked.pending()
	if err != nil {
		return "", err
	}
	if r.ProofWanted {
		pending = approval.Proved(pending)
	}
	_, why := approval.ConsentOf(pending).Entitled(r.Principal, r.Now)
	return why, nil
}

func reconcileObjection(r approval.ReconcileRequest, s subject) string {
	w := r.Reconciliation
	switch {
	case r.Refusal != "":
		return r.Refusal
	case s.call == nil:
		return fmt.Sprintf("there is no call %q in this session", w.Call)
	case w.Outcome != jig.OutcomeHappened && w.Outcome != jig.OutcomeNotHappened && w.Outcome != jig.OutcomeGiveUp:
		return fmt.Sprintf("%q is not an outcome: happened, not_happened or give_up", w.Outcome)
	case s.call.status() != jig.CallUnknown || s.approval == nil || jig.PendingKind(s.approval.Kind) != jig.PendingReconcile:
		return fmt.Sprintf("the call's outcome is not in doubt: it is %s", s.call.Status)
	case len(w.Result) > 0 && !json.Valid(w.Result):
		return "the result is not JSON"
	case s.reused:
		return tokenUsed
	}
	return ""
}

// reconcile carries out an accepted answer: the call may run again, or it ends with the outcome that the person knows.
func (t *tx) reconcile(ctx context.Context, r approval.ReconcileRequest, s subject, l *log) (jig.Ruled, error) {
	w := r.Reconciliation
	t.queue("ApprovalDecide", t.tenant, s.approval.ID, approval.Approved, w.Outcome, text(r.Principal.ID), r.Principal.Claimed, text(w.Note), "", r.Key,
		s.approval.Digest, nil, nil, nil, nil)
	l.of(s.call, jig.EventToolReconciled, details{"outcome": string(w.Outcome), "by": r.Principal.ID, "claimed": r.Principal.Claimed, "note": w.Note})
	ruled := jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: jig.CallReserved}
	switch w.Outcome {
	case jig.OutcomeHappened:
		ruled.Status = jig.CallSucceeded
	case jig.OutcomeGiveUp:
		ruled.Status = jig.CallFailed
	case jig.OutcomeNotHappened:
	}
	entry := s.entry(audit.AuditReconciled, r.Principal, r.Evidence)
	entry.Reason, entry.Note, entry.Status = string(w.Outcome), w.Note, ruled.Status
	l.audits = append(l.audits, entry)
	pending, err := s.approval.pending()
	if err != nil {
		return jig.Ruled{}, err
	}
	n := s.notice(approval.NoticeDecided, pending, r.Key)
	n.Status, n.By, n.Reason = ruled.Status, r.Principal.ID, string(w.Outcome)
	l.notices = append(l.notices, n)
	if ruled.Status == jig.CallReserved {
		t.queue("CallGiveBack", t.tenant, s.session, s.call.CallID, false) // it is now certain that no earlier attempt took effect
		return ruled, nil
	}
	if err := t.reconciled(r, s, l, ruled.Status); err != nil {
		return jig.Ruled{}, err
	}
	return ruled, t.flush(ctx)
}

// reconciled ends a call in the status that the person's answer implies.
func (t *tx) reconciled(r approval.ReconcileRequest, s subject, l *log, status jig.CallStatus) error {
	result, kind := jig.ToolResult{Success: true, Data: r.Reconciliation.Result, Summary: "confirmed: it happened"}, jig.EventToolCompleted
	if status == jig.CallFailed {
		result, kind = jig.Failure(jig.Errorf(jig.CodeOutcomeUnknown, "nobody knows whether the call took effect")), jig.EventToolFailed
	}
	artifact := ""
	d := resultDetails(result)
	if len(result.Data) > jig.InlineBytes {
		whole, err := encode(result)
		if err != nil {
			return err
		}
		artifact = t.keep(s.session, "application/json", whole)
		result.Data, _ = preview(result.Data)
		d["result_artifact"] = artifact
	}
	columns, err := columnsOf(result)
	if err != nil {
		return err
	}
	t.queue("CallSet", t.tenant, s.session, s.call.CallID, status, columns.body, columns.summary, columns.err, artifact)
	l.of(s.call, kind, d)
	if s.call.Write && status == jig.CallSucceeded {
		t.queue("SessionCountWrite", t.tenant, s.session)
	}
	return nil
}

// Refuse records decision.refused for a signal that names no call. It is idempotent by key.
func (db *DB) Refuse(ctx context.Context, tenant, id, key, reason string, data json.RawMessage) error {
	_, err := db.ruling(ctx, tenant, id, key, "", nil, func(_ *tx, s subject, l *log) (jig.Ruled, error) {
		d := details{}
		if len(data) > 0 {
			d["payload"], _ = preview(data)
		}
		return s.refused(l, "", reason, d, audit.Entry{}), nil
	})
	return err
}
