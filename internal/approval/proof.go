package approval

import (
	"fmt"
	"time"

	"github.com/jig-run/jig"
)

// Demands says how decisions must reach a tenant.
type Demands struct {
	// Proof demands a token with every decision.
	Proof bool
	// NoSignals refuses raw signals; decisions must be updates.
	NoSignals bool
}

// Sender describes who sent a decision, as the decision itself states it before its token is checked.
type Sender struct {
	// By is the principal that the decision names; Token proves who sent it. Both may be empty.
	By, Token string
	// Call is the call that the decision is about; empty when it names none.
	Call string
	// Signal reports that the decision came as a raw signal.
	Signal bool
}

// Refuse returns why a decision must be refused before its token is checked, or "". waits is true if the call waits for a person.
func (d Demands) Refuse(s Sender, waits bool) string {
	switch {
	case d.NoSignals && s.Signal:
		return "this tenant accepts no decisions by signal: decide with `jig` and a signing key"
	case s.Token == "" && d.Proof:
		return "this tenant accepts only signed decisions: decide with `jig` and a signing key, or put a `token` into the payload"
	case s.Token == "" && s.By == "":
		return "`by` is missing: give the principal who decides"
	case s.Token != "" && !waits && s.Call != "":
		return fmt.Sprintf("call %s is not waiting, so the token proves nothing", s.Call)
	}
	return ""
}

// RefuseProved returns why a decision must be refused although its token is valid, or "". proved is the principal to whom the token belongs.
func (s Sender) RefuseProved(proved string) string {
	if s.By != "" && s.By != proved {
		return fmt.Sprintf("`by` is %s, but the token belongs to %s: leave out `by`", s.By, proved)
	}
	return ""
}

// MayDecide reports whether a principal may decide, answer or reconcile an open approval and has not approved it yet. reconcilers are the
// people who may reconcile; nil means those who could have approved the call.
func MayDecide(asked jig.Pending, who jig.Principal, reconcilers *jig.Approvers, now time.Time) bool {
	return WhyNot(asked, who, reconcilers, now) == ""
}

// WhyNot returns why a principal may not decide, answer or reconcile an open approval, or "" for somebody who may; see [MayDecide].
func WhyNot(asked jig.Pending, who jig.Principal, reconcilers *jig.Approvers, now time.Time) string {
	if asked.Kind == jig.PendingReconcile && reconcilers != nil {
		if reconcilers.Include(who) {
			return ""
		}
		return fmt.Sprintf("%s may not say what happened: it is for %s", who.ID, reconcilers)
	}
	consent := ConsentOf(asked)
	_, why := consent.Entitled(who, now)
	if why == "" && consent.Voted(who.ID) {
		return who.ID + " approved this call already: another person is needed"
	}
	return why
}
