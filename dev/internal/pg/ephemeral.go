package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jig-run/jig/dev/internal/scratch"
)

// kind is the kind of the marks beside the folders of ephemeral servers.
const kind = "postgres"

// mark marks the folder of an ephemeral server as in use, and removes those beside it that killed processes left.
func (s *Server) mark(ctx context.Context, log *slog.Logger) (release func() error, err error) {
	parent := filepath.Dir(s.dir)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // the account must pass through
		return s.release, fmt.Errorf("data folder: %w", err)
	}
	err = scratch.Sweep(parent, kind, func(dir string) error {
		if err := clearStale(ctx, filepath.Join(dir, "data")); err != nil {
			return err
		}
		return os.RemoveAll(dir)
	})
	if err != nil {
		log.WarnContext(ctx, "old data are left", slog.Any("error", err))
	}
	if release, err = scratch.Hold(s.dir, kind); err != nil {
		return s.release, err
	}
	return release, nil
}

// discard removes the files of an ephemeral server.
func (s *Server) discard() error {
	if !s.ephemeral {
		return nil
	}
	var err error
	if s.owns {
		err = os.RemoveAll(s.dir)
	}
	release := s.release
	s.release = func() error { return nil }
	return errors.Join(err, release())
}

// full returns an error in one line in place of one that says that the disk is full.
func (s *Server) full(err error) error {
	if err == nil || !errors.Is(err, syscall.ENOSPC) && !strings.Contains(strings.ToLower(err.Error()), "no space left on device") {
		return err
	}
	if s.ephemeral {
		return fmt.Errorf("no space left on device for PostgreSQL in %s: free some, or set TMPDIR to a folder on another disk", s.dir)
	}
	return fmt.Errorf("no space left on device for PostgreSQL in %s: free some, or choose a data folder on another disk", s.dir)
}
