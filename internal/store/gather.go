package store

import (
	"context"
	"sync"
)

// gatherer combines short transactions of a session that are ready at the same time. Each of them updates the session's event counter. On
// their own they would wait for each other's commits, and each commit waits until the disk has written it. So while one transaction of a
// session runs, the others wait, and then they are sent as one.
type gatherer struct {
	mu sync.Mutex
	// waiting has an entry for each session with a running transaction. It lists the transactions that wait until that one has finished.
	waiting map[topicKey][]*gathered
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

// first reports whether a transaction may run at once because no other of its session is running. Otherwise the transaction is listed as waiting.
func (g *gatherer) first(key topicKey, one *gathered) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting, busy := g.waiting[key]
	if busy {
		g.waiting[key] = append(waiting, one)
		return false
	}
	g.waiting[key] = nil
	return true
}

// maxGathered limits how many transactions are sent together.
const maxGathered = 50

// next lets the first of the waiting transactions send all of them.
func (g *gatherer) next(key topicKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.waiting[key]
	if len(waiting) == 0 {
		delete(g.waiting, key)
		return
	}
	n := min(len(waiting), maxGathered)
	g.waiting[key] = waiting[n:]
	waiting[0].turn <- waiting[:n:n]
}
