package store

import (
	"context"
	"slices"
	"sync"
)

// turns hands out the connections of a pool. While all are in use, tenants get them in turn, so that a tenant with many transactions does not
// delay those of others.
type turns struct {
	mu   sync.Mutex
	free int
	// queues has an entry for each tenant that waits, in the order in which tenants get their next connection.
	queues []*queue
}

// queue holds the transactions of a tenant that wait for a connection, oldest first. A channel is closed when its transaction may use one.
type queue struct {
	tenant  string
	waiting []chan struct{}
}

func newTurns(connections int) *turns { return &turns{free: connections} }

// take waits for a connection. The caller must give it back. The error is that of ctx.
func (q *turns) take(ctx context.Context, tenant string) error {
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if i := slices.IndexFunc(q.queues, func(one *queue) bool { return one.tenant == tenant }); i >= 0 {
		q.queues[i].waiting = append(q.queues[i].waiting, turn)
	} else {
		q.queues = append(q.queues, &queue{tenant, []chan struct{}{turn}})
	}
	q.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		q.leave(tenant, turn)
		return ctx.Err() //nolint:wrapcheck // translated by retried
	}
}

// leave ends the wait of a transaction. If it has just got its turn, the next one gets that.
func (q *turns) leave(tenant string, turn chan struct{}) {
	q.mu.Lock()
	i := slices.IndexFunc(q.queues, func(one *queue) bool { return one.tenant == tenant })
	if i >= 0 {
		if j := slices.Index(q.queues[i].waiting, turn); j >= 0 {
			if q.queues[i].waiting = slices.Delete(q.queues[i].waiting, j, j+1); len(q.queues[i].waiting) == 0 {
				q.queues = slices.Delete(q.queues, i, i+1)
			}
			q.mu.Unlock()
			return
		}
	}
	q.mu.Unlock()
	q.give()
}

// give passes a connection on to the tenant whose turn it is.
func (q *turns) give() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queues) == 0 {
		q.free++
		return
	}
	first := q.queues[0]
	close(first.waiting[0])
	first.waiting = first.waiting[1:]
	q.queues = q.queues[1:]
	if len(first.waiting) > 0 {
		q.queues = append(q.queues, first)
	}
}
