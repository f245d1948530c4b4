package store

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
)

// startedRow is a row of the statements that begin or finish an attempt in one round trip.
type startedRow struct {
	callRow
	LastSeq int64
}

// Reserve begins an attempt of a call, or reports why it cannot begin, by the rules of [ledger.Reserve].
func (db *DB) Reserve(ctx context.Context, r ledger.ReserveRequest) (ledger.Reservation, error) {
	if r.Child == "" && !r.Asked && r.Outage == nil { // most calls that start no session and need no approval take a single statement
		var begun *startedRow
		err := db.gather(ctx, r.Tenant, r.SessionID, []string{r.CallID}, func(t *tx) {
			first(t.queue("CallStartFast", r.Tenant, r.SessionID, r.CallID, r.Version, r.Digest, r.Attempt,
				string(details(ledger.Started(r.Input, 1, "")).json())), &begun)
			t.observe(func(o Observer) {
				if begun != nil {
					o.CallStarted(begun.Tool, 1)
				}
			})
		})
		if err != nil {
			return ledger.Reservation{}, err
		}
		if begun != nil {
			db.committed(r.Tenant, r.SessionID, &begun.LastSeq)
			return reservation(ledger.ReserveRun, &begun.callRow), nil
		}
	}
	var answer ledger.Reservation
	err := db.transact(ctx, r.Tenant, func(t *tx) error {
		rows := locked{session: r.SessionID}
		first(t.queue("CallLock", r.Tenant, r.SessionID, r.CallID), &rows.call)
		first(t.queue("ApprovalLatest", r.Tenant, r.SessionID, r.CallID), &rows.latest)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if rows.call == nil {
			return noCall(r.SessionID, r.CallID)
		}
		rows.open = rows.latest
		outcome, err := t.reserve(ctx, r, &rows)
		if err != nil {
			return err
		}
		answer = reservation(outcome, rows.now())
		return nil
	})
	return answer, err
}

func reservation(outcome ledger.ReserveOutcome, row *callRow) ledger.Reservation {
	return ledger.Reservation{Outcome: outcome, Call: row.call(), Fence: row.Fence, InDoubt: row.InDoubt}
}

// reserve applies the rules to a call whose rows are locked, and saves what changes.
func (t *tx) reserve(ctx context.Context, r ledger.ReserveRequest, rows *locked) (ledger.ReserveOutcome, error) {
	s := rows.ledger(t.tenant)
	change := ledger.Reserve(s, r)
	if a := change.Begins; a != nil && a.Grant != "" {
		used, err := t.useGrant(ctx, a.Grant, r.Meaning)
		if err != nil {
			return "", err
		}
		change = ledger.UseGrant(s, change, used)
	}
	if a := change.Begins; a != nil && a.Consumes {
		t.queue("ApprovalConsume", t.tenant, rows.open.ID) // its row has been locked since the rules saw that it is approved
	}
	if !change.Changes() {
		return change.Answer, nil
	}
	l := &log{}
	if err := t.saveCall(rows, s, change, l); err != nil {
		return "", err
	}
	return change.Answer, t.finish(ctx, l, rows.session)
}

// useGrant counts one use of a grant for a contract with the given meaning. It returns nil when the grant covers no further call.
func (t *tx) useGrant(ctx context.Context, id, meaning string) (*jig.Grant, error) {
	var used *jig.Grant
	first(t.queue("GrantUse", t.tenant, id, meaning), &used)
	return used, t.flush(ctx)
}

// Complete records the end of an attempt with its events, in one transaction, by the rules of [ledger.Complete]. The call is returned in
// any case, as it is stored now.
func (db *DB) Complete(ctx context.Context, c ledger.Completion) (ledger.Completed, error) {
	if err := c.Validate(); err != nil {
		return ledger.Completed{}, err
	}
	if c.Status.Final() && len(c.Whole) == 0 {
		done, err := db.completeFast(ctx, c)
		if err != nil {
			return ledger.Completed{}, err
		}
		if done != nil {
			return ledger.Completed{Call: done.call()}, nil
		}
	}
	return db.completeLocked(ctx, c)
}

// completeFast records the end of an attempt in one statement and one round trip. Ordinary calls take this path. It returns nil and
// changes nothing if the attempt does not hold the fence of an executing call.
func (db *DB) completeFast(ctx context.Context, c ledger.Completion) (*callRow, error) {
	columns, err := columnsOf(c.Result)
	if err != nil {
		return nil, err
	}
	kind, d := ledger.Ended(c, "")
	var done *startedRow
	err = db.gather(ctx, c.Tenant, c.SessionID, []string{c.CallID}, func(t *tx) {
		first(t.queue("CallFinishFast", c.Tenant, c.SessionID, c.CallID, c.Fence, c.Status, columns.body, columns.summary,
			columns.err, string(details(d).json()), kind, c.Reads.Private, c.Reads.Untrusted, c.Reads.Steps), &done)
		t.observeCalls(func() []jig.Call {
			if done == nil {
				return nil
			}
			call := done.became(c.Status, &c.Result)
			call.StartedAt, call.FinishedAt = done.StartedAt, done.FinishedAt
			return []jig.Call{call}
		})
	})
	if err != nil || done == nil {
		return nil, err
	}
	db.committed(c.Tenant, c.SessionID, &done.LastSeq)
	return &done.callRow, nil
}

// completeLocked records the end of an attempt when that takes more than one statement.
func (db *DB) completeLocked(ctx context.Context, c ledger.Completion) (ledger.Completed, error) {
	var row *callRow
	late := false
	err := db.transact(ctx, c.Tenant, func(t *tx) error {
		rows := locked{session: c.SessionID}
		var asked []approvalRow
		first(t.queue("CallLock", c.Tenant, c.SessionID, c.CallID), &rows.call)
		list(t.queue("ApprovalsOfCallsOpenLock", c.Tenant, c.SessionID, []string{c.CallID}), &asked)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if rows.call == nil {
			return noCall(c.SessionID, c.CallID)
		}
		s := rows.ledger(c.Tenant)
		s.ArtifactID = jig.NewArtifactID()
		for i := range asked {
			s.Withdrawable = append(s.Withdrawable, asked[i].readable())
		}
		change := ledger.Complete(s, c)
		row, late, rows.timed = rows.call, change.Late, !change.Late
		if !change.Changes() {
			return nil
		}
		err := t.complete(ctx, &rows, s, change)
		row = rows.now()
		return err
	})
	if err != nil {
		return ledger.Completed{}, err
	}
	return ledger.Completed{Call: row.call(), Late: late}, nil
}

// complete saves the end of an attempt and commits. The event of a call that has ended says how long the attempt took; the database
// computes that.
func (t *tx) complete(ctx context.Context, rows *locked, s ledger.State, change ledger.Transition) error {
	events := change.Events
	change.Events = nil
	l := &log{}
	if err := t.saveCall(rows, s, change, l); err != nil {
		return err
	}
	if change.Call.Status.Final() {
		if err := t.flush(ctx); err != nil {
			return err
		}
		events[len(events)-1].Data["duration_ms"] = rows.changed.FinishedAt.Sub(*rows.changed.StartedAt).Milliseconds()
	}
	l.take(approval.Transition{Events: events})
	return t.finish(ctx, l, rows.session)
}

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
