package store

import (
	"context"

	"github.com/jig-run/jig"
)

// Notice stores notices in a transaction of their own, and takes them back when undo is set; the tests have no other way to
// store just any.
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
