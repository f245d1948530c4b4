package activities

import (
	"context"

	"github.com/jig-run/jig"
)

// askersOf returns those on whose word a call of a session rests that is being admitted.
func (a *Activities) askersOf(ctx context.Context, session jig.Session, call jig.Call) ([]jig.Asker, error) {
	call.Tenant, call.SessionID = session.Tenant, session.ID
	return a.Store.Askers(ctx, call)
}

// said records that a principal puts words into a session. who is nil if the words only claim to come from by.
func (a *Activities) said(ctx context.Context, tenant, id string, who *jig.Principal, by, how string) error {
	asker := jig.Asker{Principal: by, Claimed: true, By: how}
	if who != nil {
		asker.Principal, asker.Claimed, asker.Maker = who.ID, who.Claimed, who.Maker
	}
	if asker.Principal == "" {
		return nil
	}
	return a.Store.Said(ctx, tenant, id, asker)
}
