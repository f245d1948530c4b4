package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jig-run/jig"
)

// Pending returns one call's open approval (or its open question of another kind); NOT_FOUND when there is none.
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

// ExpireApproval expires an open approval whose time has come by now; it returns where the call stands.
func (db *DB) ExpireApproval(ctx context.Context, tenant, id, callID string, now time.Time) (jig.CallStatus, error) {
	var status jig.CallStatus
	err := db.transact(ctx, tenant, func(t *tx) error {
		var row *callRow
		var approval *approvalRow
		first(t.queue("CallLock", tenant, id, callID), &row)
		first(t.queue("ApprovalOpenLock", tenant, id, callID), &approval)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if row == nil {
			return noCall(id, callID)
		}
		status = row.status()
		if status != jig.CallWaiting || approval == nil || approval.ExpiresAt == nil || now.Before(*approval.ExpiresAt) {
			return nil
		}
		result := jig.Failure(jig.Errorf(jig.CodeExpired, "nobody decided before %s", approval.ExpiresAt.UTC().Format(time.RFC3339)))
		columns, err := columnsOf(result)
		if err != nil {
			return err
		}
		t.queue("CallSet", tenant, id, callID, jig.CallExpired, columns.body, columns.summary, columns.err, "")
		t.queue("ApprovalDecide", tenant, approval.ID, jig.ApprovalExpired, jig.AnswerExpire, "", false, "", "", "", "", nil, nil)
		l := &log{}
		l.of(row, jig.EventToolExpired, details{"digest": approval.Digest, "summary": result.Summary, "error": result.Error})
		if err := t.finish(ctx, l, id); err != nil {
			return err
		}
		status = jig.CallExpired
		return nil
	})
	return status, err
}

// Readmit replaces a waiting or reserved call's admission (version, digest, ruling) because the tool changed since; an open
// or unused approval expires and a new one opens. It returns the call as it stands. A second call with the same admission
// changes nothing.
func (db *DB) Readmit(ctx context.Context, call jig.Call, approval *jig.Pending) (jig.Call, error) {
	var row *callRow
	err := db.transact(ctx, call.Tenant, func(t *tx) error {
		var latest *approvalRow
		first(t.queue("CallLock", call.Tenant, call.SessionID, call.ID), &row)
		first(t.queue("ApprovalLatest", call.Tenant, call.SessionID, call.ID), &latest)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if row == nil {
			return noCall(call.SessionID, call.ID)
		}
		open := row.status() == jig.CallWaiting || row.status() == jig.CallReserved
		same := row.Version == call.Version && row.Digest == call.Digest && row.Verdict == string(call.Verdict)
		if !open || same {
			return nil
		}
		changed, err := t.readmit(ctx, call, approval, row, latest)
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

func (t *tx) readmit(ctx context.Context, call jig.Call, approval *jig.Pending, row *callRow, latest *approvalRow) (**callRow, error) {
	call.Status = "" // the verdict says
	if call.Verdict == jig.VerdictAsk && approval == nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "a call that asks needs an approval to open").WithField("approval")
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
	if latest != nil && (latest.status() == jig.ApprovalOpen || latest.status() == jig.ApprovalApproved) {
		if latest.status() == jig.ApprovalOpen {
			t.queue("ApprovalDecide", t.tenant, latest.ID, jig.ApprovalExpired, jig.AnswerExpire, "", false, "", why, "", "", nil, nil)
		} else {
			t.queue("ApprovalVoid", t.tenant, latest.ID, why)
		}
		l.of(row, jig.EventToolExpired, details{"digest": latest.Digest, "reason": why, "readmitted": true})
	}
	var changed *callRow
	first(t.queue("CallReadmit", t.tenant, row.SessionID, row.CallID, call.Version, call.Write, call.Idempotent, call.Digest,
		call.PolicyVersion, call.Verdict, optional([]byte(reasons)), status, columns.body, columns.summary, columns.err,
		call.Signature, text(call.ConcurrencyKey)), &changed)
	if status == jig.CallWaiting {
		p := *approval
		p.Tenant, p.SessionID, p.Call = t.tenant, row.SessionID, row.CallID
		opened, err := approvalColumns([]jig.Pending{p})
		if err != nil {
			return nil, err
		}
		t.queue("ApprovalsInsert", append([]any{t.tenant, row.SessionID}, opened...)...)
		l.add(jig.Event{Type: jig.EventToolNeedsApproval, Pass: row.Pass, CallID: row.CallID, Tool: row.Tool, Data: pendingData(p)})
	} else if kind, ok := refusal(status); ok {
		l.of(row, kind, refusalDetails(call, result))
	}
	return &changed, t.finish(ctx, l, row.SessionID)
}
