package approval

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/stored"
)

// DecisionRequest is a [jig.Decision] with the values that the activity computes because the store cannot.
type DecisionRequest struct {
	Tenant    string
	SessionID string
	// Key identifies the signal or update. It is the same each time that signal or update is processed, so that it takes effect once.
	Key string
	// Principal is the principal who decides, with the groups and permissions from the tenant's settings. Claimed is set if the identity was
	// not proved.
	Principal jig.Principal
	// Evidence is the proof of the principal; nil if there is none.
	Evidence *identity.Evidence
	// Voters says which earlier votes and delegations count.
	Voters
	Decision jig.Decision
	// Signed is the decision with the token that proves it; nil if there is none.
	Signed *Signed
	// Edited is the call as it would run with the decision's input: canonical and validated, with a new digest and ruling. Fresh is the same
	// call as people see it. Both are nil when the decision does not edit.
	Edited *jig.Call
	Fresh  *jig.Pending
	// EditedFrom is the digest of the call from which Edited and Patch were computed. If the call has another digest when the decision is
	// applied, nothing is decided and the error is a CONFLICT with [ReasonInputChanged]; the caller must compute them again.
	EditedFrom string
	// Patch is the change that the edit makes, as JSON Patch (RFC 6902).
	Patch json.RawMessage
	// Grant is the standing approval to create with the decision, already checked against the tenant's ceiling; nil for none.
	Grant *jig.Grant
	// Standing is the standing approval that approves the call in place of the person's own vote, already checked for the call; nil for none.
	Standing *Standing
	// Refusal, when set, is recorded as decision.refused without further checks: the payload could not be read, an edit does not fit the
	// schema, or the token does not prove the decision. It may be a template. Unentitled reports that it is about who sent the decision.
	Refusal    string
	Unentitled bool
	Now        time.Time
}

// Standing is a grant that approves a waiting call, with the people who gave it as the tenant knows them now.
type Standing struct {
	Grant  jig.Grant
	People []jig.Principal
}

// ReasonInputChanged says that somebody else changed a call's input while an edit was being prepared.
const ReasonInputChanged = "input_changed"

// ReconcileRequest is a [jig.Reconciliation] with the values that the activity adds; see [DecisionRequest] for the fields they share.
type ReconcileRequest struct {
	Tenant         string
	SessionID      string
	Key            string
	Principal      jig.Principal
	Evidence       *identity.Evidence
	Reconciliation jig.Reconciliation
	// Reconcilers are the people who may reconcile; nil means those who could have approved the call.
	Reconcilers *jig.Approvers
	Voters
	Refusal    string
	Unentitled bool
	Now        time.Time
}

// ReplyRequest is a [jig.Reply] with the values that the activity adds; see [DecisionRequest] for the fields they share. The answer has
// already been validated against the question's schema.
type ReplyRequest struct {
	Tenant    string
	SessionID string
	Key       string
	Principal jig.Principal
	Evidence  *identity.Evidence
	Reply     jig.Reply
	// Digest is the digest of the question against which the value was validated.
	Digest string
	Voters
	Refusal    string
	Unentitled bool
	Now        time.Time
}

// Applied is the result of a request about a call.
type Applied struct {
	jig.Ruled
	// Call is the call after the request. It is nil if the session has no such call.
	Call *jig.Call
	// Renewed reports that the request was refused because the call had changed since it was shown, and that people are asked about the call as
	// it is now.
	Renewed bool
}

// CheckDecision returns why the form of a decision is wrong, or "" when it is right.
func CheckDecision(d jig.Decision) string {
	switch {
	case d.Call == "":
		return "`call` is missing: name the call to decide, e.g. 3.2"
	case d.Answer != jig.AnswerApprove && d.Answer != jig.AnswerDeny && d.Answer != jig.AnswerDelegate:
		return fmt.Sprintf("%q is not an answer; use approve, deny or delegate", d.Answer)
	case d.Answer != jig.AnswerApprove && len(d.Input) > 0:
		return "`input` is allowed only with approve"
	case d.Answer != jig.AnswerApprove && d.Grant != nil:
		return "`grant` is allowed only with approve"
	case d.Answer != jig.AnswerApprove && d.GrantID != "":
		return "`grant_id` is allowed only with approve"
	case d.GrantID != "" && (d.Grant != nil || len(d.Input) > 0):
		return "`grant_id` approves the call as it is: leave out `grant` and `input`"
	case d.Answer != jig.AnswerDelegate && d.To != "":
		return "`to` is allowed only with delegate"
	case d.Answer != jig.AnswerDelegate && d.Undo:
		return "`undo` is allowed only with delegate"
	case d.Undo && d.To != "":
		return "`undo` takes a delegation back: leave out `to`"
	}
	return ""
}

// CheckReply returns why the form of an answer is wrong, or "" when it is right. Whether the value fits the question is not checked.
func CheckReply(r jig.Reply) string {
	switch {
	case r.Call == "":
		return "`call` is missing: name the call of the question, e.g. 3.2"
	case len(r.Value) == 0:
		return "`value` is missing: give the answer"
	case len(r.Value) > jig.InlineBytes:
		return fmt.Sprintf("`value` has %d bytes; at most %d are allowed", len(r.Value), jig.InlineBytes)
	}
	return ""
}

// CheckReconciliation returns why the form of a statement about an unknown outcome is wrong, or "" when it is right.
func CheckReconciliation(r jig.Reconciliation) string {
	switch {
	case r.Call == "":
		return "`call` is missing: name the call, e.g. 3.2"
	case r.Outcome != jig.OutcomeHappened && r.Outcome != jig.OutcomeNotHappened && r.Outcome != jig.OutcomeGiveUp:
		return fmt.Sprintf("%q is not an outcome; use happened, not_happened or give_up", r.Outcome)
	case r.Attempt < 0:
		return fmt.Sprintf("`attempt` is %d: give the number of the attempt in doubt, 1 or more", r.Attempt)
	}
	return ""
}

// Opening is an approval or a question that opens, with its events and its notices.
type Opening struct {
	Pending jig.Pending
	Events  []Event
	Notices []jig.Notice
}

// Opened returns the events and the notices of an approval or a question that opens. An approval that a grant gives is granted from the
// beginning, so it has another event and nobody is notified.
func Opened(c Call, p jig.Pending) Opening {
	if p.Grant != "" {
		return Opening{Pending: p, Events: []Event{c.Event(jig.EventToolApproved, Details{"grant": p.Grant, "digest": p.Digest})}}
	}
	kind := jig.EventToolNeedsApproval
	if p.Kind == jig.PendingQuestion {
		kind = jig.EventToolAsked
	}
	e := c.Event(kind, nil)
	e.Asked = &p
	o := Opening{Pending: p, Events: []Event{e}, Notices: []jig.Notice{requested(p)}}
	events, notices := c.escalated(jig.Pending{}, p)
	o.Events, o.Notices = append(o.Events, events...), append(o.Notices, notices...)
	return o
}

// OfDoubtful returns an approval of a call whose earlier attempt may have taken effect. Like a question about an unknown outcome, it
// never expires.
func OfDoubtful(p jig.Pending) jig.Pending {
	p.ExpiresAt, p.NextAt = time.Time{}, time.Time{}
	p.Reasons = append(slices.Clone(p.Reasons), "an earlier attempt began and never reported how it ended; "+
		"repeating it is safe, because the tool is idempotent")
	return p
}

// InDoubt returns the question to a person about a call whose outcome becomes unknown. It never expires. failure is the error of the
// attempt; nil if there is none.
func InDoubt(tenant, session string, c Call, why string, failure *jig.Error, now time.Time) Opening {
	input, truncated := stored.PreviewInput(c.Input)
	p := jig.Pending{
		Tenant: tenant, SessionID: session, Kind: jig.PendingReconcile, Call: c.ID, Tool: c.Tool, Input: input, Truncated: truncated,
		Digest: c.Digest, RequestedAt: now.UTC(), Reasons: []string{why}, Attempt: c.Fence,
		Summary: fmt.Sprintf("%s %s and it is not known whether it took effect", c.Tool, c.began()),
	}
	what := Details{"attempt": c.Fence, "reason": why, "pending": p}
	if failure != nil {
		what["error"] = failure
	}
	return Opening{Pending: p, Events: []Event{c.Event(jig.EventToolOutcomeUnknown, what)}, Notices: []jig.Notice{requested(p)}}
}

// escalated returns the events and the notices of the escalations that count early in an approval and did not before.
func (c Call) escalated(before, after jig.Pending) (events []Event, notices []jig.Notice) {
	for i, r := range demands(termsOf(after)) {
		for k, e := range r.Escalate {
			was := demands(termsOf(before))
			if e.Reason == "" || i < len(was) && k < len(was[i].Escalate) && was[i].Escalate[k].Reason != "" {
				continue
			}
			events = append(events, c.Event(jig.EventApprovalEscalated, Details{
				"digest": after.Digest, "reason": e.Reason, "missing": ConsentOf(after).Missing(), "approvers": e.Approvers,
			}))
			n := jig.Notice{Kind: jig.NoticeEscalated, Approval: after, Approvers: &e.Approvers, Reason: e.Reason}
			n.ID = noticeID(after.SessionID, after.Call, n.Kind, fmt.Sprint(after.Digest, after.RequestedAt.UTC().Format(time.RFC3339Nano), i, k))
			notices = append(notices, n)
		}
	}
	return events, notices
}

// began returns words for whether a call whose effect is uncertain is known to have begun.
func (c Call) began() string {
	if c.Status == jig.CallExecuting {
		return "began"
	}
	return "may have run"
}

// Event returns an event of the call. Its details get the call's provider id, if it has one.
func (c Call) Event(kind jig.EventType, data Details) Event {
	if c.ProviderID != "" && data != nil {
		data["provider_id"] = c.ProviderID
	}
	return Event{Type: kind, Pass: c.Pass, CallID: c.ID, Tool: c.Tool, Data: data}
}
