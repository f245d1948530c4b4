package store

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jig-run/jig"
)

// hub tells the watchers in this process about the events that any process commits. While another process listens, commits are
// announced, at most once per Options.NotifyEvery for all sessions together. One connection listens for announcements, and announced
// events are read once for all watchers. Announcements can get lost; polling every Options.PollEvery finds their events.
type hub struct {
	db     *DB
	stop   context.CancelFunc
	done   sync.WaitGroup
	over   chan struct{}
	closed sync.Once
	// wanted receives a value when somebody watches while no connection listens.
	wanted chan struct{}
	// pid is the backend of the latest connection that listens, or 0 when it stopped because nobody watches. It outlives the connection,
	// because PostgreSQL may hold the connection's lock a little longer.
	pid atomic.Uint32
	// listenedUntil ends the time for which the last answer about listeners counts. Only notify uses it.
	listenedUntil time.Time

	mu sync.Mutex
	// listening is closed when the connection listens. It is replaced when the connection stops listening because nobody watches.
	listening chan struct{}
	// unwatched is when the last watcher left.
	unwatched time.Time

	topics map[topicKey]*topic
	// tenants holds the watchers of all sessions of a tenant.
	tenants  map[string][]chan struct{}
	dirty    map[*topic]struct{}
	announce map[topicKey]int64
	fetch    chan struct{}
	send     chan struct{}
	texts    *liveTexts
}

// topicKey identifies a session.
type topicKey struct{ tenant, session string }

// topic is a session that somebody in this process watches.
type topic struct {
	key      topicKey
	watchers map[*watcher]struct{}
	// known is the highest sequence number that was announced, and seen the highest that was read for the watchers.
	known, seen int64
	// assumed is set while known and seen are only the first watcher's position, because nothing has been announced yet.
	assumed bool
	// tail holds the latest events read, without gaps, up to seen.
	tail []jig.Event
}

// tailLength is how many events are kept for watchers that are slightly behind.
const tailLength = 256

// watcher waits for the events of one session after a sequence number.
type watcher struct {
	key   topicKey
	after int64
	wake  chan struct{}
	// text receives a value when the text that a model writes in the session has changed.
	text chan struct{}
	over <-chan struct{}
}

func newHub(ctx context.Context, db *DB) *hub {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the hub outlives ctx, which limits only the opening
	h := &hub{
		db: db, stop: stop, wanted: make(chan struct{}, 1), listening: make(chan struct{}), over: make(chan struct{}),
		topics: map[topicKey]*topic{}, tenants: map[string][]chan struct{}{}, dirty: map[*topic]struct{}{}, announce: map[topicKey]int64{},
		fetch: make(chan struct{}, 1), send: make(chan struct{}, 1),
	}
	h.texts = newTexts(h.textChanged)
	for _, run := range []func(context.Context){h.notify, h.listen, h.poll, h.read, h.sendTexts} {
		h.done.Go(func() { run(ctx) })
	}
	return h
}

func (h *hub) close() {
	h.closed.Do(func() { close(h.over) })
	h.stop()
	h.done.Wait()
}

// committedHere reports a commit of this process.
func (h *hub) committedHere(key topicKey, seq int64) {
	h.mu.Lock()
	h.announce[key] = max(h.announce[key], seq)
	h.mu.Unlock()
	trySend(h.send)
	h.advanced(key, seq)
}

// advanced reports a commit of any process.
func (h *hub) advanced(key topicKey, seq int64) {
	h.mu.Lock()
	h.wakeTenant(key.tenant)
	t, ok := h.topics[key]
	if ok && t.assumed {
		if seq < t.known { // the first watcher started ahead of the log
			t.seen, t.known = seq-1, seq-1
		}
		t.assumed = false
	}
	fresh := ok && seq > t.known
	if fresh {
		t.known = seq
		h.dirty[t] = struct{}{}
	}
	h.mu.Unlock()
	if fresh {
		trySend(h.fetch)
	}
}

func trySend(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch starts watching a session. It returns once the connection listens, so that no later commit is missed. If that takes longer
// than Options.PollEvery it returns anyway, and polling finds the events.
func (h *hub) watch(ctx context.Context, key topicKey, after int64) *watcher {
	w := &watcher{key: key, after: after, wake: make(chan struct{}, 1), text: make(chan struct{}, 1), over: h.over}
	h.mu.Lock()
	t, ok := h.topics[key]
	if !ok {
		t = &topic{key: key, watchers: map[*watcher]struct{}{}, seen: after, known: after, assumed: true}
		h.topics[key] = t
	}
	t.watchers[w] = struct{}{}
	listening := h.listening
	h.mu.Unlock()
	select {
	case <-listening:
		return w
	default:
		trySend(h.wanted)
	}
	select {
	case <-listening:
	case <-ctx.Done():
	case <-h.over:
	case <-time.After(h.db.options.PollEvery):
	}
	return w
}

func (h *hub) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.topics[w.key]
	if !ok {
		return
	}
	delete(t.watchers, w)
	if len(t.watchers) == 0 {
		delete(h.topics, w.key)
		delete(h.dirty, t)
		h.unwatched = time.Now()
	}
}

// watched reports whether anybody watches.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.topics) > 0 || len(h.tenants) > 0
}

// listens records that the connection listens.
func (h *hub) listens() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.listening: // it listened before it was interrupted
	default:
		close(h.listening)
	}
}

// retire reports whether nobody has watched for Options.ListenIdle, so that the connection should stop listening. Then the next watcher
// waits until another connection listens.
func (h *hub) retire() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.topics) > 0 || len(h.tenants) > 0 || time.Since(h.unwatched) < h.db.options.ListenIdle {
		return false
	}
	h.listening = make(chan struct{})
	h.pid.Store(0)
	return true
}

// wait waits for new events. It returns false when ctx ends or the store closes first.
func (w *watcher) wait(ctx context.Context) bool {
	select {
	case <-w.wake:
		return true
	case <-ctx.Done():
		return false
	case <-w.over:
		return false
	}
}

// recent returns the events in the tail that the watcher has not received; nil when the tail starts too late.
func (h *hub) recent(w *watcher, limit int) []jig.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.topics[w.key]
	if !ok || len(t.tail) == 0 || t.tail[0].Seq > w.after+1 {
		return nil
	}
	skip := int(w.after + 1 - t.tail[0].Seq)
	if skip >= len(t.tail) {
		return nil
	}
	rest := t.tail[skip:]
	return slices.Clone(rest[:min(limit, len(rest))])
}

// behind reports whether the watcher lacks events that were already read for others.
func (h *hub) behind(w *watcher) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.topics[w.key]
	return ok && t.seen > w.after
}

func (h *hub) position(w *watcher) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.after
}

// advance records which events a watcher has received. Events that it read by itself need not be read again for the others.
func (h *hub) advance(w *watcher, seq int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.after = max(w.after, seq)
	t, ok := h.topics[w.key]
	if !ok || w.after <= t.seen {
		return
	}
	t.seen, t.known, t.tail = w.after, max(t.known, w.after), nil
	t.assumed = false
	for other := range t.watchers {
		if other != w {
			trySend(other.wake)
		}
	}
}

// deliver hands the events that were read for a topic to its watchers.
func (h *hub) deliver(d due, found []jig.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, from := d.topic, d.from
	switch {
	case len(found) == 0 && t.known == d.known:
		t.known = t.seen // the announced events do not exist: everybody who may connect to the database can announce some
	case len(found) == 0: // others were announced in the meantime
	case found[0].Seq != from+1 || from != t.seen:
		return // another read got there first
	default:
		if len(t.tail) > 0 && t.tail[len(t.tail)-1].Seq != from {
			t.tail = nil
		}
		t.tail = append(t.tail, found...)
		if n := len(t.tail) - max(tailLength, len(found)); n > 0 {
			t.tail = slices.Clone(t.tail[n:])
		}
		t.seen = found[len(found)-1].Seq
		t.known = max(t.known, t.seen)
	}
	if t.seen < t.known && len(t.watchers) > 0 {
		h.dirty[t] = struct{}{}
		trySend(h.fetch)
	}
	for w := range t.watchers {
		trySend(w.wake)
	}
}
