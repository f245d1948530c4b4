package store

import (
	"context"
	"sync"
)

// gatherer joins short transactions on the calls of one session that are ready at the same time. Each of them raises the session's event
// counter and so waits for the commit of the one before: one flush to disk after another. Those that arrive while a commit is under way
// are sent together as the next one, as a database groups the commits of its clients.
type gatherer struct {
	mu sync.Mutex
	// under holds the sessions with a transaction under way, and the transactions that wait for its end.
	under map[topicKey][]*gathered
}

// gathered is a transaction that waits for its turn.
type gathered struct {
	calls []string
	queue func(t *tx)
	// turn is closed when another one has sent this transaction together with its own. It receives the transactions that this one must send,
	// itself first, or nil if this one must be sent alone because the joint transaction failed.
	turn chan []*gathered
}

// gather runs the queued statements, which change the given calls of a session, as one transaction in one round trip, possibly together with
// others of the same session.
func (db *DB) gather(ctx context.Context, tenant, session string, calls []string, queue func(t *tx)) error {
	key := topicKey{tenant, session}
	own := &gathered{calls: calls, queue: queue, turn: make(chan []*gathered, 1)}
	batch := []*gathered{own}
	if !db.gatherer.first(key, own) {
		var mine bool
		if batch, mine = <-own.turn; !mine {
			return nil
		}
		if batch == nil {
			return db.once(ctx, tenant, queue)
		}
	}
	defer db.gatherer.next(key)
	if len(batch) == 1 {
		return db.once(ctx, tenant, queue)
	}
	if db.together(ctx, tenant, session, batch) == nil {
		for _, other := range batch[1:] {
			close(other.turn)
		}
		return nil
	}
	for _, other := range batch[1:] {
		other.turn <- nil
	}
	return db.once(ctx, tenant, queue)
}

// together sends a batch as one transaction. It locks all calls before the first statement locks the session, as every transaction does.
func (db *DB) together(ctx context.Context, tenant, session string, batch []*gathered) error {
	return db.once(ctx, tenant, func(t *tx) {
		var calls []string
		for _, g := range batch {
			calls = append(calls, g.calls...)
		}
		t.queue("CallsHold", tenant, session, calls)
		for _, g := range batch {
			g.queue(t)
		}
	})
}

// first reports whether no transaction of the session is under way. Otherwise g waits.
func (g *gatherer) first(key topicKey, one *gathered) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting, busy := g.under[key]
	if busy {
		g.under[key] = append(waiting, one)
		return false
	}
	g.under[key] = nil
	return true
}

// maxGathered limits how many transactions are sent together.
const maxGathered = 50

// next gives the turn to the transactions that wait, the first of which sends them.
func (g *gatherer) next(key topicKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.under[key]
	if len(waiting) == 0 {
		delete(g.under, key)
		return
	}
	n := min(len(waiting), maxGathered)
	g.under[key] = waiting[n:]
	waiting[0].turn <- waiting[:n:n]
}
