package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// flushedVariable is set for the program that flushing runs, so that it does not start servers again.
const flushedVariable = "JIG_BENCH_FLUSH"

// longestFlush is the largest commit_delay that PostgreSQL accepts.
const longestFlush = 100 * time.Millisecond

// flushing runs this program with servers of its own, whose PostgreSQL delays each flush of the write-ahead log like a slow disk.
//
// PostgreSQL sleeps for commit_delay in XLogFlush, before it writes, if at least commit_siblings other transactions are open; with 0 it always
// sleeps. A transaction that commits calls XLogFlush before it becomes visible and releases its locks, so others that wait for its rows wait for
// the delay, too. Unlike on a slow disk, a transaction that is ready during the sleep shares the flush instead of waiting for the next one.
func flushing(ctx context.Context, delay time.Duration, args []string, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	servers, err := exec.LookPath("jig-dev")
	if err != nil {
		if servers, err = filepath.Abs(".cache/bin/jig-dev"); err != nil {
			return fmt.Errorf("find jig-dev: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, servers, slices.Concat(serverFlags(delay), []string{"--", self}, args)...) //nolint:gosec // the project's own program
	cmd.Env = append(withoutServers(os.Environ()), flushedVariable+"="+delay.String())
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("-flush needs jig-dev, which `make jig-dev` builds: %w", err)
	}
	return nil
}

func serverFlags(delay time.Duration) []string {
	return []string{
		"--ephemeral", "--no-worker", "--no-server", "--no-ui", "--quiet", "--temporal-addr", "127.0.0.1:0", "--pg-port", "0",
		"--pg-setting", fmt.Sprintf("commit_delay=%d,commit_siblings=0,wal_level=replica,max_wal_size=2GB", delay.Microseconds()),
	}
}

// withoutServers removes the variables that name running servers.
func withoutServers(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		return strings.HasPrefix(variable, "JIG_DATABASE_") || strings.HasPrefix(variable, "JIG_TEMPORAL_")
	})
}

// flushDelay describes the delay of PostgreSQL's flushes for the line of conditions. It returns "" if there is none.
func (b *bench) flushDelay(ctx context.Context) string {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return ""
	}
	var delay, siblings int
	err = conn.QueryRow(ctx, "select current_setting('commit_delay')::int, current_setting('commit_siblings')::int").Scan(&delay, &siblings)
	if errors.Join(err, conn.Close(ctx)) != nil || delay == 0 {
		return ""
	}
	return fmt.Sprintf(" · each flush of the write-ahead log delayed by %s (commit_delay = %d, commit_siblings = %d)",
		time.Duration(delay)*time.Microsecond, delay, siblings)
}
