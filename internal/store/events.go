package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/jig-run/jig"
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
	db.touched(tenant, id, last)
	return nil
}

// Events returns up to limit events with a seq greater than after, oldest first. A limit below 1 or above 1,000 means 1,000. For a session
// that the tenant does not have, it returns no events.
func (db *DB) Events(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error) {
	var found []jig.Event
	err := db.once(ctx, tenant, func(t *tx) { list(t.queue("EventsAfter", tenant, id, after, page(limit)), &found) })
	return found, err
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
