package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clearStale handles the postmaster.pid of a server that was not stopped properly. The caller holds the lock of the data folder,
// so a server that still runs there is an orphan of a killed process; clearStale stops it. If the process id now belongs to
// another program, which PostgreSQL cannot detect, clearStale removes the file. PostgreSQL handles all other cases itself.
func clearStale(ctx context.Context, dataDir string) error {
	path := filepath.Join(dataDir, "postmaster.pid")
	content, err := os.ReadFile(path) //nolint:gosec // this package makes the path
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 {
		return nil // PostgreSQL reports a malformed file
	}
	if !alive(pid) {
		return nil
	}
	if dataDir, err = filepath.EvalSymlinks(dataDir); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if isServer(ctx, pid, dataDir) {
		return stopOrphan(ctx, pid, dataDir)
	}
	// The backends of a server whose main process was killed end by themselves a moment later.
	waiting, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	if poll(waiting, func() bool { return !inUse(ctx, dataDir) }) != nil {
		return nil // the folder is in use, which PostgreSQL reports itself
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the stale %s: %w", path, err)
	}
	return nil
}

// stopOrphan stops a server that is not a child of this process: first with a fast shutdown, then with an immediate one.
func stopOrphan(ctx context.Context, pid int, dataDir string) error {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the PostgreSQL (process %d) left behind in %s: %w", pid, dataDir, err)
		}
		waiting, cancel := context.WithTimeout(ctx, stopPatience)
		err := poll(waiting, func() bool { return !alive(pid) })
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("the PostgreSQL (process %d) left behind in %s does not stop: stop it with kill -9 %d", pid, dataDir, pid)
}

// alive reports whether a process exists.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// poll waits until done is true or ctx ends.
func poll(ctx context.Context, done func() bool) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the callers add what they waited for
		case <-ticker.C:
		}
	}
	return nil
}
