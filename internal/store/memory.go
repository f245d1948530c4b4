package store

import (
	"context"

	"github.com/jig-run/jig"
)

// OlderCalls returns up to limit successful calls of a session's passes up to and including through, latest first. Calls inside
// compositions are not included. A limit below 1 or above 1,000 means 1,000.
func (db *DB) OlderCalls(ctx context.Context, tenant, id string, through, limit int) ([]jig.Call, error) {
	var rows []callRow
	var status *string
	err := db.once(ctx, tenant, func(t *tx) {
		value(t.queue("SessionStatus", tenant, id), &status)
		list(t.queue("CallsOlder", tenant, id, through, page(limit)), &rows)
	})
	if err != nil {
		return nil, err
	}
	if status == nil {
		return nil, noSession(id)
	}
	return calls(rows), nil
}
