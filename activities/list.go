package activities

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig/internal/protocol"
)

// ListSessions returns a page of a tenant's sessions that match a filter, the newest first.
func (a *Activities) ListSessions(ctx context.Context, in protocol.SessionsRequest) (protocol.SessionList, error) {
	list, next, err := a.Store.ListSessions(ctx, in.Tenant, in.SessionFilter, in.Cursor, in.Limit)
	if err == nil && a.closeListed(ctx, in.Tenant, list) {
		list, next, err = a.Store.ListSessions(ctx, in.Tenant, in.SessionFilter, in.Cursor, in.Limit)
	}
	return protocol.SessionList{Sessions: list, Next: next}, temporalError(err)
}

// closeListed closes the sessions of a list whose workflows have ended although the store considers them live, so that nobody sees a waiting
// session that can never continue. It reports whether there were any.
func (a *Activities) closeListed(ctx context.Context, tenant string, list []protocol.SessionItem) (closed bool) {
	live := map[string]protocol.SessionItem{}
	ids := []string{}
	for _, item := range list {
		if !item.Status.Final() {
			live[item.SessionID] = item
			ids = append(ids, item.SessionID)
		}
	}
	if a.Runs == nil || len(ids) == 0 {
		return false
	}
	ended, err := a.Runs.Ended(ctx, ids)
	if err != nil {
		a.Logger.WarnContext(ctx, "it is not known which sessions were ended externally", slog.String("tenant", tenant), slog.String("error", err.Error()))
		return false
	}
	for _, id := range ended {
		item := live[id]
		closed = a.closeIfEnded(ctx, tenant, id, item.Status, item.UpdatedAt) || closed
	}
	return closed
}
