package startup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/startup"
)

// fails returns a start function that fails with err that many times.
func fails(times int, err error) (start func(context.Context) error, attempts *int) {
	attempts = new(int)
	return func(context.Context) error {
		if *attempts++; *attempts <= times {
			return err
		}
		return nil
	}, attempts
}

var errNoTemporal = jig.Errorf(jig.CodeUnavailable, "no Temporal server answers at 127.0.0.1:7233").WithReason(client.ReasonNoTemporal).WithHint("start one")

// always is more often than any test tries.
const always = 1 << 30

func TestWait_TriesAgainUntilTheServerAnswers(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"no Temporal": errNoTemporal, "Temporal is starting": jig.Errorf(jig.CodeUnavailable, "cannot poll: %w", serviceerror.NewUnavailable("starting")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start, attempts := fails(6, err)
				var log bytes.Buffer
				began := time.Now()
				require.NoError(t, startup.Wait(t.Context(), 0, slog.New(slog.NewTextHandler(&log, nil)), start))
				require.Equal(t, 7, *attempts)
				require.Equal(t, (1+2+4+8+15+15)*time.Second, time.Since(began))
				require.Equal(t, 6, strings.Count(log.String(), "waiting for a server"), log.String())
				require.Contains(t, log.String(), "again_in=15s")
			})
		})
	}
}

func TestWait_ReturnsErrorsThatWaitingDoesNotMend(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"another error":       errors.New("no"),
		"refused by Temporal": jig.Errorf(jig.CodeUnavailable, "the Temporal server refuses the connection").WithReason(client.ReasonTemporalRefused),
		"no schema":           jig.Errorf(jig.CodeUnavailable, "the database does not have jig's schema yet"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start, attempts := fails(always, err)
				require.ErrorIs(t, startup.Wait(ctx, 0, slog.New(slog.DiscardHandler), start), err)
				require.Equal(t, 1, *attempts)
			})
		})
	}
}

func TestWait_GivesUpAtTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start, attempts := fails(always, errNoTemporal)
		require.ErrorIs(t, startup.Wait(ctx, 10*time.Second, slog.New(slog.DiscardHandler), start), errNoTemporal)
		require.Equal(t, 4, *attempts, "after 0, 1, 3 and 7 seconds")
	})
}

func TestWait_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start, _ := fails(always, errNoTemporal)
		require.ErrorIs(t, startup.Wait(ctx, 0, slog.New(slog.DiscardHandler), start), context.DeadlineExceeded)
	})
}
