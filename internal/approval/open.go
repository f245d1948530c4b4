package approval

import (
	"fmt"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/stored"
)

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
