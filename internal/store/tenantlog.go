package store

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// place is a place in the order of a tenant's events: the transaction that wrote an event, and the event. The events of a transaction are
// ordered by session and sequence number.
type place struct {
	Written int64  `json:"w"`
	Session string `json:"s,omitempty"`
	Seq     int64  `json:"n,omitempty"`
}

// placedRow is a row of the query EventsInOrder.
type placedRow struct {
	jig.Event

	Written int64
}

// horizonRow is the row of the query EventsHorizon.
type horizonRow struct {
	Oldest, Next int64
	Waiting      bool
}

// TenantEvents returns the events of a tenant that change the state of a session or concern people, after a cursor: at most limit (100 if it
// is not positive, at most 1,000), and all that belong there, also those of transactions that committed late. Without a cursor it returns
// none, and the cursor after which everything follows that has not happened yet. A cursor from the time before the database was restored from
// a dump is EXPIRED.
func (db *DB) TenantEvents(ctx context.Context, tenant, after string, limit int) (protocol.TenantEvents, error) {
	var from place
	if err := decodeCursor(after, &from); err != nil {
		return protocol.TenantEvents{}, err
	}
	var horizon *horizonRow
	var rows []placedRow
	err := db.once(ctx, tenant, func(t *tx) {
		if after != "" {
			list(t.queue("EventsInOrder", tenant, from.Written, from.Session, from.Seq, pendingLimit(limit)), &rows)
		}
		first(t.queue("EventsHorizon", tenant), &horizon)
	})
	switch {
	case err != nil:
		return protocol.TenantEvents{}, err
	case horizon == nil:
		return protocol.TenantEvents{}, jig.Errorf(jig.CodeInternal, "the database did not report its running transactions")
	case from.Written > horizon.Next:
		return protocol.TenantEvents{}, jig.Errorf(jig.CodeExpired, "the cursor is from before the database was restored").WithField("after").
			WithHint("read the lists again, then follow without a cursor")
	}
	page := protocol.TenantEvents{Events: make([]protocol.TenantEvent, len(rows)), Waiting: horizon.Waiting, Next: after}
	if after == "" {
		page.Next, err = encodeCursor(place{Written: horizon.Oldest})
		return page, err
	}
	for i := range rows {
		r := &rows[i]
		page.Events[i].Event = r.Event
		if page.Events[i].Cursor, err = encodeCursor(place{r.Written, r.SessionID, r.Seq}); err != nil {
			return page, err
		}
		page.Next = page.Events[i].Cursor
	}
	return page, nil
}

// WatchTenant returns a channel that receives a value when events of a tenant may have been committed, by any process, until ctx ends.
func (db *DB) WatchTenant(ctx context.Context, tenant string) <-chan struct{} {
	return db.hub.watchTenant(ctx, tenant)
}

// watchTenant adds a watcher of a tenant until ctx ends.
func (h *hub) watchTenant(ctx context.Context, tenant string) <-chan struct{} {
	wake := make(chan struct{}, 1)
	h.mu.Lock()
	h.tenants[tenant] = append(h.tenants[tenant], wake)
	h.mu.Unlock()
	nudge(h.wanted)
	nudge(wake)
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.tenants[tenant] = slices.DeleteFunc(h.tenants[tenant], func(other chan struct{}) bool { return other == wake })
		if len(h.tenants[tenant]) == 0 {
			delete(h.tenants, tenant)
		}
		h.unwatched = time.Now()
	})
	return wake
}

// wakeTenant wakes the watchers of a tenant. The hub is locked.
func (h *hub) wakeTenant(tenant string) {
	for _, wake := range h.tenants[tenant] {
		nudge(wake)
	}
}
