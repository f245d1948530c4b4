package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
)

// Pending returns the open approval of a call, or whatever else a person is asked about it. It returns NOT_FOUND when nothing is open.
func (db *DB) Pending(ctx context.Context, tenant, id, callID string) (jig.Pending, error) {
	var row *approvalRow
	err := db.once(ctx, tenant, func(t *tx) { first(t.queue("ApprovalOpen", tenant, id, callID), &row) })
	if err != nil {
		return jig.Pending{}, err
	}
	if row == nil {
		return jig.Pending{}, jig.Errorf(jig.CodeNotFound, "call %q of session %q waits for nobody", callID, id).WithField("call")
	}
	return row.pending()
}

// Lapse applies the passage of time to an open approval. If its expiry has been reached by now, the approval expires. Otherwise
// reminders and escalations that are due are recorded as events and notices. The result reports the call's status and, while the
// approval is open, the approval. Lapse is idempotent.
func (db *DB) Lapse(ctx context.Context, tenant, id, callID string, now time.Time) (approval.Lapse, error) {
	var lapse approval.Lapse
	err := db.transact(ctx, tenant, func(t *tx) error {
		s := subject{session: id}
		var latest *approvalRow
		first(t.queue("CallLock", tenant, id, callID), &s.call)
		first(t.queue("ApprovalOpenLock", tenant, id, callID), &s.approval)
		first(t.queue("ApprovalLatest", tenant, id, callID), &latest)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if s.call == nil {
			return noCall(id, callID)
		}
		lapse = approval.Lapse{Status: s.call.status()}
		if lapse.Status == jig.CallExpired && latest != nil { // asked again after the call had already expired
			ended, err := latest.pending()
			lapse.OnExpiry = approval.ConsentOf(ended).Terms.OnExpiry
			return err
		}
		if !waits(lapse.Status) || s.approval == nil {
			return nil
		}
		pending, err := s.approval.pending()
		if err != nil {
			return err
		}
		l := &log{}
		if !pending.ExpiresAt.IsZero() && !now.Before(pending.ExpiresAt) {
			lapse = approval.Lapse{Status: jig.CallExpired, OnExpiry: approval.ConsentOf(pending).Terms.OnExpiry}
			err = t.expire(s, pending, l)
		} else {
			t.remind(s, &pending, now, l)
			lapse.Ask = &pending
		}
		if err != nil {
			return err
		}
		return t.finish(ctx, l, id)
	})
	return lapse, err
}

// expire ends a call that nobody decided in time.
func (t *tx) expire(s subject, pending jig.Pending, l *log) error {
	result := jig.Failure(jig.Errorf(jig.CodeExpired, "nobody decided before %s", pending.ExpiresAt.Format(time.RFC3339)))
	columns, err := columnsOf(result)
	if err != nil {
		return err
	}
	t.queue("CallSet", t.tenant, s.session, s.call.CallID, jig.CallExpired, columns.body, columns.summary, columns.err, "")
	t.queue("ApprovalDecide", t.tenant, s.approval.ID, approval.Expired, jig.AnswerExpire, "", false, "", "", "", "", nil, nil, nil, nil)
	what := details{"digest": s.approval.Digest, "summary": result.Summary, "error": result.Error}
	outcome := approval.ConsentOf(pending).Terms.OnExpiry
	if outcome.Strictness() > 0 {
		what["on_expiry"] = string(outcome)
	}
	l.of(s.call, jig.EventToolExpired, what)
	entry := s.entry(audit.AuditExpired, jig.Principal{}, nil)
	entry.Status, entry.Reason = jig.CallExpired, result.Error.Message
	l.audits = append(l.audits, entry)
	n := s.notice(approval.NoticeExpired, pending, pending.ExpiresAt.String())
	n.Status, n.Reason = jig.CallExpired, result.Error.Message
	l.notices = append(l.notices, n)
	return nil
}

// remind records the reminders and escalations that are due by now.
func (t *tx) remind(s subject, pending *jig.Pending, now time.Time, l *log) {
	since := pending.RequestedAt
	if s.approval.NoticedAt != nil {
		since = s.approval.NoticedAt.UTC()
	}
	consent := approval.ConsentOf(*pending)
	for _, m := range consent.Moments(since, now) {
		what := details{"digest": pending.Digest, "due": m.At.Format(time.RFC3339), "missing": consent.Missing()}
		kind, event := approval.NoticeReminder, jig.EventApprovalReminded
		if m.Escalation != nil {
			kind, event = approval.NoticeEscalated, jig.EventApprovalEscalated
			what["approvers"] = m.Escalation
		}
		l.of(s.call, event, what)
		n := s.notice(kind, *pending, m.At.String())
		n.Approvers = m.Escalation
		l.notices = append(l.notices, n)
	}
	if !now.After(since) {
		return
	}
	t.queue("ApprovalNoticed", t.tenant, s.approval.ID, now)
	pending.NextAt = consent.Next(now)
	if !pending.ExpiresAt.IsZero() && !pending.NextAt.Before(pending.ExpiresAt) {
		pending.NextAt = time.Time{}
	}
}

// noticeID returns the id of a notice. It is the same however often the transaction is retried.
func noticeID(session, call string, kind approval.NoticeKind, unique string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + call + "\x00" + string(kind) + "\x00" + unique))
	return "ntc_" + hex.EncodeToString(sum[:16])
}

// requested returns the notice that an approval was opened.
func requested(p jig.Pending) approval.Notice {
	return approval.Notice{
		ID: noticeID(p.SessionID, p.Call, approval.NoticeRequested, p.Digest+p.RequestedAt.UTC().Format(time.RFC3339Nano)), Kind: approval.NoticeRequested, Approval: p,
	}
}

// shown returns the parts of the call that the approver saw.
func (r *approvalRow) shown() *audit.Shown {
	shown := &audit.Shown{Summary: r.Summary, Input: r.Input, Truncated: r.Truncated}
	if decode(r.Reasons, &shown.Reasons) != nil {
		shown.Reasons = nil
	}
	return shown
}

// Approved returns who approved a call: everybody who voted, or the person who decided. by is empty when the call was not approved;
// claimed reports whether any of them was not proved.
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

// Readmit replaces the admission of a waiting or reserved call (version, input, digest, verdict) because the tool has changed since,
// or because the row does not match what was admitted. An open or unused approval expires, and a new one opens. If the new admission
// has a final status, the call takes that status and its result. A call whose earlier attempt may have taken effect becomes unknown
// when it may no longer run, or when its tool is no longer idempotent. Readmit returns the call as it is stored now. Repeating the
// same admission changes nothing.
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
		unapproved := row.status() == jig.CallReserved && row.Verdict == string(jig.VerdictAsk) && !approved(latest, row.Digest)
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
		return nil, jig.Errorf(jig.CodeInvalidInput, "a call that asks needs an approval to open").WithField("approval")
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
		if latest.status() == approval.Open {
			t.queue("ApprovalDecide", t.tenant, latest.ID, approval.Expired, jig.AnswerExpire, "", false, "", why, "", "", nil, nil, nil, nil)
		} else {
			t.queue("ApprovalVoid", t.tenant, latest.ID, why)
		}
		l.of(row, jig.EventToolExpired, details{"digest": latest.Digest, "reason": why, "readmitted": true})
		entry := subject{session: row.SessionID, call: row, approval: latest}.entry(audit.AuditWithdrawn, jig.Principal{}, nil)
		entry.Reason = why
		l.audits = append(l.audits, entry)
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
			p.ExpiresAt, p.NextAt = time.Time{}, time.Time{} // like a question about an unknown effect, it never expires
			p.Reasons = append(slices.Clone(p.Reasons), "an earlier attempt began and never reported how it ended; "+
				"to repeat it is safe, because the tool is idempotent")
		}
		if err := t.open(p, row, l); err != nil {
			return nil, err
		}
	} else if kind, ok := refusal(status); ok {
		l.of(row, kind, refusalDetails(call, result))
	} else if status == jig.CallSucceeded { // answered without running the tool
		l.of(row, jig.EventToolCompleted, resultDetails(*result))
	}
	return &changed, t.finish(ctx, l, row.SessionID)
}
