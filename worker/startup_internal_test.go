package worker

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/store/storetest"
)

// gate is an address that closes every connection until it is open, and then passes connections on.
type gate struct {
	net.Listener
	open atomic.Bool
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	g := &gate{Listener: listener}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			var onward net.Conn
			if g.open.Load() {
				onward, err = new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", to)
			}
			if onward == nil || err != nil {
				_ = from.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from) //nolint:errcheck // one side has closed the connection
				_, _ = to.Close(), from.Close()
			}
			go pass(onward, from)
			go pass(from, onward)
		}
	}()
	return g
}

// lines passes on the lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// until reads lines until one contains all the words.
func (l lines) until(t *testing.T, words ...string) {
	t.Helper()
read:
	for {
		select {
		case line := <-l:
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue read
				}
			}
			return
		case <-t.Context().Done():
			require.Fail(t, "the log does not say it", "%v", words)
		}
	}
}

// A worker that starts before PostgreSQL and Temporal says so, waits for them, and then works.
func TestRun_WaitsForPostgreSQLAndTemporal(t *testing.T) {
	t.Parallel()
	storetest.New(t) // so that the database is migrated
	database, err := url.Parse(storetest.URL(t))
	require.NoError(t, err)
	postgres, temporal := newGate(t, database.Host), newGate(t, os.Getenv("JIG_TEMPORAL_ADDRESS"))
	database.Host = postgres.Addr().String()
	settings, err := LoadSettings(append(os.Environ(), "JIG_DATABASE_URL="+database.String(), "JIG_TEMPORAL_ADDRESS="+temporal.Addr().String(),
		"JIG_TASK_QUEUE="+storetest.Tenant(t), "JIG_WORKDIR="+t.TempDir()))
	require.NoError(t, err)
	log := make(lines, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, settings, slog.New(slog.NewTextHandler(log, nil))) }()
	log.until(t, "waiting for a server", "PostgreSQL")
	postgres.open.Store(true)
	log.until(t, "waiting for a server", "Temporal")
	temporal.open.Store(true)
	log.until(t, "worker ready")
	cancel()
	require.NoError(t, <-ended)
}

// Whoever stops a worker that waits has not made it fail.
func TestRun_StopsWhileItWaits(t *testing.T) {
	t.Parallel()
	log := make(lines, 1000)
	settings, err := LoadSettings([]string{"JIG_DEV_ENV=", "JIG_DATABASE_URL=postgres://jig_app@" + newGate(t, "").Addr().String() + "/jig", "JIG_WORKDIR=" + t.TempDir()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, settings, slog.New(slog.NewTextHandler(log, nil))) }()
	log.until(t, "waiting for a server", "PostgreSQL")
	cancel()
	require.NoError(t, <-ended)
}
