package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// ExpireInput names calls on whose approvals time may act.
type ExpireInput struct {
	SessionRef
	Calls []string `json:"calls"`
	// Now is the workflow's time.
	Now time.Time `json:"now"`
}

// Expire lets time act on approvals: those whose time has come expire, reminders and escalations that are due are sent. It says
// where each call stands.
func (a *Activities) Expire(ctx context.Context, in ExpireInput) (Heard, error) {
	var heard Heard
	for _, id := range in.Calls {
		lapse, err := a.store.Lapse(ctx, in.Tenant, in.SessionID, id, in.Now)
		if err != nil {
			return heard, temporalError(err)
		}
		ruled := jig.Ruled{Call: id, Outcome: jig.DecisionAccepted, Status: lapse.Status}
		heard.Decisions = append(heard.Decisions, ruled)
		if lapse.Status == jig.CallExpired && lapse.OnExpiry.Strictness() > heard.Ending.Strictness() {
			heard.Ending = lapse.OnExpiry
		}
		if err := a.follow(ctx, in.SessionRef, ruled, &heard); err != nil {
			return heard, temporalError(err)
		}
	}
	return heard, nil
}
