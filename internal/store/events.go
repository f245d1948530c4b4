package store

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/livetext"
	"github.com/jig-run/jig/internal/protocol"
)

// maxPage is the maximum number of events read at once.
const maxPage = 1000

// AppendEvents appends events in one transaction. The store sets their sequence numbers and times.
func (db *DB) AppendEvents(ctx context.Context, tenant, id string, events ...jig.Event) error {
	if len(events) == 0 {
		return nil
	}
	l := &log{}
	for _, e := range events {
		l.add(e)
	}
	var last *int64
	if err := db.once(ctx, tenant, func(t *tx) { t.record(l, id, &last) }); err != nil {
		return err
	}
	if last == nil {
		return noSession(id)
	}
	db.committed(tenant, id, last)
	return nil
}

// Events returns up to limit events with a seq greater than after, oldest first. A limit below 1 or above 1,000 means 1,000. For a session
// that the tenant does not have, it returns no events.
func (db *DB) Events(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error) {
	return ask(ctx, db, tenant, list[jig.Event], "EventsAfter", tenant, id, after, page(limit))
}

func page(limit int) int {
	if limit <= 0 || limit > maxPage {
		return maxPage
	}
	return limit
}

// WaitEvents works like [DB.Events], but waits until there is at least one event or ctx ends. When ctx ends, or the store is closed,
// it returns no events and no error.
func (db *DB) WaitEvents(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error) {
	w := db.hub.watch(ctx, topicKey{tenant, id}, after)
	defer db.hub.leave(w)
	found, err := db.Events(ctx, tenant, id, after, limit)
	for err == nil && len(found) == 0 {
		if !w.wait(ctx) {
			return nil, nil
		}
		if found = db.hub.recent(w, page(limit)); len(found) == 0 {
			found, err = db.Events(ctx, tenant, id, after, limit)
		}
	}
	if ctx.Err() != nil && len(found) == 0 {
		return nil, nil
	}
	return found, err
}

// Subscribe sends a session's events with a seq greater than after, in order and without gaps, as any process commits them. The
// channel is closed when ctx ends or the store is closed.
func (db *DB) Subscribe(ctx context.Context, tenant, id string, after int64) <-chan []jig.Event {
	out := make(chan []jig.Event)
	go func() {
		defer close(out)
		w := db.hub.watch(ctx, topicKey{tenant, id}, after)
		defer db.hub.leave(w)
		db.follow(ctx, w, w.wait, func(found []jig.Event) bool { return sent(ctx, out, found) })
	}()
	return out
}

// sent sends a value. It returns false if ctx ends first.
func sent[T any](ctx context.Context, out chan<- T, value T) bool {
	select {
	case out <- value:
		return true
	case <-ctx.Done():
		return false
	}
}

// follow sends the events that a watcher has not received, and waits for more, until one of the two functions returns false.
func (db *DB) follow(ctx context.Context, w *watcher, wait func(context.Context) bool, send func([]jig.Event) bool) {
	for catchUp := true; ; {
		found, more := db.next(ctx, w, catchUp)
		catchUp = more
		if len(found) > 0 {
			if !send(found) {
				return
			}
			db.hub.advance(w, found[len(found)-1].Seq)
			continue
		}
		if !more && !wait(ctx) || ctx.Err() != nil {
			return
		}
	}
}

// next returns the events that a watcher has not received yet. It takes them from the events that the hub just read for all watchers or,
// when those do not reach back far enough, from the database. more reports whether to read the database again at once.
func (db *DB) next(ctx context.Context, w *watcher, catchUp bool) (found []jig.Event, more bool) {
	if found = db.hub.recent(w, maxPage); len(found) > 0 {
		return found, false
	}
	if !catchUp && !db.hub.behind(w) {
		return nil, false
	}
	found, err := db.Events(ctx, w.key.tenant, w.key.session, db.hub.position(w), maxPage)
	if err == nil {
		return found, len(found) > 0
	}
	if ctx.Err() == nil {
		db.options.Logger.WarnContext(ctx, "reading events of a subscription failed", slog.String("session", w.key.session), slog.Any("error", err))
	}
	select {
	case <-ctx.Done():
	case <-time.After(db.hub.retryEvery()):
	}
	return nil, true
}

// gatherText is how long the text of a model is gathered before it is sent on.
const gatherText = 200 * time.Millisecond

// Follow works like [DB.Subscribe], but also sends the text that models write in the session from a pass on. Each page has events or a
// draft, and no status. Drafts are best effort: some may be missing, and none comes after the event that has the whole text.
func (db *DB) Follow(ctx context.Context, tenant, id string, after int64, pass int) <-chan protocol.EventsPage {
	out := make(chan protocol.EventsPage)
	go func() {
		defer close(out)
		session := livetext.Session{Tenant: tenant, ID: id}
		defer db.hub.texts.follow(session)()
		w := db.hub.watch(ctx, topicKey{tenant, id}, after)
		defer db.hub.leave(w)
		f := follower{w: w, out: out, board: db.hub.texts.board, session: session, from: protocol.TextPosition{Pass: pass}}
		trySend(w.text) // a model may be writing already
		db.follow(ctx, w, f.wait, func(found []jig.Event) bool { return f.events(ctx, found) })
	}()
	return out
}

// follower sends the events and the texts of one session.
type follower struct {
	w       *watcher
	out     chan<- protocol.EventsPage
	board   *livetext.Board
	session livetext.Session
	// from is what has been sent of the text that a model is writing.
	from protocol.TextPosition
}

// events sends events, after the rest of a text that was sent in part. A pass that has ended needs no more text.
func (f *follower) events(ctx context.Context, found []jig.Event) bool {
	if d := f.board.After(f.session, f.from); d != nil && d.Attempt == f.from.Attempt && !f.draft(ctx, d) {
		return false
	}
	for _, e := range found {
		if e.Type == jig.EventPassCompleted && e.Pass >= f.from.Pass { // also the rest of a text that was sent in part
			f.from = protocol.TextPosition{Pass: e.Pass + 1}
		}
	}
	return sent(ctx, f.out, protocol.EventsPage{Events: found})
}

func (f *follower) draft(ctx context.Context, d *protocol.Draft) bool {
	f.from = d.End()
	return sent(ctx, f.out, protocol.EventsPage{Draft: d})
}

// wait waits for events, and sends text while there are none. It returns false when ctx ends or the store closes.
func (f *follower) wait(ctx context.Context) bool {
	for {
		select {
		case <-f.w.wake:
			return true
		case <-ctx.Done():
			return false
		case <-f.w.over:
			return false
		case <-f.w.text:
		}
		draft := f.board.After(f.session, f.from)
		if draft != nil && !draft.Over {
			select {
			case <-f.w.wake:
				trySend(f.w.text) // events sends only what belongs before them, and there may be none
				return true
			case <-time.After(gatherText):
			case <-ctx.Done():
				return false
			}
			draft = f.board.After(f.session, f.from)
		}
		if draft != nil && !f.draft(ctx, draft) {
			return false
		}
	}
}

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
	of := pageOf{Tenant: tenant, List: "events"}
	if err := db.cursors.open(of, after, &from); err != nil {
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
		page.Next, err = db.cursors.seal(of, place{Written: horizon.Oldest})
		return page, err
	}
	for i := range rows {
		r := &rows[i]
		page.Events[i].Event = r.Event
		if page.Events[i].Cursor, err = db.cursors.seal(of, place{r.Written, r.SessionID, r.Seq}); err != nil {
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
	trySend(h.wanted)
	trySend(wake)
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
		trySend(wake)
	}
}
