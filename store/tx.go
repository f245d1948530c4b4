package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jig-run/jig"
)

// tries bounds how often a transaction that lost a race is run again.
const tries = 4

// tx is a transaction of one tenant. Statements are queued and travel together: the first flush carries BEGIN and the
// tenant, commit carries COMMIT.
type tx struct {
	db     *DB
	conn   *pgxpool.Conn
	tenant string
	batch  pgx.Batch
	begun  bool
	ended  bool
	// final says that what was sent last makes the work stay, if it arrives.
	final bool
}

// once runs the queued statements as one transaction in one round trip: a pipeline without BEGIN is one by itself.
func (db *DB) once(ctx context.Context, tenant string, queue func(t *tx)) error {
	return db.retried(ctx, tenant, func(t *tx) error {
		t.begun, t.ended, t.final = true, true, true
		t.queue("TenantSet", tenant)
		queue(t)
		return t.flush(ctx)
	})
}

// transact runs work as one transaction. Unless work calls commit, nothing it did stays.
func (db *DB) transact(ctx context.Context, tenant string, work func(t *tx) error) error {
	return db.retried(ctx, tenant, work)
}

// retried gives work a connection, and another try when it lost a race with another transaction. The error is NotExecuted when
// nothing that the transaction did has stayed for certain.
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

// attempt runs work once; stayed says of an error that what was done may have stayed.
func (db *DB) attempt(ctx context.Context, tenant string, work func(t *tx) error) (stayed bool, err error) {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return false, err //nolint:wrapcheck // translated by retried
	}
	defer conn.Release()
	t := &tx{db: db, conn: conn, tenant: tenant}
	defer t.rollback(ctx)
	err = work(t)
	return t.final && !refused(err), err
}

// refused reports whether PostgreSQL, or this package, said no: then the transaction was rolled back. When a connection breaks, nobody
// knows what PostgreSQL did with the last that it was sent.
func refused(err error) bool {
	var own *jig.Error
	var pg *pgconn.PgError
	return errors.As(err, &own) || pgconn.SafeToRetry(err) || errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR"
}

// queue adds a named statement to what travels next.
func (t *tx) queue(name string, args ...any) *pgx.QueuedQuery {
	if !t.begun {
		t.begun = true
		t.batch.Queue("begin")
		t.queue("TenantSet", t.tenant)
	}
	text, ok := t.db.queries[name]
	if !ok {
		panic("store: no query " + name) // a test prepares every query, and another finds every name in the code
	}
	return t.batch.Queue(text, args...)
}

// flush sends what is queued and waits for the answers.
func (t *tx) flush(ctx context.Context) error {
	batch := t.batch
	t.batch = pgx.Batch{}
	return t.conn.SendBatch(ctx, &batch).Close() //nolint:wrapcheck // translated by retried
}

// commit sends what is queued and makes the transaction's work stay.
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

// rollback ends a transaction that was begun and not committed, also when ctx is over.
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

// list reads all rows of a queued query.
func list[T any](q *pgx.QueuedQuery, into *[]T) {
	q.Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
		*into = all
		return err //nolint:wrapcheck // translated by retried
	})
}

// first reads the first row of a queued query; into stays nil when there is none.
func first[T any](q *pgx.QueuedQuery, into **T) {
	*into = nil
	q.Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[T])
		if len(all) > 0 {
			*into = all[0]
		}
		return err //nolint:wrapcheck // translated by retried
	})
}

// value reads the first column of the first row of a queued query; into stays nil when there is none, or when it is null.
func value[T any](q *pgx.QueuedQuery, into **T) {
	*into = nil
	q.Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowTo[*T])
		if len(all) > 0 {
			*into = all[0]
		}
		return err //nolint:wrapcheck // translated by retried
	})
}

// column reads the first column of all rows of a queued query.
func column[T any](q *pgx.QueuedQuery, into *[]T) {
	q.Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowTo[T])
		*into = all
		return err //nolint:wrapcheck // translated by retried
	})
}

// affected reads how many rows a queued statement changed.
func affected(q *pgx.QueuedQuery, into *int64) {
	q.Exec(func(tag pgconn.CommandTag) error {
		*into = tag.RowsAffected()
		return nil
	})
}
