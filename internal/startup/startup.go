// Package startup lets a process that starts before PostgreSQL or Temporal wait for them. It must not know what the process does with them.
package startup

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/store"
)

// EnvTimeout bounds how long a starting worker or server waits for PostgreSQL and Temporal.
const EnvTimeout = "JIG_START_TIMEOUT"

// The pauses between two attempts: the first, and the longest.
const (
	firstPause = time.Second
	maxPause   = 15 * time.Second
)

// Wait calls start until it succeeds. While its error says that PostgreSQL or Temporal does not answer, Wait logs the error and tries again after a
// pause, which grows from 1 s to 15 s. It returns any other error at once, and the last one if it has waited for limit; 0 means no limit. If ctx
// ends first, it returns ctx's error.
func Wait(ctx context.Context, limit time.Duration, logger *slog.Logger, start func(context.Context) error) error {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := start(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err() //nolint:wrapcheck // callers ask for this error
		case !absent(err) || limit > 0 && time.Since(began)+pause > limit:
			return err
		}
		logger.WarnContext(ctx, "waiting for a server that does not answer yet",
			slog.Any("error", err), slog.String("hint", jig.AsError(err).Hint), slog.Duration("again_in", pause))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // as above
		}
	}
}

// absent reports whether err means that a server does not answer, or is still starting. A wrong password, a database that does not exist and a
// namespace that is not known are no such errors: waiting would not help.
func absent(err error) bool {
	var starting *serviceerror.Unavailable
	return store.Absent(err) || jig.AsError(err).Reason == client.ReasonNoTemporal || errors.As(err, &starting)
}
