package store

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
