package store

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// Reserve begins an attempt of a call, or reports why it cannot begin. What happens depends on the call's status:
//
//	reserved   the attempt begins: the fence is raised, and a required approval is consumed in the same transaction
//	executing  an earlier attempt began and did not report. If the tool is not idempotent, the call becomes unknown. Otherwise a
//	           new attempt begins while attempts are left; after the last one the call becomes unknown if it writes, else it fails
//	waiting, unknown, final  no attempt begins
//
// A call that [DB.MarkRestored] marked, so that a person is asked first, becomes unknown instead of beginning.
//
// What runs must be exactly what was admitted. If the version or digest differs, or a required approval does not cover it, the
// outcome is [ledger.ReserveWaiting] and the caller admits the call again; an idempotent call that was executing goes back to reserved
// first. The same attempt may ask again and gets the same answer.
func (db *DB) Reserve(ctx context.Context, r ledger.Reserve) (ledger.Reservation, error) {
	if r.Child == "" { // most calls start no session, and most of those that need no approval take a single statement
		var begun *startedRow
		err := db.once(ctx, r.Tenant, func(t *tx) {
			first(t.queue("CallStartFast", r.Tenant, r.SessionID, r.CallID, r.Version, r.Digest, r.Attempt), &begun)
		})
		if err != nil {
			return ledger.Reservation{}, err
		}
		if begun != nil {
			db.touched(r.Tenant, r.SessionID, &begun.LastSeq)
			return reservation(ledger.ReserveRun, &begun.callRow)
		}
	}
	var answer ledger.Reservation
	err := db.transact(ctx, r.Tenant, func(t *tx) error {
		var row *callRow
		var approval *approvalRow
		first(t.queue("CallLock", r.Tenant, r.SessionID, r.CallID), &row)
		first(t.queue("ApprovalLatest", r.Tenant, r.SessionID, r.CallID), &approval)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if row == nil {
			return noCall(r.SessionID, r.CallID)
		}
		var err error
		answer, err = t.reserve(ctx, r, row, approval)
		return err
	})
	return answer, err
}

func reservation(outcome ledger.ReserveOutcome, row *callRow) (ledger.Reservation, error) {
	call, err := row.call()
	return ledger.Reservation{Outcome: outcome, Call: call, Fence: row.Fence, InDoubt: row.InDoubt}, err
}

// reserve begins an attempt of a call whose row is locked, or returns why it cannot begin.
func (t *tx) reserve(ctx context.Context, r ledger.Reserve, row *callRow, approval *approvalRow) (ledger.Reservation, error) {
	switch status := row.status(); {
	case status.Final():
		return reservation(ledger.ReserveFinal, row)
	case status == jig.CallUnknown:
		return reservation(ledger.ReserveUnknown, row)
	case status == jig.CallWaiting:
		return reservation(ledger.ReserveWaiting, row)
	case row.asksAfterRestore():
		return t.reserveUnknown(ctx, row, restoredReason)
	case status == jig.CallExecuting && r.Attempt != "" && r.Attempt == row.Attempt:
		return reservation(ledger.ReserveRun, row) // the same attempt asks again: the first answer was lost
	case status == jig.CallExecuting && !row.Idempotent:
		return t.reserveUnknown(ctx, row, "an attempt began and never reported how it ended")
	case row.Version != r.Version, row.Digest != r.Digest, row.Verdict == string(jig.VerdictAsk) && !approval.covers(row.Digest):
		if status == jig.CallExecuting {
			return t.giveBack(ctx, row)
		}
		return reservation(ledger.ReserveWaiting, row)
	case status == jig.CallExecuting && row.Fence >= bound(r.MaxAttempts):
		return t.reserveNoMore(ctx, row)
	}
	return t.reserveRun(ctx, r, row, approval)
}

func bound(attempts int) int {
	if attempts <= 0 {
		return jig.DefaultMaxAttempts
	}
	return attempts
}

// covers reports whether an approval covers exactly what would run; see [approval.Record.Covers].
func (r *approvalRow) covers(digest string) bool {
	record, err := r.record()
	return err == nil && record.Covers(digest)
}

func (t *tx) reserveRun(ctx context.Context, r ledger.Reserve, row *callRow, asked *approvalRow) (ledger.Reservation, error) {
	l := &log{}
	if asked != nil && asked.status() == approval.Approved {
		held, err := t.consume(ctx, r, row, asked, l)
		if err != nil {
			return ledger.Reservation{}, err
		}
		if !held {
			return reservation(ledger.ReserveWaiting, row)
		}
	}
	var begun *callRow
	first(t.queue("CallStart", t.tenant, row.SessionID, row.CallID, r.Attempt, text(r.Child)), &begun)
	l.of(row, jig.EventToolStarted, details{"attempt": row.Fence + 1, "child_session_id": r.Child})
	if err := t.finish(ctx, l, row.SessionID); err != nil {
		return ledger.Reservation{}, err
	}
	return reservation(ledger.ReserveRun, begun)
}

// consume marks an approval as used. If a grant gave the approval, it also counts one use of the grant. If the approval no longer
// holds, because the grant has ended or because proof is required now and the approval lacks it, consume withdraws the approval,
// commits and returns false: the call must be admitted again.
func (t *tx) consume(ctx context.Context, r ledger.Reserve, row *callRow, asked *approvalRow, l *log) (held bool, err error) {
	var consumed int64
	var used *grantRow
	rows := locked{session: row.SessionID, call: row, open: asked}
	state := rows.outline(t.tenant)
	if r.ProofWanted {
		record, err := asked.record()
		if err != nil {
			return false, err
		}
		if !record.Proved() {
			return false, t.takeBack(ctx, rows, state, l, approval.WithdrawnUnproved)
		}
	}
	if asked.GrantID != "" {
		first(t.queue("GrantUse", t.tenant, asked.GrantID, r.Meaning), &used)
		if err := t.flush(ctx); err != nil {
			return false, err
		}
		if used == nil {
			return false, t.takeBack(ctx, rows, state, l, approval.WithdrawnGrant)
		}
		l.of(row, jig.EventGrantUsed, details{"grant": used.GrantID, "by": used.GivenBy, "used": used.Used, "max_uses": used.MaxUses})
		entry := state.Entry(audit.AuditGrantUsed, jig.Principal{ID: strings.Join(used.GivenBy, ", "), Claimed: used.Claimed}, nil)
		entry.Subject, entry.ApprovedDigest, entry.Status = used.GrantID, row.Digest, jig.CallExecuting
		l.audits = append(l.audits, entry)
	}
	affected(t.queue("ApprovalConsume", t.tenant, asked.ID), &consumed)
	err = t.flush(ctx)
	return consumed == 1, err
}

// takeBack voids an approval that no longer holds, and commits.
func (t *tx) takeBack(ctx context.Context, rows locked, state approval.State, l *log, why string) error {
	if err := t.save(rows, state, approval.Withdraw(state, why, rows.open.GrantID), l); err != nil {
		return err
	}
	return t.finish(ctx, l, rows.session)
}

// giveBack returns a call to reserved after an attempt that never reported, so that it can be admitted again: what would run now is
// not what was admitted.
func (t *tx) giveBack(ctx context.Context, row *callRow) (ledger.Reservation, error) {
	var changed *callRow
	first(t.queue("CallGiveBack", t.tenant, row.SessionID, row.CallID, row.InDoubt || row.Write), &changed)
	if err := t.finish(ctx, &log{}, row.SessionID); err != nil {
		return ledger.Reservation{}, err
	}
	return reservation(ledger.ReserveWaiting, changed)
}

// reserveUnknown marks a call as unknown and asks a person, because nobody knows whether its effect happened.
func (t *tx) reserveUnknown(ctx context.Context, row *callRow, why string) (ledger.Reservation, error) {
	l := &log{}
	unknown, err := t.unknown(row, l, why, nil)
	if err != nil {
		return ledger.Reservation{}, err
	}
	if err := t.finish(ctx, l, row.SessionID); err != nil {
		return ledger.Reservation{}, err
	}
	return reservation(ledger.ReserveUnknown, *unknown)
}

// unknown queues the changes that make a call's outcome unknown: its status, the question to a person, the notice and the event. The
// returned pointer is set by the next flush.
func (t *tx) unknown(row *callRow, l *log, why string, failure *jig.Error) (**callRow, error) {
	asked := approval.InDoubt(t.tenant, row.SessionID, row.facts(), why, failure, time.Now())
	var changed *callRow
	first(t.queue("CallSet", t.tenant, row.SessionID, row.CallID, jig.CallUnknown, nil, "", nil, ""), &changed)
	if err := t.open(asked.Pending); err != nil {
		return nil, err
	}
	l.opened(asked)
	return &changed, nil
}

// reserveNoMore ends a call that has used up its attempts. It becomes unknown if it writes, because an attempt may have changed
// something; otherwise it fails.
func (t *tx) reserveNoMore(ctx context.Context, row *callRow) (ledger.Reservation, error) {
	if row.Write {
		return t.reserveUnknown(ctx, row, fmt.Sprintf("the last of %d attempts never reported how it ended", row.Fence))
	}
	failure := jig.Errorf(jig.CodeUnavailable, "gave up after %d attempts: the last one never reported how it ended", row.Fence)
	result := jig.Failure(failure)
	columns, err := columnsOf(result)
	if err != nil {
		return ledger.Reservation{}, err
	}
	var changed *callRow
	first(t.queue("CallSet", t.tenant, row.SessionID, row.CallID, jig.CallFailed, columns.body, columns.summary, columns.err, ""), &changed)
	l := &log{}
	l.of(row, jig.EventToolFailed, details{"summary": result.Summary, "error": failure, "attempt": row.Fence})
	if err := t.finish(ctx, l, row.SessionID); err != nil {
		return ledger.Reservation{}, err
	}
	return reservation(ledger.ReserveFinal, changed)
}
