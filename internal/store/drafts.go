package store

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/livetext"
	"github.com/jig-run/jig/internal/protocol"
)

// textLock is the first key of the advisory locks with which a listening connection asks for the texts that models write; the second key is
// a group of sessions. They are shared, and PostgreSQL releases them when the connection ends.
const textLock = 7106936

// textPieces is how many pieces of texts are sent at once. The rest waits for the next time.
const textPieces = 32

// liveTexts passes the texts that models write on to those who follow their sessions, in this process and, in notifications, to others. A text
// is sent only while a connection of another process asks for its group of sessions. Nothing is stored; what gets lost is found in the log
// once the answer is complete.
type liveTexts struct {
	board *livetext.Board
	// written receives a value when a text has changed, and ended when the request of one has ended.
	written, ended chan struct{}
	// listeners are the connections of other processes, with the groups they ask for, and asked is when they were read. Only sendTexts uses
	// both.
	listeners map[textListenerRow]struct{}
	asked     time.Time

	mu sync.Mutex
	// followers counts the followers of each group in this process. left is when the last follower of a group left.
	followers map[int]int
	left      map[int]time.Time
	// interrupt ends the wait of the connection that listens, so that it asks for another group.
	interrupt context.CancelFunc
}

// textListenerRow is a row of the query TextListeners.
type textListenerRow struct {
	PID    int32
	Bucket int64
}

func newTexts(changed func(s livetext.Session, over bool)) *liveTexts {
	return &liveTexts{
		board: livetext.NewBoard(changed), written: make(chan struct{}, 1), ended: make(chan struct{}, 1),
		followers: map[int]int{}, left: map[int]time.Time{}, interrupt: func() {},
	}
}

// WriteText returns a writer for the text that a model writes in a pass. It passes the text on to those who follow the session.
func (db *DB) WriteText(tenant, id string, pass int) *livetext.Writer {
	return db.hub.texts.board.Write(livetext.Session{Tenant: tenant, ID: id}, pass)
}

// WaitText works like [DB.WaitEvents], but also waits for text that a model is writing, after a position. When there is some, it gathers more
// for a while. With events it returns only the rest of a text that the caller has begun to read.
func (db *DB) WaitText(
	ctx context.Context, tenant, id string, after int64, limit int, from protocol.TextPosition, gather time.Duration,
) ([]jig.Event, *protocol.Draft, error) {
	session, board := livetext.Session{Tenant: tenant, ID: id}, db.hub.texts.board
	defer db.hub.texts.follow(session)()
	w := db.hub.watch(ctx, topicKey{tenant, id}, after)
	defer db.hub.leave(w)
	var gathered <-chan time.Time
	found, err := db.Events(ctx, tenant, id, after, limit)
	for err == nil && len(found) == 0 {
		draft := board.After(session, from)
		switch {
		case draft == nil:
		case draft.Over:
			return nil, draft, nil
		case gathered == nil:
			gathered = time.After(gather)
		}
		select {
		case <-w.wake:
			if found = db.hub.recent(w, page(limit)); len(found) == 0 {
				found, err = db.Events(ctx, tenant, id, after, limit)
			}
			continue
		case <-w.text:
			continue
		case <-gathered:
		case <-ctx.Done():
		case <-w.over:
		}
		return nil, board.After(session, from), nil
	}
	switch {
	case ctx.Err() != nil && len(found) == 0:
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	if draft := board.After(session, from); draft != nil && draft.Attempt == from.Attempt {
		return found, draft, nil
	}
	return found, nil, nil
}

// follow asks other processes for the texts of a session's group until leave is called, and for Options.ListenIdle afterwards.
func (x *liveTexts) follow(s livetext.Session) (leave func()) {
	bucket := s.Bucket()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.followers[bucket]++
	if _, asking := x.left[bucket]; !asking && x.followers[bucket] == 1 {
		x.interrupt()
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.followers[bucket]--; x.followers[bucket] == 0 {
			delete(x.followers, bucket)
			x.left[bucket] = time.Now()
		}
	}
}

// wanted returns the groups that this process asks for. interrupt is called when it needs another one.
func (x *liveTexts) wanted(idle time.Duration, interrupt context.CancelFunc) map[int]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.interrupt = interrupt
	groups := map[int]bool{}
	for bucket := range x.followers {
		groups[bucket] = true
	}
	for bucket, left := range x.left {
		if time.Since(left) < idle {
			groups[bucket] = true
		} else {
			delete(x.left, bucket)
		}
	}
	return groups
}

// holdTextLocks makes the connection that listens hold the locks of the groups that this process asks for; held are those that it holds.
func (h *hub) holdTextLocks(ctx context.Context, conn *pgx.Conn, held map[int]bool, interrupt context.CancelFunc) error {
	wanted := h.texts.wanted(h.db.options.ListenIdle, interrupt)
	change := func(function string, bucket int) error {
		_, err := conn.Exec(ctx, "select "+function+"("+strconv.Itoa(textLock)+", "+strconv.Itoa(bucket)+")")
		return err //nolint:wrapcheck // translated by the caller
	}
	for bucket := range wanted {
		if held[bucket] {
			continue
		}
		if err := change("pg_advisory_lock_shared", bucket); err != nil {
			return err
		}
		held[bucket] = true
	}
	for bucket := range held {
		if wanted[bucket] {
			continue
		}
		if err := change("pg_advisory_unlock_shared", bucket); err != nil {
			return err
		}
		delete(held, bucket)
	}
	return nil
}

// textChanged tells the watchers of a session that its text has changed. If its request has ended, the rest is sent at once, so that it
// arrives before the event that has the text.
func (h *hub) textChanged(s livetext.Session, over bool) {
	h.mu.Lock()
	if t, ok := h.topics[topicKey{s.Tenant, s.ID}]; ok {
		for w := range t.watchers {
			trySend(w.text)
		}
	}
	h.mu.Unlock()
	trySend(h.texts.written)
	if over {
		trySend(h.texts.ended)
	}
}

// receiveText adds the pieces of a notification. Payloads of another installation in the same database cannot be opened and are ignored, and so
// are forged ones.
func (h *hub) receiveText(payload string) {
	pieces, err := h.db.seal.Open(payload)
	if err != nil {
		return
	}
	for _, p := range pieces {
		h.texts.board.Take(p)
	}
}

// sendTexts sends the texts of this process every Options.TextEvery while others ask for some. While nobody does, it asks every
// Options.AskEvery, as long as a model is writing.
func (h *hub) sendTexts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			h.sendText(ctx)
			return
		case <-h.texts.written:
		}
		if !h.texts.board.Writing() {
			continue
		}
		every := h.db.options.TextEvery
		if !h.sendText(ctx) {
			every = h.db.options.AskEvery
		}
		trySend(h.texts.written)
		select {
		case <-ctx.Done():
		case <-h.texts.ended:
		case <-time.After(every):
		}
	}
}

// sendText sends the next pieces, and reports whether another process asks for texts.
func (h *hub) sendText(ctx context.Context) (wanted bool) {
	if !h.texts.board.Writing() {
		return false
	}
	groups, err := h.textGroups(ctx)
	pieces, more := h.texts.board.Due(func(s livetext.Session) bool { return groups[int64(s.Bucket())] }, textPieces)
	if more {
		trySend(h.texts.written)
	}
	if err == nil && len(pieces) > 0 {
		err = h.db.once(ctx, "", func(t *tx) {
			for _, payload := range h.db.seal.Close(pieces, payloadBytes) {
				t.queue("NotifyText", payload)
			}
		})
	}
	if err != nil {
		h.texts.board.Resend(func(livetext.Session) bool { return true })
		if ctx.Err() == nil {
			h.db.options.Logger.WarnContext(ctx, "sending the texts of models failed", slog.Any("error", err))
		}
	}
	return len(groups) > 0
}

// textGroups returns the groups that other processes ask for. Texts of a group that a connection has not asked for before are sent again from
// their beginning.
func (h *hub) textGroups(ctx context.Context) (map[int64]bool, error) {
	x := h.texts
	if time.Since(x.asked) >= h.db.options.AskEvery {
		var rows []textListenerRow
		own := h.pid.Load()
		if err := h.db.once(ctx, "", func(t *tx) { list(t.queue("TextListeners", textLock, int(own)), &rows) }); err != nil {
			return nil, err
		}
		earlier := x.listeners
		x.asked, x.listeners = time.Now(), map[textListenerRow]struct{}{}
		joined := map[int64]bool{}
		for _, r := range rows {
			x.listeners[r] = struct{}{}
			if _, ok := earlier[r]; !ok {
				joined[r.Bucket] = true
			}
		}
		if len(joined) > 0 {
			x.board.Resend(func(s livetext.Session) bool { return joined[int64(s.Bucket())] })
		}
	}
	groups := map[int64]bool{}
	for r := range x.listeners {
		groups[r.Bucket] = true
	}
	return groups, nil
}
