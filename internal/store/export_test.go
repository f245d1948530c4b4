package store

import (
	"context"

	"github.com/jig-run/jig/internal/ledger"
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
