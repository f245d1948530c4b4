package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/livetext"
	"github.com/jig-run/jig/internal/protocol"
)

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
		nudge(w.text) // a model may be writing already
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
				nudge(f.w.text) // events sends only what belongs before them, and there may be none
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
