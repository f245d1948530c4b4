package pg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A full disk is one clear line, however PostgreSQL and its programs say it.
func TestFull_IsReported(t *testing.T) {
	t.Parallel()
	s := &Server{dir: "/tmp/jig-dev-1", ephemeral: true}
	const want = "no space left on device for PostgreSQL in /tmp/jig-dev-1: free some, or set TMPDIR to a folder on another disk"
	for _, err := range []error{
		fmt.Errorf("keep the database's password: %w", &os.PathError{Op: "write", Path: "secret", Err: syscall.ENOSPC}),
		errors.New("initdb in /tmp: exit status 1\nfixing permissions\ninitdb: error: could not write file \"x\": No space left on device\nremoving data"),
	} {
		require.EqualError(t, s.full(err), want)
	}
	other := errors.New("broken")
	require.Equal(t, other, s.full(other))
	require.NoError(t, s.full(nil))
}

// A server that cannot be prepared leaves nothing behind, and does not remove a folder that is not its own.
func TestNew_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	parent, err := os.MkdirTemp(sharedTemp(), "jig-test-") //nolint:usetesting // the account of PostgreSQL must reach it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(parent)) })
	require.NoError(t, os.Chmod(parent, 0o755))
	list := func() []os.DirEntry {
		found, err := os.ReadDir(parent)
		require.NoError(t, err)
		return found
	}
	_, err = New(t.Context(), Options{Dir: filepath.Join(parent, "pg"), Ephemeral: true, BinDir: parent})
	require.Error(t, err, "there is no PostgreSQL")
	require.Empty(t, list())
	stranger := filepath.Join(parent, "stranger")
	require.NoError(t, os.WriteFile(stranger, nil, 0o600))
	_, err = New(t.Context(), Options{Dir: stranger, Ephemeral: true})
	require.ErrorContains(t, err, "is not a folder of user id")
	require.FileExists(t, stranger)
	require.Len(t, list(), 1)
}
