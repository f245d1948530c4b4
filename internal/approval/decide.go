package approval

import (
	"fmt"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/stored"
)

// Refusals that several kinds of requests share.
const (
	// RefusedToken also applies to requests that concern no call.
	RefusedToken  = "the token was used already: a token is valid only once, so sign again"
	refusedShared = "the call retries an earlier one with the same idempotency key, which belongs to exactly one input: " +
		"its input cannot be changed; deny the call instead"
)

// Decide applies a decision: it approves, denies or delegates the open approval of a call, or approves the call with changed input. The
// decision is accepted if the call waits for it and has not changed since the person saw it, the token is unused, and the person is entitled
// to decide. Otherwise the transition is a refusal that says why.
//
// The error is a CONFLICT with [ReasonInputChanged] if the changed input was computed from an input that has been replaced since.
func Decide(s State, r DecisionRequest) (Transition, error) {
	d, code, why := weigh(s, r)
	if why != "" {
		about := by(r.Principal, r.Evidence)
		about["answer"] = string(r.Decision.Answer)
		return s.refuse(code, r.Decision.Call, why, about, audit.By(r.Principal, r.Evidence, r.Decision.Note)), nil
	}
	if r.Edited != nil && r.EditedFrom != s.Call.Digest {
		return Transition{}, jig.Errorf(jig.CodeConflict, "the input of call %s was changed in the meantime", s.Call.ID).WithReason(ReasonInputChanged)
	}
	return d.apply(), nil
}

// apply carries a decision out.
func (d decision) apply() Transition {
	switch d.Decision.Answer {
	case jig.AnswerDeny:
		return d.deny()
	case jig.AnswerDelegate:
		if d.Decision.Undo {
			return d.independent(d.takeBack())
		}
		return d.independent(d.delegate())
	case jig.AnswerApprove, jig.AnswerExpire:
	}
	if d.Edited == nil {
		return d.independent(d.vote())
	}
	return d.edit()
}

// independent makes sure that others can still approve a call that waits after a decision; see [Voters.Independent]. It refuses the decision if
// they cannot.
func (d decision) independent(t Transition) Transition {
	if t.Refused() || t.Ruled.Status != jig.CallWaiting {
		return t
	}
	after := d.asked
	if t.Votes != nil {
		after.Votes = t.Votes
	}
	if t.Delegations != nil {
		after.Delegations = t.Delegations
	}
	wider, none := d.Independent(after, d.Now)
	if none != nil {
		return d.refuse(jig.CodeConflict, d.Call.ID, "afterwards "+none.Message, d.details(), d.entry(audit.AuditRefused, ""))
	}
	t.widen(*d.Call, after, wider)
	return t
}

// decision is a request from somebody who is entitled to decide, with the state that it applies to.
type decision struct {
	State
	DecisionRequest
	// asked is the open approval, with only the votes and delegations that count.
	asked   jig.Pending
	consent Consent
	// counts holds the requirements that the decider's vote counts towards.
	counts []int
	// from is the delegate from whom the decider takes the decision back.
	from string
}

// weigh turns a request into a decision, or returns why it cannot be accepted, because of its content or because of who sent it, with the code of
// the refusal.
func weigh(s State, r DecisionRequest) (d decision, code jig.Code, why string) {
	if why = objection(s, r); why != "" {
		return d, s.refusedAs(r.Unentitled, r.Now), why
	}
	d = decision{State: s, DecisionRequest: r, asked: r.Counted(s.Open.Pending, r.Now)}
	if r.Decision.Undo {
		if d.asked, d.from, why = r.takenBack(d.asked); why != "" {
			return d, jig.CodeConflict, why
		}
	}
	d.consent = ConsentOf(d.asked)
	d.counts, why = d.consent.Entitled(r.Principal, r.Now)
	switch {
	case why != "":
		return d, jig.CodeNotPermitted, why
	case unmet(d.consent.Terms, r) != "":
		return d, jig.CodeNotPermitted, unmet(d.consent.Terms, r)
	case r.Decision.Answer != jig.AnswerDeny && d.consent.Voted(r.Principal):
		return d, jig.CodeConflict, r.Principal.ID + " approved this call already: another person is needed (" + d.consent.Missing() + ")"
	case r.Edited != nil && s.SharesKey:
		return d, jig.CodeConflict, refusedShared
	}
	return d, "", ""
}

// refusedAs returns the code of a refusal for other reasons than what the terms of the call say about its sender. unentitled reports that it is about
// the sender nevertheless.
func (s State) refusedAs(unentitled bool, now time.Time) jig.Code {
	switch {
	case unentitled:
		return jig.CodeNotPermitted
	case s.Call == nil:
		return jig.CodeNotFound
	case s.Call.Status == jig.CallExpired, s.Call.Status == jig.CallWaiting && s.Open != nil && expired(s.Open.Pending, now):
		return jig.CodeExpired
	}
	return jig.CodeConflict
}

// objection returns why a decision cannot be accepted, regardless of who sent it, or "" when there is no such reason.
func objection(s State, r DecisionRequest) string {
	d := r.Decision
	switch {
	case r.Refusal != "":
		return r.Refusal
	case s.Call == nil:
		return noCall(d.Call)
	case d.Answer != jig.AnswerApprove && d.Answer != jig.AnswerDeny && d.Answer != jig.AnswerDelegate:
		return jig.Templatef("%q is not an answer: approve, deny or delegate", d.Answer)
	case s.Call.Status == jig.CallUnknown:
		return "the outcome of the call is unknown, so it waits for reconcile, not for an approval"
	case s.Call.Status != jig.CallWaiting || s.Open == nil:
		return decidedAlready(s.Call.Status)
	case s.Open.Kind == jig.PendingQuestion && d.Answer == jig.AnswerApprove:
		return "the call is a question: reply with answer, or deny it"
	case expired(s.Open.Pending, r.Now):
		return "the approval expired at " + s.Open.ExpiresAt.Format(time.RFC3339)
	case d.Digest != "" && d.Digest != s.Open.Digest:
		return "the digest does not match what is waiting: look at the call again"
	case s.Open.Digest != s.Call.Digest:
		return "the call changed since it was shown"
	case d.Answer == jig.AnswerApprove && len(d.Input) > 0 && (r.Edited == nil || r.Fresh == nil):
		return "the changed input was not checked"
	case d.GrantID != "" && (r.Standing == nil || r.Standing.Grant.ID != d.GrantID):
		return "the standing approval was not checked"
	case r.Edited != nil && (r.Edited.Verdict == jig.VerdictDeny || r.Edited.Verdict == jig.VerdictRefuse):
		return "the changed input is not allowed"
	case r.Edited != nil && s.Call.InDoubt:
		return "an earlier attempt may have taken effect: the input cannot be changed any more"
	case s.TokenUsed:
		return RefusedToken
	}
	return ""
}

// decidedAlready says why nobody needs to decide about a call with this status.
func decidedAlready(status jig.CallStatus) string {
	words := map[jig.CallStatus]string{
		jig.CallReserved: "it is about to run", jig.CallExecuting: "it is running", jig.CallSucceeded: "it has succeeded", jig.CallFailed: "it has failed",
		jig.CallDenied: "it was denied", jig.CallExpired: "it has expired", jig.CallCanceled: "it was canceled",
	}[status]
	if words == "" {
		return fmt.Sprintf("nobody is asked about the call: its status is %s", status)
	}
	return "already decided: " + words
}

func noCall(id string) string { return jig.Templatef("there is no call %q in this session", id) }

// refuse returns a refusal: an event and an audit row that say why, and no other change. why may be a template; see [jig.Templatef].
func (s State) refuse(code jig.Code, callID, why string, about Details, entry audit.Entry) Transition {
	ruled := jig.Ruled{Call: callID, Outcome: jig.DecisionRefused, Code: code, Reason: jig.Text(why)}
	if ruled.Reason != why {
		ruled.Template, why = why, ruled.Reason
	}
	about["call"], about["reason"] = callID, why
	e := Event{Type: jig.EventDecisionRefused, CallID: callID, Data: about}
	entry.Kind, entry.SessionID, entry.Call, entry.Reason = audit.AuditRefused, s.SessionID, callID, why
	if s.Call != nil {
		ruled.Status = s.Call.Status
		e.Pass, e.Tool = s.Call.Pass, s.Call.Tool
		entry.Tool, entry.Status = s.Call.Tool, ruled.Status
	}
	if s.Open != nil {
		entry.Digest = s.Open.Digest
	}
	return Transition{Ruled: ruled, Events: []Event{e}, Audit: []audit.Entry{entry}}
}

// Refuse returns the refusal of a signal that names no call.
func Refuse(s State, why string, about Details) Transition {
	return s.refuse("", "", why, about, audit.Entry{})
}

// accepted returns the answer to a decision that was accepted.
func (s State) accepted(status jig.CallStatus) jig.Ruled {
	return jig.Ruled{Call: s.Call.ID, Outcome: jig.DecisionAccepted, Status: status}
}

// by returns the data of an event that says who acted, with what proof.
func by(p jig.Principal, evidence *identity.Evidence) Details {
	what := Details{"by": p.ID, "claimed": p.Claimed}
	if key := evidence.KeyID(); key != "" {
		what["key"] = key
	}
	if p.Proof != "" {
		what["proof"] = p.Proof
	}
	return what
}

func (d decision) ballot() jig.Vote {
	return jig.Vote{
		By: d.Principal.ID, Maker: d.Principal.Maker, Claimed: d.Principal.Claimed, Proof: d.Principal.Proof, Key: d.Evidence.KeyID(), Counts: d.counts,
		At: d.Now.UTC(), Note: stored.Clean(d.Decision.Note),
	}
}

func (d decision) details() Details {
	what := by(d.Principal, d.Evidence)
	what["note"] = d.Decision.Note
	return what
}

// outcome returns how the decider's answer ends the open approval.
func (d decision) outcome(status Status, answer jig.Answer) *Outcome {
	return &Outcome{
		Status: status, Answer: string(answer), By: d.Principal.ID, Claimed: d.Principal.Claimed, Note: d.Decision.Note, Key: d.Key,
	}
}

// entry returns the audit row of the decision.
func (d decision) entry(kind audit.Kind, status jig.CallStatus) audit.Entry {
	e := d.Entry(kind, d.Principal, d.Evidence)
	e.Note, e.Status = d.Decision.Note, status
	return e
}

// vote counts a person's approval. When it is the last one needed, the call may run as it was shown.
func (d decision) vote() Transition {
	what := d.details()
	what["digest"] = d.Call.Digest
	grant := d.Decision.GrantID
	if grant != "" {
		what["grant"] = grant
	}
	votes := d.votes()
	if votes == nil {
		why := jig.Templatef("the standing approval %s does not suffice for this call: so far %s", grant, jig.Known(d.consent.Missing()))
		return d.refuse(jig.CodeConflict, d.Call.ID, why, what, d.entry(audit.AuditRefused, ""))
	}
	d.consent.Votes = votes
	if missing := d.consent.Missing(); missing != "" {
		return d.voted(missing, what)
	}
	t := Transition{Ruled: d.accepted(jig.CallReserved), Call: &CallChange{Status: jig.CallReserved}}
	t.Outcome = d.outcome(Approved, jig.AnswerApprove)
	t.Outcome.Digest, t.Outcome.Votes, t.Outcome.Grant = d.Call.Digest, d.consent.Votes, grant
	t.Ruled.Grant = grant
	if len(d.consent.Votes) > 1 {
		what["votes"] = d.consent.Votes
	}
	t.Events = append(t.Events, d.Call.Event(jig.EventToolApproved, what))
	entry := d.entry(audit.AuditApproved, jig.CallReserved)
	entry.ApprovedDigest, entry.Subject = d.Call.Digest, grant
	t.Audit = append(t.Audit, entry)
	d.decided(&t)
	d.give(&t)
	return t
}

// votes returns all votes, with the decider's own or, if the decision names a standing approval, with those of the people who gave it. It
// returns nil if the standing approval does not suffice.
func (d decision) votes() []jig.Vote {
	if d.Standing != nil {
		return VotesOf(d.Standing.Grant, d.Standing.People, d.asked, d.Proof, d.Now)
	}
	return append(slices.Clone(d.consent.Votes), d.ballot())
}

// voted keeps the approval open after a vote, because others must approve too. A grant cannot come with such a vote: those who have not
// approved yet have not agreed to it.
func (d decision) voted(missing string, what Details) Transition {
	if d.Grant != nil {
		why := "a grant can come only with the last approval that the call needs: so far " + missing
		return d.refuse(jig.CodeConflict, d.Call.ID, why, what, d.entry(audit.AuditRefused, ""))
	}
	what["missing"] = missing
	entry := d.entry(audit.AuditVoted, jig.CallWaiting)
	entry.Reason = missing
	t := Transition{Ruled: d.accepted(jig.CallWaiting), Votes: d.consent.Votes, Audit: []audit.Entry{entry}}
	t.Ruled.Reason = missing
	t.Events = []Event{d.Call.Event(jig.EventApprovalVoted, what)}
	return t
}

// decided adds the notice that tells others how an approval was decided.
func (d decision) decided(t *Transition) {
	n := d.Notice(jig.NoticeDecided, d.asked, d.Key)
	n.Status, n.By, n.Proof, n.Key, n.Reason = t.Ruled.Status, d.Principal.ID, d.Principal.Proof, d.Evidence.KeyID(), d.Decision.Reason
	t.Notices = append(t.Notices, n)
}

// give adds the grant that comes with an approval. It names only the person who gives it: earlier voters approved the call that they saw
// and nothing more.
func (d decision) give(t *Transition) {
	if d.Grant == nil {
		return
	}
	g := *d.Grant
	g.By, g.Claimed, g.Proof = []string{d.Principal.ID}, d.Principal.Claimed, d.Principal.Proof
	g.Makers = MakersOf([]jig.Vote{d.ballot()})
	g.SessionID, g.Call = d.State.SessionID, d.Call.ID
	t.Grant, t.Ruled.Grant = &g, g.ID
	t.Events = append(t.Events, d.Call.Event(jig.EventGrantCreated, Details{
		"grant": g.ID, "by": g.By, "agent": g.Agent, "when": g.When, "max_uses": g.MaxUses, "expires_at": g.ExpiresAt.UTC().Format(time.RFC3339),
	}))
	t.Audit = append(t.Audit, GrantEntry(g, d.Principal, d.Evidence))
}

// deny ends the call with the reason as its result. If an earlier attempt may have taken effect, the call becomes unknown instead,
// because no further attempt will settle it.
func (d decision) deny() Transition {
	message := d.Decision.Reason
	if message == "" {
		message = "a person denied the call"
	}
	result := jig.Failure(&jig.Error{Code: jig.CodeDenied, Message: message})
	t := Transition{Ruled: d.accepted(jig.CallDenied), Outcome: d.outcome(Denied, jig.AnswerDeny)}
	t.Outcome.Reason = d.Decision.Reason
	t.Call = &CallChange{Status: jig.CallDenied, Result: &result}
	switch {
	case d.Call.InDoubt:
		t.Ruled.Status = jig.CallUnknown
		t.Call = &CallChange{Status: jig.CallUnknown}
	case d.Decision.Reason != "": // the model reads it
		t.Said = said(d.Principal, jig.AskedReview)
		t.Call.Reads.Untrusted = d.Principal.ID != d.asked.RequestedBy
	}
	what := d.details()
	what["reason"], what["digest"], what["summary"], what["error"] = d.Decision.Reason, d.Open.Digest, result.Summary, result.Error
	t.Events = append(t.Events, d.Call.Event(jig.EventToolDenied, what))
	entry := d.entry(audit.AuditDenied, t.Ruled.Status)
	entry.Reason = d.Decision.Reason
	t.Audit = append(t.Audit, entry)
	d.decided(&t)
	if t.Ruled.Status == jig.CallUnknown {
		t.ask(InDoubt(d.State.Tenant, d.State.SessionID, *d.Call, "another attempt was denied, and an earlier one may have taken effect", nil, d.Now))
	}
	return t
}
