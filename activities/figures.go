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
	list, next, err := a.store.ListPending(ctx, in.Tenant, in.Filter, in.Cursor, in.Limit)
	return ApprovalsPage{Approvals: list, Next: next}, temporalError(err)
}

// Figures returns how a tenant's approvals fare.
func (a *Activities) Figures(ctx context.Context, in FiguresRequest) (jig.Figures, error) {
	f, err := a.store.Figures(ctx, in.Tenant, in.Since)
	return f, temporalError(err)
}
