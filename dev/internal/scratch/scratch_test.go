package scratch_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/scratch"
)

const kind = "test"

// holder is set in the process that TestSweep kills.
const holder = "JIG_TEST_HOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holder); dir != "" {
		if _, err := scratch.Hold(dir, kind); err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("held\n")
		select {}
	}
	os.Exit(m.Run())
}

func TestSweep_RemovesWhatKilledProcessesLeft(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	folder := func(name string) string {
		dir := filepath.Join(parent, name)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
		return dir
	}
	unmarked, used, released, left := folder("unmarked"), folder("used"), folder("released"), folder("left")
	release, err := scratch.Hold(used, kind)
	require.NoError(t, err)
	done, err := scratch.Hold(released, kind)
	require.NoError(t, err)
	require.NoError(t, done())

	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holder+"="+left)
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	_, err = out.Read(make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, scratch.Sweep(parent, kind, os.RemoveAll))
	require.DirExists(t, left, "its process runs")
	require.NoError(t, other.Process.Kill())
	require.Error(t, other.Wait())

	require.NoError(t, scratch.Sweep(parent, "another", os.RemoveAll))
	broken := errors.New("broken")
	require.ErrorIs(t, scratch.Sweep(parent, kind, func(string) error { return broken }), broken)
	require.DirExists(t, left)
	require.NoError(t, scratch.Sweep(parent, kind, os.RemoveAll))
	require.NoDirExists(t, left)
	for _, dir := range []string{unmarked, used, released} {
		require.DirExists(t, dir)
	}
	require.NoError(t, release())
	found, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, found, 3, "no mark is left")
}
