package approval

import (
	"fmt"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/stored"
)

// Opening is an approval or a question that opens, with its event and its notices.
type Opening struct {
	Pending jig.Pending
	Event   Event
	Notices []jig.Notice
}

// Opened returns the event and the notice of an approval or a question that opens. An approval that a grant gives is granted from the
// beginning, so it has another event and nobody is notified.
func Opened(c Call, p jig.Pending) Opening {
	if p.Grant != "" {
		return Opening{Pending: p, Event: c.Event(jig.EventToolApproved, Details{"grant": p.Grant, "digest": p.Digest})}
	}
	kind := jig.EventToolNeedsApproval
	if p.Kind == jig.PendingQuestion {
		kind = jig.EventToolAsked
	}
	e := c.Event(kind, nil)
	e.Asked = &p
	return Opening{Pending: p, Event: e, Notices: []jig.Notice{requested(p)}}
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
	return Opening{Pending: p, Event: c.Event(jig.EventToolOutcomeUnknown, what), Notices: []jig.Notice{requested(p)}}
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
