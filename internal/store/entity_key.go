package store

import (
	"context"

	"github.com/jig-run/jig/internal/entity"
)

// EntityByKey returns the entity that was created under a key, even if it was deleted since. found is false when there is none.
func (db *DB) EntityByKey(ctx context.Context, tenant, key string) (e entity.Entity, found bool, err error) {
	var row *entityRow
	if err := db.once(ctx, tenant, func(t *tx) { first(t.queue("EntityByKey", tenant, text(key)), &row) }); err != nil || row == nil {
		return entity.Entity{}, false, err
	}
	e, err = row.entity()
	return e, err == nil, err
}
