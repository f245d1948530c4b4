package activities

import (
	"context"
	"errors"
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
	var handled Handled
	var voters *approval.Voters
	if settings, err := a.Tenants.Latest(ctx, in.Tenant); err == nil { // else approvals expire all the same
		voters = new(settings.Voters())
	}
	for _, id := range in.Calls {
		lapse, err := a.Store.Lapse(ctx, in.Tenant, in.SessionID, id, voters, in.Now)
		if err != nil {
			return handled, temporalError(err)
		}
		call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, id)
		if err != nil {
			return handled, temporalError(err)
		}
		if lapse.Status == jig.CallExpired && lapse.OnExpiry.Strictness() > handled.Ending.Strictness() {
			handled.Ending = lapse.OnExpiry
		}
		ruled := jig.Ruled{Call: id, Outcome: jig.DecisionAccepted, Status: lapse.Status}
		if err := a.follow(ctx, approval.Applied{Ruled: ruled, Call: &call}, &handled); err != nil {
			return handled, temporalError(err)
		}
	}
	return handled, nil
}

const (
	// recheckLease is how long a worker may take to check the open approvals of a tenant before another one begins.
	recheckLease = time.Minute
	// maxRechecks is how many tenants a worker checks at a time.
	maxRechecks = 10
	// recheckPage is how many open approvals it reads at a time.
	recheckPage = 500
)

// Recheck checks the open approvals of tenants in which the people who may decide have changed: if too few are left, more people may decide, or the call
// is denied; see [approval.Voters.Independent]. Workflows are told. If one tenant cannot be checked now, the others still are.
func (a *Activities) Recheck(ctx context.Context) error {
	tenants, err := a.Store.TakeRechecks(ctx, recheckLease, maxRechecks)
	for tenant, due := range tenants {
		failed := a.recheck(ctx, tenant)
		if failed == nil {
			failed = a.Store.Rechecked(ctx, tenant, due)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// recheck checks the open approvals of a tenant.
func (a *Activities) recheck(ctx context.Context, tenant string) error {
	settings, err := a.Tenants.Latest(ctx, tenant)
	if err != nil {
		return err
	}
	voters := settings.Voters()
	for cursor, more := "", true; more; more = cursor != "" {
		var page []jig.Pending
		if page, cursor, err = a.Store.PendingApprovals(ctx, tenant, cursor, recheckPage); err != nil {
			return err
		}
		for _, p := range page {
			if err := a.recheckCall(ctx, voters, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// recheckCall checks one open approval, without a lock if it is as it should be.
func (a *Activities) recheckCall(ctx context.Context, voters approval.Voters, p jig.Pending) error {
	now := a.Now()
	wider, denied := voters.Independent(voters.Counted(p, now), now)
	if denied == nil && wider.Terms == p.Terms {
		return nil
	}
	changed, err := a.Store.Recheck(ctx, p.Tenant, p.SessionID, p.Call, voters, now)
	if err != nil || !changed {
		return err
	}
	call, err := a.Store.Call(ctx, p.Tenant, p.SessionID, p.Call)
	if err == nil {
		a.notifySettled(ctx, call)
	}
	return err
}
