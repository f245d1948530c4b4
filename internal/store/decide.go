package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
)

// subject holds the rows that a decision concerns, read under lock. call is nil when the session has no such call; approval is nil when
// none is open.
type subject struct {
	session  string
	key      string
	call     *callRow
	approval *approvalRow
	// reused reports that the token sent with the decision has been used before.
	reused bool
}

// ruling locks the subject of a decision and passes it to rule. If the key was answered before, the stored answer is returned
// instead. rule queues its changes; ruling adds the answer under the key and commits. A token sent with the decision is used up only
// when the decision is accepted. A refused decision is recorded and changes nothing else.
func (db *DB) ruling(
	ctx context.Context, tenant, session, key, callID string, evidence *identity.Evidence,
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
		var use *tokenUse
		value(t.queue("SessionStatus", tenant, session), &status)
		first(t.queue("CallLock", tenant, session, callID), &s.call)
		first(t.queue("ApprovalOpenLock", tenant, session, callID), &s.approval)
		column(t.queue("DecisionGet", tenant, session, key), &before) // after the lock, so that it sees what the lock waited for
		t.usedToken(evidence, &use)
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
		s.reused = use != nil
		l := &log{}
		ruled, err := rule(t, s, l)
		if err != nil {
			return err
		}
		answer = ruled
		if ruled.Outcome == jig.DecisionRefused && s.call == nil {
			kept, err := t.countRefused(ctx, s, l)
			if err != nil || !kept {
				return err
			}
		}
		if stored, err = encode(ruled); err != nil {
			return err
		}
		if ruled.Outcome == jig.DecisionAccepted {
			t.useToken(evidence, true)
		}
		t.queue("DecisionInsert", tenant, session, key, stored)
		return t.finish(ctx, l, session)
	})
	return answer, err
}

// MaxRefusedSignals is how many signals that name no call of the session are recorded, each with an event and an audit row. Further
// ones are only counted, because anybody who can reach Temporal can send them without end.
const MaxRefusedSignals = 100

// countRefused counts a signal that names no call, and reports whether the signal must be recorded itself. Beyond the limit, it records
// one event with the total for the first such signal and at every power of ten.
func (t *tx) countRefused(ctx context.Context, s subject, l *log) (kept bool, err error) {
	var count *int64
	value(t.queue("SessionCountRefused", t.tenant, s.session), &count)
	if err := t.flush(ctx); err != nil {
		return false, err
	}
	if count == nil || *count <= MaxRefusedSignals {
		return true, nil
	}
	if *count > MaxRefusedSignals+1 && !powerOfTen(*count) {
		return false, t.commit(ctx)
	}
	*l = log{}
	why := fmt.Sprintf("%d signals named no call of this session; after the first %d they are counted, not recorded", *count, MaxRefusedSignals)
	s.refused(l, "", why, details{"refused": *count}, audit.Entry{})
	return false, t.finish(ctx, l, s.session)
}

func powerOfTen(n int64) bool {
	for n > 1 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}

// refused records a refusal and changes nothing else.
func (s subject) refused(l *log, callID, why string, d details, entry audit.Entry) jig.Ruled {
	ruled := jig.Ruled{Call: callID, Outcome: jig.DecisionRefused, Reason: why}
	d["call"], d["reason"] = callID, why
	e := jig.Event{Type: jig.EventDecisionRefused, CallID: callID}
	entry.Kind, entry.SessionID, entry.Call, entry.Reason = audit.AuditRefused, s.session, callID, why
	if s.call != nil {
		ruled.Status = s.call.status()
		e.Pass, e.Tool = s.call.Pass, s.call.Tool
		entry.Tool, entry.Status = s.call.Tool, ruled.Status
	}
	if s.approval != nil {
		entry.Digest = s.approval.Digest
	}
	e.Data = d.json()
	l.add(e)
	l.audits = append(l.audits, entry)
	return ruled
}

// entry starts the audit row for an action on the subject.
func (s subject) entry(kind audit.Kind, who jig.Principal, evidence *identity.Evidence) audit.Entry {
	e := audit.Entry{
		Kind: kind, By: who.ID, Claimed: who.Claimed, Evidence: evidence, SessionID: s.session, Call: s.call.CallID, Tool: s.call.Tool,
		PolicyVersion: s.call.PolicyVersion, Digest: s.call.Digest,
	}
	if s.approval != nil {
		e.Digest, e.Shown = s.approval.Digest, s.approval.shown()
	}
	return e
}

// notice returns a notice about the subject's approval.
func (s subject) notice(kind approval.NoticeKind, p jig.Pending, unique string) approval.Notice {
	return approval.Notice{ID: noticeID(s.session, s.call.CallID, kind, unique), Kind: kind, Approval: p}
}

// Decide applies a decision: one compare-and-set on the approval's row, with its events, its audit row and its notice. It is
// idempotent by Key. A refused decision is recorded (a decision.refused event, an audit row and the answer under its key; see also
// [MaxRefusedSignals]) and changes nothing else.
func (db *DB) Decide(ctx context.Context, r approval.DecisionRequest) (jig.Ruled, error) {
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	d := r.Decision
	return db.ruling(ctx, r.Tenant, r.SessionID, r.Key, d.Call, r.Evidence, func(t *tx, s subject, l *log) (jig.Ruled, error) {
		deciding, why, err := weigh(r, s)
		if err == nil && why == "" && r.Edited != nil {
			why, err = t.mayEdit(ctx, s.call)
		}
		switch {
		case err != nil:
			return jig.Ruled{}, err
		case why != "":
			about := details{"by": r.Principal.ID, "claimed": r.Principal.Claimed, "answer": string(d.Answer)}
			return s.refused(l, d.Call, why, about, entryOf(r.Principal, r.Evidence, d.Note)), nil
		}
		return t.decide(deciding, l)
	})
}

// weigh turns a request into a decision, or returns why it cannot be accepted: because of its content or because of who sent it.
func weigh(r approval.DecisionRequest, s subject) (d decision, why string, err error) {
	if why = objection(r, s); why != "" {
		return d, why, nil
	}
	d = decision{DecisionRequest: r, subject: s}
	if d.pending, err = s.approval.pending(); err != nil {
		return d, "", err
	}
	if r.ProofWanted {
		d.pending = approval.Proved(d.pending)
	}
	d.consent = approval.ConsentOf(d.pending)
	d.counts, why = d.consent.Entitled(r.Principal, r.Now)
	if why == "" && r.Decision.Answer != jig.AnswerDeny && d.consent.Voted(r.Principal.ID) {
		why = r.Principal.ID + " approved this call already: another person is needed (" + d.consent.Missing() + ")"
	}
	return d, why, nil
}

// decide carries out a decision that weigh accepted. Details of the answer can still lead to a refusal.
func (t *tx) decide(d decision, l *log) (jig.Ruled, error) {
	switch d.Decision.Answer {
	case jig.AnswerDeny:
		return t.deny(d, l)
	case jig.AnswerDelegate:
		return t.delegate(d, l)
	case jig.AnswerApprove, jig.AnswerExpire:
	}
	if d.Edited == nil {
		return t.vote(d, l)
	}
	if d.EditedFrom != d.subject.call.Digest {
		return jig.Ruled{}, jig.Errorf(jig.CodeConflict, "the input of call %s was changed meanwhile", d.subject.call.CallID).
			WithReason(approval.ReasonInputChanged)
	}
	return t.edit(d, l)
}

// entryOf starts the audit row for a decision that somebody attempted.
func entryOf(who jig.Principal, evidence *identity.Evidence, note string) audit.Entry {
	return audit.Entry{By: who.ID, Claimed: who.Claimed, Evidence: evidence, Note: note}
}

// decision is a request from somebody who is entitled to decide, with its subject.
type decision struct {
	approval.DecisionRequest
	subject subject
	pending jig.Pending
	consent approval.Consent
	// counts holds the requirements that the decider's vote counts towards.
	counts []int
}

func (d decision) vote() jig.Vote {
	return jig.Vote{By: d.Principal.ID, Claimed: d.Principal.Claimed, Counts: d.counts, At: d.Now.UTC(), Note: text(d.Decision.Note)}
}

func (d decision) details() details {
	return details{"by": d.Principal.ID, "claimed": d.Principal.Claimed, "note": d.Decision.Note}
}

// objection returns why a decision cannot be accepted, regardless of who sent it, or "" when there is no such reason.
func objection(r approval.DecisionRequest, s subject) string {
	d := r.Decision
	switch {
	case r.Refusal != "":
		return r.Refusal
	case s.call == nil:
		return fmt.Sprintf("there is no call %q in this session", d.Call)
	case d.Answer != jig.AnswerApprove && d.Answer != jig.AnswerDeny && d.Answer != jig.AnswerDelegate:
		return fmt.Sprintf("%q is not an answer: approve, deny or delegate", d.Answer)
	case s.call.status() == jig.CallUnknown:
		return "the call waits for a word on its unknown outcome, not for an approval: answer with reconcile"
	case s.call.status() != jig.CallWaiting || s.approval == nil:
		return fmt.Sprintf("the call does not wait for a decision: it is %s", s.call.Status)
	case jig.PendingKind(s.approval.Kind) == jig.PendingQuestion && d.Answer == jig.AnswerApprove:
		return "the call is a question: reply with answer, or deny it"
	case s.approval.ExpiresAt != nil && !r.Now.Before(*s.approval.ExpiresAt):
		return "the approval expired at " + s.approval.ExpiresAt.UTC().Format(time.RFC3339)
	case d.Digest != "" && d.Digest != s.approval.Digest:
		return "the digest does not match what is waiting: look at the call again"
	case s.approval.Digest != s.call.Digest:
		return "the call changed since it was shown"
	case d.Answer == jig.AnswerApprove && len(d.Input) > 0 && (r.Edited == nil || r.Fresh == nil):
		return "the changed input was not checked"
	case r.Edited != nil && (r.Edited.Verdict == jig.VerdictDeny || r.Edited.Verdict == jig.VerdictRefuse):
		return "the changed input is not allowed"
	case r.Edited != nil && s.call.InDoubt:
		return "an earlier attempt may have taken effect: the input cannot be changed any more"
	case s.reused:
		return tokenUsed
	}
	return ""
}

// vote counts a person's approval. When it is the last one needed, the call may run as it was shown.
func (t *tx) vote(d decision, l *log) (jig.Ruled, error) {
	s := d.subject
	d.consent.Votes = append(slices.Clone(d.consent.Votes), d.vote())
	votes, err := encode(d.consent.Votes)
	if err != nil {
		return jig.Ruled{}, err
	}
	what := d.details()
	what["digest"] = s.call.Digest
	entry := s.entry(audit.AuditApproved, d.Principal, d.Evidence)
	entry.Note = d.Decision.Note
	if missing := d.consent.Missing(); missing != "" {
		if d.Grant != nil {
			return s.refused(l, s.call.CallID, "a grant goes with the approval that lets the call run: so far "+missing, what, entry), nil
		}
		t.queue("ApprovalVote", t.tenant, s.approval.ID, votes)
		what["missing"] = missing
		l.of(s.call, jig.EventApprovalVoted, what)
		entry.Kind, entry.Status, entry.Reason = audit.AuditVoted, jig.CallWaiting, missing
		l.audits = append(l.audits, entry)
		return jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: jig.CallWaiting, Reason: missing}, nil
	}
	t.queue("CallSet", t.tenant, s.session, s.call.CallID, jig.CallReserved, nil, "", nil, "")
	t.queue("ApprovalDecide", t.tenant, s.approval.ID, approval.Approved, jig.AnswerApprove, text(d.Principal.ID), d.Principal.Claimed,
		text(d.Decision.Note), "", d.Key, s.call.Digest, nil, nil, nil, votes)
	if len(d.consent.Votes) > 1 {
		what["votes"] = d.consent.Votes
	}
	l.of(s.call, jig.EventToolApproved, what)
	entry.Status, entry.ApprovedDigest = jig.CallReserved, s.call.Digest
	l.audits = append(l.audits, entry)
	ruled := jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: jig.CallReserved}
	t.decided(d, l, ruled)
	t.grant(d, l, &ruled)
	return ruled, nil
}

// decided adds the notice that tells others how an approval was decided.
func (t *tx) decided(d decision, l *log, ruled jig.Ruled) {
	n := d.subject.notice(approval.NoticeDecided, d.pending, d.Key)
	n.Status, n.By, n.Reason = ruled.Status, d.Principal.ID, d.Decision.Reason
	l.notices = append(l.notices, n)
}

// grant stores the grant that comes with an approval. It names only the person who gives it: earlier voters approved the call that they
// saw and nothing more.
func (t *tx) grant(d decision, l *log, ruled *jig.Ruled) {
	if d.Grant == nil {
		return
	}
	g := *d.Grant
	g.By, g.Claimed = []string{d.Principal.ID}, d.Principal.Claimed
	g.SessionID, g.Call = d.subject.session, d.subject.call.CallID
	t.queue("GrantInsert", grantColumns(t.tenant, g)...)
	l.of(d.subject.call, jig.EventGrantCreated, details{
		"grant": g.ID, "by": g.By, "agent": g.Agent, "when": g.When, "max_uses": g.MaxUses, "expires_at": g.ExpiresAt.UTC().Format(time.RFC3339),
	})
	l.audits = append(l.audits, grantEntry(g, d.Principal, d.Evidence))
	ruled.Grant = g.ID
}

// delegate hands a person's right to decide to somebody else.
func (t *tx) delegate(d decision, l *log) (jig.Ruled, error) {
	s, to := d.subject, d.Decision.To
	what := d.details()
	what["to"] = to
	entry := s.entry(audit.AuditDelegated, d.Principal, d.Evidence)
	entry.Subject, entry.Note, entry.Status = to, d.Decision.Note, jig.CallWaiting
	if why := d.cannotDelegate(); why != "" {
		return s.refused(l, s.call.CallID, why, what, entry), nil
	}
	list := append(slices.Clone(d.consent.Delegations), jig.Delegation{From: d.Principal.ID, To: to, At: d.Now.UTC(), Claimed: d.Principal.Claimed, Counts: d.counts})
	delegations, err := encode(list)
	if err != nil {
		return jig.Ruled{}, err
	}
	t.queue("ApprovalDelegate", t.tenant, s.approval.ID, delegations)
	l.of(s.call, jig.EventApprovalDelegated, what)
	l.audits = append(l.audits, entry)
	n := s.notice(approval.NoticeDelegated, d.pending, d.Key)
	n.By, n.Approvers = d.Principal.ID, &jig.Approvers{People: []string{to}}
	l.notices = append(l.notices, n)
	return jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: jig.CallWaiting, Reason: "delegated to " + to}, nil
}

func (d decision) cannotDelegate() string {
	to := d.Decision.To
	switch {
	case to == "":
		return "`to` is missing: say to whom it is delegated"
	case to == d.Principal.ID:
		return "nobody delegates to themselves"
	case d.consent.Terms.NotRequester && to == d.consent.RequestedBy:
		return fmt.Sprintf("%s asked for this call and may not decide it", to)
	case d.consent.Voted(to):
		return fmt.Sprintf("%s approved this call already", to)
	case slices.ContainsFunc(d.consent.Delegations, func(one jig.Delegation) bool { return one.From == to }):
		return fmt.Sprintf("%s delegated this approval already", to)
	}
	return ""
}

// deny ends the call with the reason as its result. If an earlier attempt may have taken effect, the call becomes unknown instead,
// because no further attempt will settle it.
func (t *tx) deny(d decision, l *log) (jig.Ruled, error) {
	s := d.subject
	status := jig.CallDenied
	if s.call.InDoubt {
		status = jig.CallUnknown
	}
	message := d.Decision.Reason
	if message == "" {
		message = "a person denied the call"
	}
	result := jig.Failure(&jig.Error{Code: jig.CodeDenied, Message: message})
	columns, err := columnsOf(result)
	if err != nil {
		return jig.Ruled{}, err
	}
	t.queue("ApprovalDecide", t.tenant, s.approval.ID, approval.Denied, jig.AnswerDeny, text(d.Principal.ID), d.Principal.Claimed,
		text(d.Decision.Note), text(d.Decision.Reason), d.Key, "", nil, nil, nil, nil)
	what := d.details()
	what["reason"], what["digest"], what["summary"], what["error"] = d.Decision.Reason, s.approval.Digest, result.Summary, result.Error
	l.of(s.call, jig.EventToolDenied, what)
	entry := s.entry(audit.AuditDenied, d.Principal, d.Evidence)
	entry.Reason, entry.Note, entry.Status = d.Decision.Reason, d.Decision.Note, status
	l.audits = append(l.audits, entry)
	ruled := jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: status}
	t.decided(d, l, ruled)
	if status == jig.CallUnknown {
		_, err := t.unknown(s.call, l, "another attempt was denied, and an earlier one may have taken effect", nil)
		return ruled, err
	}
	t.queue("CallSet", t.tenant, s.session, s.call.CallID, status, columns.body, columns.summary, columns.err, "")
	return ruled, nil
}
