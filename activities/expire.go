package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// ExpireInput names calls whose approvals may be due.
type ExpireInput struct {
	protocol.SessionRef
	Calls []string `json:"calls"`
	// Now is the workflow's time.
	Now time.Time `json:"now"`
}

// Expire processes approvals that are due: it expires those whose time has come and sends due reminders and escalations. It returns
// the state of each call.
func (a *Activities) Expire(ctx context.Context, in ExpireInput) (Handled, error) {
	var heard Handled
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
