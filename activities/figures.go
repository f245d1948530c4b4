package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// Reviews answers the questions of those who look after approvals.
type Reviews interface {
	// ListPending lists what waits in a tenant and passes a filter, oldest first, after a cursor ("" to begin); next is "" at
	// the end.
	ListPending(ctx context.Context, tenant string, filter jig.PendingFilter, cursor string, limit int) (list []jig.Pending, next string, err error)
	// Figures says how a tenant's approvals fare: what waits now, and what was decided since a time.
	Figures(ctx context.Context, tenant string, since time.Time) (jig.Figures, error)
	// RecordedCalls returns calls that were admitted since a time, with what a ruling on them needs, after a cursor ("" to
	// begin); next is "" at the end.
	RecordedCalls(ctx context.Context, tenant string, since time.Time, cursor string, limit int) (list []jig.RecordedCall, next string, err error)
}

// PendingRequest asks for a page of what waits in a tenant and passes a filter.
type PendingRequest struct {
	Tenant string            `json:"tenant"`
	Filter jig.PendingFilter `json:"filter,omitzero"`
	Cursor string            `json:"cursor,omitempty"`
	// Limit is how many at most; default, and most, 40.
	Limit int `json:"limit,omitempty"`
}

// FiguresRequest asks how a tenant's approvals fare, and how those that ended since a time did.
type FiguresRequest struct {
	Tenant string    `json:"tenant"`
	Since  time.Time `json:"since"`
}

// maxListed is how many approvals fit a page: their previews have up to 2 KiB each.
const maxListed = 40

// ListPending returns a page of what waits for a person and passes a filter, oldest first.
func (a *Activities) ListPending(ctx context.Context, in PendingRequest) (ApprovalsPage, error) {
	if in.Limit <= 0 || in.Limit > maxListed {
		in.Limit = maxListed
	}
	if in.Filter.For == "" {
		list, next, err := a.store.ListPending(ctx, in.Tenant, in.Filter, in.Cursor, in.Limit)
		return ApprovalsPage{Approvals: a.withoutEnded(ctx, in.Tenant, list), Next: next}, temporalError(err)
	}
	page, err := a.decidable(ctx, in)
	return page, temporalError(err)
}

// pagesSifted bounds the pages that are looked through for one of what a principal may decide; the cursor tells where to go on.
const pagesSifted = 25

// decidable returns a page of what a principal may decide and has not yet. It may hold less than there is room for.
func (a *Activities) decidable(ctx context.Context, in PendingRequest) (ApprovalsPage, error) {
	settings, err := a.tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return ApprovalsPage{}, err
	}
	who := settings.Person(in.Filter.For)
	page := ApprovalsPage{Approvals: []jig.Pending{}, Next: in.Cursor}
	for range pagesSifted {
		var list []jig.Pending
		if list, page.Next, err = a.store.ListPending(ctx, in.Tenant, in.Filter, page.Next, in.Limit-len(page.Approvals)); err != nil {
			return page, err
		}
		for _, p := range list {
			if mayDecide(settings, who, p, a.now()) {
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

func mayDecide(settings jig.TenantSettings, who jig.Principal, p jig.Pending, now time.Time) bool {
	if p.Kind == jig.PendingReconcile && settings.Reconcilers != nil {
		return settings.Reconcilers.Include(who)
	}
	consent := p.Consent()
	_, why := consent.Entitled(who, now)
	return why == "" && !consent.Voted(who.ID)
}

// Figures returns how a tenant's approvals fare.
func (a *Activities) Figures(ctx context.Context, in FiguresRequest) (jig.Figures, error) {
	f, err := a.store.Figures(ctx, in.Tenant, in.Since)
	return f, temporalError(err)
}
