package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/confine"
)

// tries is how many times in total a transaction runs if it keeps losing races.
const tries = 4

// tx is a transaction of one tenant. Statements are queued and sent together: the first flush also carries BEGIN and the tenant
// setting, and commit also carries COMMIT.
type tx struct {
	db     *DB
	conn   *pgxpool.Conn
	tenant string
	batch  pgx.Batch
	begun  bool
	ended  bool
	// above lists the sessions that got events of the transaction's session because they wait for it.
	above []aboveRow
	// readOnly makes the transaction refuse to write.
	readOnly bool
	// final reports whether the last batch sent makes the work permanent if it reaches the server.
	final bool
	// changes are reported to the observer once the transaction is committed.
	changes []func(context.Context)
}

// once runs the queued statements as one transaction in one round trip. A pipeline without BEGIN is a transaction by itself.
func (db *DB) once(ctx context.Context, tenant string, queue func(t *tx)) error {
	return db.retried(ctx, tenant, func(t *tx) error {
		t.begun, t.ended, t.final = true, true, true
		t.opening()
		queue(t)
		return t.flush(ctx)
	})
}

// snapshot reads with the queued statements in one round trip. They all see the same state; those of once each see the latest.
func (db *DB) snapshot(ctx context.Context, tenant string, queue func(t *tx)) error {
	return db.retried(ctx, tenant, func(t *tx) error {
		t.begun = true
		t.batch.Queue("begin isolation level repeatable read, read only")
		t.opening()
		queue(t)
		return t.commit(ctx)
	})
}

// transact runs work as one transaction. Unless work calls commit, everything it did is rolled back.
func (db *DB) transact(ctx context.Context, tenant string, work func(t *tx) error) error {
	return db.retried(ctx, tenant, work)
}

// retried runs work on a connection from the pool, and runs it again when it loses a race with another transaction. The error has
// NotExecuted set when it is certain that nothing the transaction did was kept.
func (db *DB) retried(ctx context.Context, tenant string, work func(t *tx) error) error {
	for try := 1; ; try++ {
		stayed, err := db.attempt(ctx, tenant, work)
		switch state(err) {
		case stateSerializationFailure, stateDeadlock, stateUniqueViolation:
			if try < tries {
				continue
			}
		}
		err = db.translate(err)
		if err == nil || stayed {
			return err
		}
		e := *jig.AsError(err)
		e.NotExecuted = true
		return &e
	}
}

// attempt runs work once. When it returns an error, stayed reports whether the work may have been committed.
func (db *DB) attempt(ctx context.Context, tenant string, work func(t *tx) error) (stayed bool, err error) {
	if err := db.turns.take(ctx, tenant); err != nil {
		return false, err
	}
	defer db.turns.give()
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return false, err //nolint:wrapcheck // translated by retried
	}
	defer conn.Release()
	t := &tx{db: db, conn: conn, tenant: tenant, readOnly: confine.IsReadOnly(ctx)}
	defer t.rollback(ctx)
	if err = work(t); err == nil && t.ended {
		t.observed(ctx)
		for _, row := range t.above {
			db.committed(tenant, row.SessionID, &row.LastSeq)
		}
	}
	return t.final && !refused(err), err
}

// refused reports whether PostgreSQL or this package rejected the work, so that the transaction was rolled back. When a connection
// breaks instead, nobody knows whether PostgreSQL carried out the last batch.
func refused(err error) bool {
	var own *jig.Error
	var pg *pgconn.PgError
	return errors.As(err, &own) || pgconn.SafeToRetry(err) || errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR"
}

// opening queues the statements that every transaction begins with.
func (t *tx) opening() {
	t.queue("TenantSet", t.tenant)
	if t.readOnly {
		t.queue("ReadOnlySet")
	}
}

// queue adds a named statement to the next batch.
func (t *tx) queue(name string, args ...any) *pgx.QueuedQuery {
	if !t.begun {
		t.begun = true
		t.batch.Queue("begin")
		t.opening()
	}
	text, ok := t.db.queries[name]
	if !ok {
		panic("store: no query " + name) // a test finds every name that the code uses
	}
	if strings.Contains(text, customPlan) {
		t.batch.Queue("set local plan_cache_mode = force_custom_plan")
	}
	if strings.Contains(text, orderedPlan) {
		t.batch.Queue("select set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)")
	}
	return t.batch.Queue(text, args...)
}

// flush sends the queued statements and waits for the answers.
func (t *tx) flush(ctx context.Context) error {
	batch := t.batch
	t.batch = pgx.Batch{}
	return t.conn.SendBatch(ctx, &batch).Close() //nolint:wrapcheck // translated by retried
}

// commit sends the queued statements and commits the transaction.
func (t *tx) commit(ctx context.Context) error {
	var answer string
	t.batch.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		answer = tag.String()
		return nil
	})
	t.final = true
	err := t.flush(ctx)
	if err == nil && answer == "COMMIT" {
		t.ended = true
	} else if err == nil {
		err = jig.Errorf(jig.CodeInternal, "the transaction was not committed: %s", answer)
	}
	return err
}

// rollback ends a transaction that began and was not committed, even when ctx has ended.
func (t *tx) rollback(ctx context.Context) {
	if !t.begun || t.ended || t.conn.Conn().IsClosed() {
		return
	}
	if t.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := t.conn.Exec(ctx, "rollback"); err != nil {
		_ = t.conn.Conn().Close(ctx) // the pool makes a new one
	}
}

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
