package store

import (
	"context"

	"github.com/jig-run/jig"
)

// Notice stores arbitrary notices in a transaction of their own, and rolls it back when undo is set. Tests have no other way to do
// that.
func (db *DB) Notice(ctx context.Context, tenant string, undo bool, notices ...jig.Notice) error {
	return db.transact(ctx, tenant, func(t *tx) error {
		for _, n := range notices {
			if err := t.notice(n); err != nil {
				return err
			}
		}
		if undo {
			return t.flush(ctx)
		}
		return t.commit(ctx)
	})
}
