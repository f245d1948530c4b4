package worker

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig/internal/store"
)

// MarkRestored marks the open calls that may have run since the backup was made from which the database was restored. If dry is true, it
// only lists them. It needs no connection to Temporal.
func MarkRestored(ctx context.Context, s Settings, logger *slog.Logger, dry bool) ([]store.Restored, error) {
	db, err := openStore(ctx, s, nil, logger)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.MarkRestored(ctx, dry)
}
