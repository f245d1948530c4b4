package store

// Queries gives the tests every query by name.
func Queries() (map[string]string, error) { return loadQueries() }

// Watching gives the tests how many watch a session through this store.
func (db *DB) Watching(tenant, session string) int {
	db.hub.mu.Lock()
	defer db.hub.mu.Unlock()
	if t, ok := db.hub.topics[topicKey{tenant, session}]; ok {
		return len(t.watchers)
	}
	return 0
}
