package store

import (
	"context"

	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/livetext"
	"github.com/jig-run/jig/internal/protocol"
)

// Queries returns every query by name.
func Queries() (map[string]string, error) { return loadQueries() }

// Watching returns how many watchers a session has in this store.
func (db *DB) Watching(tenant, session string) int {
	db.hub.mu.Lock()
	defer db.hub.mu.Unlock()
	if t, ok := db.hub.topics[topicKey{tenant, session}]; ok {
		return len(t.watchers)
	}
	return 0
}

// EventsCursor returns the cursor after the events that a transaction wrote.
func (db *DB) EventsCursor(tenant string, written int64) (string, error) {
	return db.cursors.seal(pageOf{Tenant: tenant, List: "events"}, place{Written: written})
}

// Draft returns the text that this store has of a session.
func (db *DB) Draft(tenant, session string) string {
	d := db.hub.texts.board.After(livetext.Session{Tenant: tenant, ID: session}, protocol.TextPosition{})
	if d == nil {
		return ""
	}
	return d.Text
}

// CompleteFast exposes completeFast.
func (db *DB) CompleteFast(ctx context.Context, c ledger.Completion) (bool, error) {
	row, err := db.completeFast(ctx, c)
	return row != nil, err
}

// Gathered returns how many transactions of a session are running or waiting in gather.
func (db *DB) Gathered(tenant, session string) int {
	db.gatherer.mu.Lock()
	defer db.gatherer.mu.Unlock()
	waiting, busy := db.gatherer.waiting[topicKey{tenant, session}]
	if !busy {
		return 0
	}
	n := 1
	for _, all := range waiting {
		n += len(all.parts)
	}
	return n
}

// Observable counts a tenant's sessions and attempts and, by status and tool, its calls that have ended, as the rows say.
func (db *DB) Observable(ctx context.Context, tenant string) (map[string]int, error) {
	counts := map[string]int{}
	return counts, db.transact(ctx, tenant, func(t *tx) error {
		t.begun = true
		for _, statement := range []string{"begin", "set local jig.tenant = '" + tenant + "'"} {
			if _, err := t.conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		rows, err := t.conn.Query(ctx, `select 'sessions', count(*) from sessions having count(*) > 0
			union all select 'attempts', sum(fence) from calls where fence > 0 having sum(fence) > 0
			union all select status || ' ' || tool, count(*) from calls
			where status in ('succeeded', 'failed', 'denied', 'expired', 'canceled', 'duplicate') group by 1`)
		if err != nil {
			return err
		}
		for rows.Next() {
			var name string
			var n int
			if err := rows.Scan(&name, &n); err != nil {
				return err
			}
			counts[name] = n
		}
		return rows.Err()
	})
}

// Announced acts as if an announcement of a session's events had arrived.
func (db *DB) Announced(tenant, session string, seq int64) {
	db.hub.advanced(topicKey{tenant, session}, seq)
}

// Awaits reports whether announced events of a watched session have not been read yet.
func (db *DB) Awaits(tenant, session string) bool {
	db.hub.mu.Lock()
	defer db.hub.mu.Unlock()
	t, ok := db.hub.topics[topicKey{tenant, session}]
	return ok && t.known > t.seen
}
