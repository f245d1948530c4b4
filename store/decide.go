package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jig-run/jig"
)

// subject is what a decision is about, read under lock. Call and approval are nil when there is none.
type subject struct {
	session  string
	key      string
	call     *callRow
	approval *approvalRow
}

// ruling locks what a decision is about and gives it to rule, unless the key was answered before: then that answer counts.
// rule queues the changes; ruling adds the stored answer and commits.
func (db *DB) ruling(
	ctx context.Context, tenant, session, key, callID string,
	rule func(t *tx, s subject, l *log) (jig.Ruled, error),
) (jig.Ruled, error) {
	if key == "" {
		return jig.Ruled{}, jig.Errorf(jig.CodeInvalidInput, "a decision needs a key").WithField("key")
	}
	var answer jig.Ruled
	err := db.transact(ctx, tenant, func(t *tx) error {
		s := subject{session: session, key: key}
		var stored []byte
		var status *string
		var before [][]byte
		value(t.queue("SessionStatus", tenant, session), &status)
		first(t.queue("CallLock", tenant, session, callID), &s.call)
		first(t.queue("ApprovalOpenLock", tenant, session, callID), &s.approval)
		column(t.queue("DecisionGet", tenant, session, key), &before) // after the lock: it sees what the lock waited for
		if err := t.flush(ctx); err != nil {
			return err
		}
		if status == nil {
			return noSession(session)
		}
		if len(before) > 0 {
			stored = before[0]
			return decode(stored, &answer)
		}
		l := &log{}
		ruled, err := rule(t, s, l)
		if err != nil {
			return err
		}
		if stored, err = encode(ruled); err != nil {
			return err
		}
		t.queue("DecisionInsert", tenant, session, key, stored)
		answer = ruled
		return t.finish(ctx, l, session)
	})
	return answer, err
}

// refused records a refusal and changes nothing else.
func (s subject) refused(l *log, callID, why string, d details) jig.Ruled {
	ruled := jig.Ruled{Call: callID, Outcome: jig.DecisionRefused, Reason: why}
	d["call"], d["reason"] = callID, why
	e := jig.Event{Type: jig.EventDecisionRefused, CallID: callID}
	if s.call != nil {
		ruled.Status = s.call.status()
		e.Pass, e.Tool = s.call.Pass, s.call.Tool
	}
	e.Data = d.json()
	l.add(e)
	return ruled
}

// Decide applies a decision: one compare-and-set on the approval's row, with its events. Idempotent by Key. A refused
// decision leaves decision.refused and changes nothing else.
func (db *DB) Decide(ctx context.Context, r jig.DecisionRequest) (jig.Ruled, error) {
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	d := r.Decision
	return db.ruling(ctx, r.Tenant, r.SessionID, r.Key, d.Call, func(t *tx, s subject, l *log) (jig.Ruled, error) {
		if why := objection(r, s); why != "" {
			return s.refused(l, d.Call, why, details{"by": d.By, "claimed": r.Principal.Claimed, "answer": string(d.Answer)}), nil
		}
		if d.Answer == jig.AnswerDeny {
			return t.deny(r, s, l)
		}
		return t.approve(r, s, l)
	})
}

// objection says why a decision cannot be accepted, "" when it can.
func objection(r jig.DecisionRequest, s subject) string {
	d := r.Decision
	switch {
	case r.Refusal != "":
		return r.Refusal
	case s.call == nil:
		return fmt.Sprintf("there is no call %q in this session", d.Call)
	case d.Answer != jig.AnswerApprove && d.Answer != jig.AnswerDeny:
		return fmt.Sprintf("%q is not an answer: approve or deny", d.Answer)
	case s.call.status() == jig.CallUnknown:
		return "the call waits for a word on its unknown outcome, not for an approval: answer with reconcile"
	case s.call.status() != jig.CallWaiting || s.approval == nil:
		return fmt.Sprintf("the call does not wait for a decision: it is %s", s.call.Status)
	case jig.PendingKind(s.approval.Kind) != jig.PendingApproval:
		return fmt.Sprintf("the call waits for a %s, not for an approval", s.approval.Kind)
	case s.approval.ExpiresAt != nil && !r.Now.Before(*s.approval.ExpiresAt):
		return "the approval expired at " + s.approval.ExpiresAt.UTC().Format(time.RFC3339)
	case d.Digest != "" && d.Digest != s.approval.Digest:
		return "the digest does not match what is waiting: look at the call again"
	case s.approval.Digest != s.call.Digest:
		return "the call changed since it was shown"
	case d.Answer == jig.AnswerApprove && len(d.Input) > 0 && r.Edited == nil:
		return "the changed input was not checked"
	case r.Edited != nil && (r.Edited.Verdict == jig.VerdictDeny || r.Edited.Verdict == jig.VerdictRefuse):
		return "the changed input is not allowed"
	}
	return ""
}

// approve lets the call run as it was shown, or as the decision edited it.
func (t *tx) approve(r jig.DecisionRequest, s subject, l *log) (jig.Ruled, error) {
	d, digest := r.Decision, s.call.Digest
	what := details{"by": d.By, "claimed": r.Principal.Claimed, "note": d.Note, "digest": digest}
	var before, after []byte
	if r.Edited == nil {
		t.queue("CallSet", t.tenant, s.session, s.call.CallID, jig.CallReserved, nil, "", nil, "")
	} else {
		e := r.Edited
		before, after, digest = nonNil(s.call.Input), nonNil(e.Input), e.Digest
		reasons, err := encodeReasons(e.Reasons)
		if err != nil {
			return jig.Ruled{}, err
		}
		t.queue("CallEdit", t.tenant, s.session, s.call.CallID, e.Input, digest, e.Version, e.PolicyVersion,
			optional([]byte(reasons)), e.Signature, text(e.ConcurrencyKey))
		shownBefore, _ := preview(before)
		shownAfter, _ := preview(after)
		what["edited"] = details{"before": shownBefore, "after": shownAfter, "digest": digest}
	}
	t.queue("ApprovalDecide", t.tenant, s.approval.ID, jig.ApprovalApproved, jig.AnswerApprove, text(d.By), r.Principal.Claimed, text(d.Note),
		"", r.Key, digest, before, after)
	l.of(s.call, jig.EventToolApproved, what)
	return jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: jig.CallReserved}, nil
}

// deny ends the call with the reason as its result.
func (t *tx) deny(r jig.DecisionRequest, s subject, l *log) (jig.Ruled, error) {
	d := r.Decision
	message := d.Reason
	if message == "" {
		message = "a person denied the call"
	}
	result := jig.Failure(&jig.Error{Code: jig.CodeDenied, Message: message})
	columns, err := columnsOf(result)
	if err != nil {
		return jig.Ruled{}, err
	}
	t.queue("CallSet", t.tenant, s.session, s.call.CallID, jig.CallDenied, columns.body, columns.summary, columns.err, "")
	t.queue("ApprovalDecide", t.tenant, s.approval.ID, jig.ApprovalDenied, jig.AnswerDeny, text(d.By), r.Principal.Claimed, text(d.Note),
		text(d.Reason), r.Key, "", nil, nil)
	l.of(s.call, jig.EventToolDenied, details{
		"by": d.By, "claimed": r.Principal.Claimed, "note": d.Note, "reason": d.Reason, "digest": s.approval.Digest,
		"summary": result.Summary, "error": result.Error,
	})
	return jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: jig.CallDenied}, nil
}
