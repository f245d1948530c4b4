package store

import "context"

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
