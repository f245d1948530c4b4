package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// callsRead holds the rows that CallsOf reads.
type callsRead struct {
	session *sessionRow
	calls   []callRow
	paused  []jig.Pause
}

// CallsOf returns a session and the given calls, each with the pause that holds it back, if any. It returns NOT_FOUND when there is no
// such session.
func (db *DB) CallsOf(ctx context.Context, tenant, id string, ids []string) (jig.Session, []jig.Call, error) {
	read, err := db.reads.do(topicKey{tenant, id}, ids, func(parts [][]string) (read callsRead, err error) {
		all := slices.Concat(parts...)
		err = db.once(ctx, tenant, func(t *tx) {
			first(t.queue("SessionGet", tenant, id), &read.session)
			list(t.queue("CallsGet", tenant, id, all), &read.calls)
			list(t.queue("PausesOfSession", tenant, id), &read.paused)
		})
		return read, err
	})
	if err != nil {
		return jig.Session{}, nil, err
	}
	if read.session == nil {
		return jig.Session{}, nil, noSession(id)
	}
	some := []jig.Call{}
	for i := range read.calls {
		if slices.Contains(ids, read.calls[i].ID) {
			c := read.calls[i].call()
			c.Paused = pausing(read.paused, c.Tool)
			some = append(some, c)
		}
	}
	return read.session.Session, some, nil
}

// TryQuick notes that the first attempts of calls begin before they are reserved. The note survives the death of the worker, not that of the
// database: its commit does not wait for the disk.
func (db *DB) TryQuick(ctx context.Context, tenant, id string, ids []string) error {
	return db.once(ctx, tenant, func(t *tx) {
		t.queue("CommitSoon")
		t.queue("CallsTry", tenant, id, ids)
	})
}

// finishedRow names a call that FinishQuick finished, and its tool.
type finishedRow struct {
	CallID, Tool string
	LastSeq      int64
}

// FinishQuick records first attempts of read-only, idempotent calls that have already run: begin, end and both events, for all of
// them in one statement. It returns the ids of the calls that it finished. The others have changed since they were read, and must be
// executed in the ordinary way.
func (db *DB) FinishQuick(ctx context.Context, tenant, id string, done []ledger.QuickCompletion) ([]string, error) {
	records := make([]*ledger.QuickCompletion, len(done))
	for i := range done {
		records[i] = &done[i]
	}
	finished, err := db.finishes.do(topicKey{tenant, id}, records, func(parts [][]*ledger.QuickCompletion) (quickFinished, error) {
		return db.finishQuick(ctx, tenant, id, slices.Concat(parts...))
	})
	var names []string
	for _, one := range records {
		if finished[one.CallID] == one {
			names = append(names, one.CallID)
		}
	}
	return names, err
}

// quickFinished holds the record with which each call was finished.
type quickFinished map[string]*ledger.QuickCompletion

// finishQuick stores records. If several are of the same call, only the first counts.
func (db *DB) finishQuick(ctx context.Context, tenant, id string, records []*ledger.QuickCompletion) (quickFinished, error) {
	byCall := quickFinished{}
	done := slices.DeleteFunc(slices.Clone(records), func(one *ledger.QuickCompletion) bool {
		_, twice := byCall[one.CallID]
		if !twice {
			byCall[one.CallID] = one
		}
		return twice
	})
	n := len(done)
	ids, versions, digests, statuses := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	bodies, errs := make([][]byte, n), make([][]byte, n)
	summaries, kinds, starts, ends := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	began, ended := make([]time.Time, n), make([]time.Time, n)
	private, untrusted := make([]bool, n), make([]bool, n)
	for i, one := range done {
		columns, err := columnsOf(one.Result)
		if err != nil {
			return nil, err
		}
		kind, d := ledger.Ended(ledger.Completion{Status: one.Status, Result: one.Result, Fence: 1}, "")
		d["duration_ms"] = one.Finished.Sub(one.Started).Milliseconds()
		ids[i], versions[i], digests[i], statuses[i] = one.CallID, one.Version, one.Digest, string(one.Status)
		bodies[i], errs[i], summaries[i] = columns.body, columns.err, columns.summary
		kinds[i], ends[i] = string(kind), string(details(d).json())
		starts[i] = string(details(ledger.Started(one.Input, 1, "")).json())
		began[i], ended[i] = one.Started, one.Finished
		private[i], untrusted[i] = one.Reads.Private, one.Reads.Untrusted
	}
	var rows []finishedRow
	err := db.gather(ctx, tenant, id, ids, func(t *tx) {
		list(t.queue("CallsFinishQuick", tenant, id, ids, versions, digests, statuses, bodies, summaries, errs, began, ended, kinds, starts, ends,
			private, untrusted), &rows)
		t.observe(func(o Observer) {
			for _, row := range rows {
				o.CallStarted(row.Tool, 1)
			}
		})
		t.observeCalls(func() []jig.Call {
			calls := make([]jig.Call, len(rows))
			for i, row := range rows {
				one := byCall[row.CallID]
				calls[i] = jig.Call{
					SessionID: id, ID: row.CallID, Tool: row.Tool, Status: one.Status, Result: &one.Result, StartedAt: &one.Started, FinishedAt: &one.Finished,
				}
			}
			return calls
		})
	})
	if err != nil {
		return nil, err
	}
	finished := quickFinished{}
	for _, row := range rows {
		finished[row.CallID] = byCall[row.CallID]
		db.committed(tenant, id, &row.LastSeq)
	}
	return finished, nil
}

// gathered is a short transaction that changes the given calls of a session.
type gathered struct {
	calls []string
	queue func(t *tx)
}

// gather runs the queued statements, which change the given calls of a session, as one transaction in one round trip. Each of these
// transactions updates the session's event counter. On their own they would wait for each other's commits, and each commit waits until the
// disk has written it. So those that are ready while another one runs are sent as one.
func (db *DB) gather(ctx context.Context, tenant, session string, calls []string, queue func(t *tx)) error {
	_, err := db.gatherer.do(topicKey{tenant, session}, gathered{calls, queue}, func(parts []gathered) (struct{}, error) {
		return struct{}{}, db.together(ctx, tenant, session, parts)
	})
	return err
}

// together sends transactions as one. It locks all calls before the first statement locks the session, as every transaction does.
func (db *DB) together(ctx context.Context, tenant, session string, parts []gathered) error {
	if len(parts) == 1 {
		return db.once(ctx, tenant, parts[0].queue)
	}
	return db.once(ctx, tenant, func(t *tx) {
		var calls []string
		for _, g := range parts {
			calls = append(calls, g.calls...)
		}
		t.queue("CallsHold", tenant, session, calls)
		for _, g := range parts {
			g.queue(t)
		}
	})
}

// combiner merges the requests of a session that arrive while an earlier one is running into one request. The zero value is ready to use.
type combiner[Q, A any] struct {
	mu sync.Mutex
	// waiting has an entry for each session with a running request. It lists the requests that wait for that one.
	waiting map[topicKey][]*combined[Q, A]
}

// combined is a request that is made of several.
type combined[Q, A any] struct {
	parts []Q
	// turn is closed when the request may be sent and no part may be added any more, done when it has been answered.
	turn, done chan struct{}
	answer     A
	err        error
}

// maxCombined limits how many requests are sent as one.
const maxCombined = 50

var errUnanswered = errors.New("the combined request was not answered")

// do sends a request, possibly combined with others of the same session. If a combined request fails, its parts are sent again, each alone,
// so that each of them fails for its own reasons only.
func (c *combiner[Q, A]) do(key topicKey, request Q, send func(parts []Q) (A, error)) (A, error) {
	all, first := c.join(key, request)
	if first {
		c.send(key, all, send)
	}
	<-all.done
	if all.err != nil && len(all.parts) > 1 {
		return send([]Q{request})
	}
	return all.answer, all.err
}

// join returns the combined request that a request becomes part of, and reports whether it is its first part, whose caller sends it.
func (c *combiner[Q, A]) join(key topicKey, request Q) (all *combined[Q, A], first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, busy := c.waiting[key]
	if n := len(waiting); n > 0 && len(waiting[n-1].parts) < maxCombined {
		all = waiting[n-1]
		all.parts = append(all.parts, request)
		return all, false
	}
	all = &combined[Q, A]{parts: []Q{request}, turn: make(chan struct{}), done: make(chan struct{}), err: errUnanswered}
	if c.waiting == nil {
		c.waiting = map[topicKey][]*combined[Q, A]{}
	}
	if busy {
		waiting = append(waiting, all)
	} else {
		close(all.turn)
	}
	c.waiting[key] = waiting
	return all, true
}

// send sends a combined request when its turn has come, and then gives the turn to the next one of the session.
func (c *combiner[Q, A]) send(key topicKey, all *combined[Q, A], send func(parts []Q) (A, error)) {
	<-all.turn
	defer c.next(key)
	defer close(all.done)
	all.answer, all.err = send(all.parts)
}

func (c *combiner[Q, A]) next(key topicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting[key]
	if len(waiting) == 0 {
		delete(c.waiting, key)
		return
	}
	c.waiting[key] = waiting[1:]
	close(waiting[0].turn)
}
