package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
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
	var voters *approval.Voters
	if settings, err := a.Tenants.Latest(ctx, in.Tenant); err == nil { // else approvals expire all the same
		voters = new(settings.Voters())
	}
	for _, id := range in.Calls {
		lapse, err := a.Store.Lapse(ctx, in.Tenant, in.SessionID, id, voters, in.Now)
		if err != nil {
			return heard, temporalError(err)
		}
		call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, id)
		if err != nil {
			return heard, temporalError(err)
		}
		if lapse.Status == jig.CallExpired && lapse.OnExpiry.Strictness() > heard.Ending.Strictness() {
			heard.Ending = lapse.OnExpiry
		}
		ruled := jig.Ruled{Call: id, Outcome: jig.DecisionAccepted, Status: lapse.Status}
		if err := a.follow(ctx, approval.Applied{Ruled: ruled, Call: &call}, &heard); err != nil {
			return heard, temporalError(err)
		}
	}
	return heard, nil
}
