package store

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
)

// CancelSession cancels the open calls and approvals of a session and records their events. It ends the running compositions with a
// CANCELED result, and the session with end.Status, a final status (default: canceled). A call whose effect may have happened fails with
// OUTCOME_UNKNOWN, because nobody will be asked about it any more. If somebody ended the session from outside, end.Audit goes to the audit in
// the same transaction. A session that has already ended, or that changed after end.Since, is left alone.
func (db *DB) CancelSession(ctx context.Context, end ledger.End) error {
	if end.Status == "" {
		end.Status = jig.StatusCanceled
	}
	if !end.Status.Final() {
		return jig.Errorf(jig.CodeInvalidInput, "a session cannot be canceled as %q", end.Status).WithField("status")
	}
	canceled := jig.Failure(jig.Errorf(jig.CodeCanceled, "the composition was canceled: %s", cancelReason(end)))
	ended, err := columnsOf(canceled)
	if err != nil {
		return err
	}
	return db.transact(ctx, end.Tenant, func(t *tx) error {
		var open []callRow
		var asked []approvalRow
		var row *sessionRow
		t.queue("FramesEnd", end.Tenant, end.SessionID, ended.body) // first, so that no composition admits calls while the open ones are listed
		list(t.queue("CallsLockOpen", end.Tenant, end.SessionID), &open)
		list(t.queue("ApprovalsOfSessionOpenLock", end.Tenant, end.SessionID), &asked)
		t.queue("ApprovalsCancel", end.Tenant, end.SessionID, cancelReason(end))
		first(t.queue("SessionLock", end.Tenant, end.SessionID), &row)
		if err := t.flush(ctx); err != nil {
			return err
		}
		switch {
		case row == nil:
			return noSession(end.SessionID)
		case row.Status.Final(), !end.Since.IsZero() && row.UpdatedAt.After(end.Since):
			return nil
		}
		l := &log{}
		if end.Audit != nil {
			e := *end.Audit
			e.SessionID = end.SessionID
			l.audits = append(l.audits, e)
		}
		l.withdrawn(asked, cancelReason(end))
		if err := t.cancelCalls(ctx, open, l, cancelReason(end)); err != nil {
			return err
		}
		if end.Pass == 0 {
			end.Pass = row.Pass
		}
		if end.Pass > row.Pass && row.Pass > 0 { // the latest pass has ended, which is otherwise recorded when the next one begins
			var last *int64
			done := ledger.End{Tenant: end.Tenant, SessionID: end.SessionID, Pass: row.Pass, Status: jig.StatusWorking}
			if err := t.endPass(done, false, &last); err != nil {
				return err
			}
		}
		return t.endSession(ctx, end, l)
	})
}

// composed returns the ids of the doubtful, idempotent calls that a composition answers. The steps of such a composition show what took
// effect.
func (t *tx) composed(ctx context.Context, open []callRow) ([]string, error) {
	var ids, composed []string
	for i := range open {
		if open[i].Idempotent && open[i].ledger(t.tenant).Doubtful() {
			ids = append(ids, open[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	column(t.queue("FramesAmong", t.tenant, open[0].SessionID, ids), &composed)
	return composed, t.flush(ctx)
}

// withdrawn adds audit rows for approvals that are withdrawn because nobody needs them any more.
func (l *log) withdrawn(list []approvalRow, why string) {
	for i := range list {
		a := &list[i]
		l.audits = append(l.audits, audit.Entry{
			Kind: audit.AuditWithdrawn, SessionID: a.SessionID, Call: a.Call, Tool: a.Tool, Digest: a.Digest, PolicyVersion: a.PolicyVersion,
			Shown: a.shown(), Reason: why, Status: jig.CallCanceled,
		})
	}
}

func cancelReason(end ledger.End) string {
	switch {
	case end.Reason != "":
		return "the session ended: " + end.Reason
	case end.Error != nil:
		return "the session ended: " + end.Error.Message
	}
	return "the session was canceled"
}

// cancelCalls ends open calls whose rows are locked, by the rules of [ledger.Cancel].
func (t *tx) cancelCalls(ctx context.Context, open []callRow, l *log, why string) error {
	if len(open) == 0 {
		return nil
	}
	composed, err := t.composed(ctx, open)
	if err != nil {
		return err
	}
	n := len(open)
	ids, statuses, summaries := make([]string, n), make([]string, n), make([]string, n)
	results, errs := make([][]byte, n), make([][]byte, n)
	for i := range open {
		row := &open[i]
		change := ledger.Cancel(row.ledger(t.tenant), why, slices.Contains(composed, row.ID))
		columns, err := columnsOf(*change.Call.Result)
		if err != nil {
			return err
		}
		ids[i], statuses[i], results[i], summaries[i], errs[i] = row.ID, string(change.Call.Status), columns.body, columns.summary, columns.err
		l.take(change.Transition)
		t.observeCalls(func() []jig.Call { return []jig.Call{row.became(change.Call.Status, change.Call.Result)} })
	}
	t.queue("CallsFinish", t.tenant, open[0].SessionID, ids, statuses, results, summaries, errs)
	return nil
}
