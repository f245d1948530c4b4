package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/protocol"
)

// maxListed is how many approvals fit on a page. Each preview has up to 2 KiB.
const maxListed = 40

// ListPending returns a page of the calls that wait for a person and match a filter, oldest first.
func (a *Activities) ListPending(ctx context.Context, in protocol.PendingRequest) (protocol.ApprovalList, error) {
	if in.Limit <= 0 || in.Limit > maxListed {
		in.Limit = maxListed
	}
	if in.Filter.For == "" {
		list, next, err := a.Store.ListPending(ctx, in.Tenant, in.Filter, in.Cursor, in.Limit)
		return protocol.ApprovalList{Approvals: a.withoutEnded(ctx, in.Tenant, list), Next: next}, temporalError(err)
	}
	page, err := a.decidable(ctx, in)
	return page, temporalError(err)
}

// pagesSifted limits how many pages are searched for approvals that a principal may decide. The cursor says where to continue.
const pagesSifted = 25

// decidable returns a page of the calls that a principal may decide and has not decided yet. The page may be incomplete even if more
// follow.
func (a *Activities) decidable(ctx context.Context, in protocol.PendingRequest) (protocol.ApprovalList, error) {
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return protocol.ApprovalList{}, err
	}
	who := settings.Person(in.Filter.For)
	page := protocol.ApprovalList{Approvals: []jig.Pending{}, Next: in.Cursor}
	for range pagesSifted {
		var list []jig.Pending
		if list, page.Next, err = a.Store.ListPending(ctx, in.Tenant, in.Filter, page.Next, in.Limit-len(page.Approvals)); err != nil {
			return page, err
		}
		for _, p := range list {
			if approval.MayDecide(p, who, settings.Reconcilers, a.Now()) {
				page.Approvals = append(page.Approvals, p)
			}
		}
		if page.Next == "" || len(page.Approvals) >= in.Limit {
			break
		}
	}
	page.Approvals = a.withoutEnded(ctx, in.Tenant, page.Approvals)
	return page, nil
}

// Statistics returns statistics of a tenant's approvals.
func (a *Activities) Statistics(ctx context.Context, in protocol.StatisticsRequest) (protocol.ApprovalStats, error) {
	f, err := a.Store.Statistics(ctx, in.Tenant, in.Since)
	return f, temporalError(err)
}
