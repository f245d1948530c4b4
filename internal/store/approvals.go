package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// Pending returns the open approval, question or reconciliation of a call. It returns NOT_FOUND when the call has no open one.
func (db *DB) Pending(ctx context.Context, tenant, id, callID string) (jig.Pending, error) {
	var row *approvalRow
	err := db.once(ctx, tenant, func(t *tx) { first(t.queue("ApprovalOpen", tenant, id, callID), &row) })
	if err != nil {
		return jig.Pending{}, err
	}
	if row == nil {
		return jig.Pending{}, jig.Errorf(jig.CodeNotFound, "call %q of session %q is not waiting for a person", callID, id).WithField("call")
	}
	return row.pending()
}

// Lapse expires an open approval whose time is over, or records the reminders and escalations that are due, by the rules of
// [approval.Elapse]. The result reports the call's status and, while the approval is open, the approval. Lapse is idempotent.
func (db *DB) Lapse(ctx context.Context, tenant, id, callID string, now time.Time) (approval.Lapse, error) {
	var lapse approval.Lapse
	err := db.transact(ctx, tenant, func(t *tx) error {
		rows := locked{session: id}
		first(t.queue("CallLock", tenant, id, callID), &rows.call)
		first(t.queue("ApprovalOpenLock", tenant, id, callID), &rows.open)
		first(t.queue("ApprovalLatest", tenant, id, callID), &rows.latest)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if rows.call == nil {
			return noCall(id, callID)
		}
		state, err := rows.state(tenant)
		if err != nil {
			return err
		}
		l := &log{}
		var change approval.Transition
		change, lapse = approval.Elapse(state, now)
		if err := t.save(rows, state, change, l); err != nil {
			return err
		}
		return t.finish(ctx, l, id)
	})
	return lapse, err
}

// Approved returns who approved a call: everybody who voted, or the person who decided. by is empty when the call was not approved;
// claimed reports whether at least one of these people only claimed their identity and did not prove it.
func (db *DB) Approved(ctx context.Context, tenant, id, callID string) (by []string, claimed bool, err error) {
	var row *whoRow
	if err := db.once(ctx, tenant, func(t *tx) { first(t.queue("ApprovalWho", tenant, id, callID), &row) }); err != nil || row == nil {
		return nil, false, err
	}
	var votes []jig.Vote
	if err := decode(row.Votes, &votes); err != nil {
		return nil, false, err
	}
	for _, v := range votes {
		by = append(by, v.By)
		claimed = claimed || v.Claimed
	}
	if len(votes) == 0 && row.DecidedBy != "" {
		by, claimed = []string{row.DecidedBy}, row.Claimed
	}
	return by, claimed, nil
}

// whoRow is a row of the query ApprovalWho.
type whoRow struct {
	DecidedBy string
	Claimed   bool
	Votes     []byte
}

// Readmit replaces the admission of a waiting or reserved call (version, input, digest, verdict), because the tool has changed since or
// because the row does not match what was admitted. An open or unused approval expires, and a new one opens. If the new admission has a
// final status, the call takes that status and its result. A call whose earlier attempt may have taken effect becomes unknown when it may
// no longer run, or when its tool is no longer idempotent. Readmit returns the call as stored. Repeating the same admission changes
// nothing.
func (db *DB) Readmit(ctx context.Context, call jig.Call, approval *jig.Pending) (jig.Call, error) {
	var row *callRow
	err := db.transact(ctx, call.Tenant, func(t *tx) error {
		var latest, asking *approvalRow
		first(t.queue("CallLock", call.Tenant, call.SessionID, call.ID), &row)
		first(t.queue("ApprovalLatest", call.Tenant, call.SessionID, call.ID), &latest)
		first(t.queue("ApprovalOpenLock", call.Tenant, call.SessionID, call.ID), &asking)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if row == nil {
			return noCall(call.SessionID, call.ID)
		}
		open := row.status() == jig.CallWaiting || row.status() == jig.CallReserved
		same := row.Version == call.Version && row.Digest == call.Digest && row.Verdict == string(call.Verdict) &&
			row.PolicyVersion == call.PolicyVersion && bytes.Equal(row.Input, call.Input)
		unapproved := row.status() == jig.CallReserved && row.Verdict == string(jig.VerdictAsk) && !latest.covers(row.Digest)
		if !open || same && !unapproved {
			return nil
		}
		if asking == nil {
			asking = latest
		}
		changed, err := t.readmit(ctx, call, approval, row, asking)
		if err == nil {
			row = *changed
		}
		return err
	})
	if err != nil {
		return jig.Call{}, err
	}
	return row.call()
}

func (t *tx) readmit(ctx context.Context, call jig.Call, asked *jig.Pending, row *callRow, latest *approvalRow) (**callRow, error) {
	if !call.Status.Final() {
		call.Status = "" // the verdict decides the status
	}
	if call.Verdict == jig.VerdictAsk && asked == nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "a call with the verdict ask needs an approval").WithField("approval")
	}
	if asked != nil && asked.Grant != "" {
		call.Status = jig.CallReserved
	}
	status, result := admitted(call)
	var columns resultColumns
	if result != nil {
		var err error
		if columns, err = columnsOf(*result); err != nil {
			return nil, err
		}
	}
	reasons, err := encodeReasons(call.Reasons)
	if err != nil {
		return nil, err
	}
	l := &log{}
	why := fmt.Sprintf("%s changed since the call was admitted", row.Tool)
	if latest != nil && (latest.status() == approval.Open || latest.status() == approval.Approved) {
		rows := locked{session: row.SessionID, call: row, open: latest}
		state := rows.outline(t.tenant)
		if err := t.save(rows, state, approval.Withdraw(state, why, ""), l); err != nil {
			return nil, err
		}
	}
	if row.InDoubt && (status.Final() || !call.Idempotent) {
		changed, err := t.unknown(row, l, row.Tool+" changed after an attempt that never reported how it ended, and the call cannot be repeated safely", nil)
		if err != nil {
			return nil, err
		}
		return changed, t.finish(ctx, l, row.SessionID)
	}
	var changed *callRow
	first(t.queue("CallReadmit", t.tenant, row.SessionID, row.CallID, call.Version, call.Write, call.Idempotent, call.Digest,
		call.PolicyVersion, call.Verdict, optional([]byte(reasons)), status, columns.body, columns.summary, columns.err,
		call.Signature, text(call.ConcurrencyKey), call.Input), &changed)
	if asked != nil && (status == jig.CallWaiting || asked.Grant != "") {
		p := *asked
		p.Tenant, p.SessionID, p.Call = t.tenant, row.SessionID, row.CallID
		if row.InDoubt {
			p = approval.OfDoubtful(p)
		}
		if err := t.open(p); err != nil {
			return nil, err
		}
		l.opened(approval.Opened(row.facts(), p))
	} else if kind, ok := refusal(status); ok {
		l.of(row, kind, refusalDetails(call, result))
	} else if status == jig.CallSucceeded { // answered without running the tool
		l.of(row, jig.EventToolCompleted, resultDetails(*result))
	}
	return &changed, t.finish(ctx, l, row.SessionID)
}
