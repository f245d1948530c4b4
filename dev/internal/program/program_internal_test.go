package program

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// module is the source of a program that is quick to build.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/quick\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() { println(\"quick\") }\n")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func discard(string) {}

func TestFind_BuildsOnceForEqualSources(t *testing.T) {
	t.Parallel()
	source, cache := module(t), t.TempDir()
	paths := make([]string, 4)
	infos := make([]os.FileInfo, len(paths))
	errs := make([]error, len(paths))
	var finding sync.WaitGroup
	for i := range paths {
		finding.Go(func() {
			var err error
			if paths[i], err = find(t.Context(), source, cache, discard); err == nil {
				infos[i], err = os.Stat(paths[i])
			}
			errs[i] = err
		})
	}
	finding.Wait()
	for i := range paths {
		require.NoError(t, errs[i])
		require.Equal(t, paths[0], paths[i])
		require.True(t, os.SameFile(infos[0], infos[i]), "it was built again")
	}

	clone := t.TempDir()
	require.NoError(t, os.CopyFS(clone, os.DirFS(source)))
	write(t, filepath.Join(clone, "main_test.go"), "package main\n")
	again, err := find(t.Context(), clone, cache, discard)
	require.NoError(t, err)
	require.Equal(t, paths[0], again, "a second clone uses the same program, and its tests do not matter")
}

func TestFind_BuildsAgainWhenASourceChanges(t *testing.T) {
	t.Parallel()
	source, cache := module(t), t.TempDir()
	before, err := find(t.Context(), source, cache, discard)
	require.NoError(t, err)
	write(t, filepath.Join(source, "sub", "sub.go"), "package sub\n")
	after, err := find(t.Context(), source, cache, discard)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	require.FileExists(t, before, "another clone may run it")
}

func TestFind_ShowsWhyABuildFailed(t *testing.T) {
	t.Parallel()
	source, cache := module(t), t.TempDir()
	write(t, filepath.Join(source, "main.go"), "package main\n\nfunc main() { nothing() }\n")
	_, err := find(t.Context(), source, cache, discard)
	require.ErrorContains(t, err, "undefined: nothing")
	require.ErrorContains(t, err, source)

	write(t, filepath.Join(source, "main.go"), "package main\n\nfunc main() {}\n")
	_, err = find(t.Context(), source, cache, discard)
	require.NoError(t, err, "a failure is not remembered")
}

func TestFind_StopsWaitingWhenCanceled(t *testing.T) {
	t.Parallel()
	source, cache := module(t), t.TempDir()
	release, err := lock(t.Context(), filepath.Join(cache, "build.lock"), discard)
	require.NoError(t, err)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = find(ctx, source, cache, discard)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPrune_RemovesUnusedPrograms(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	for folder, age := range map[string]time.Duration{"kept": 2 * unusedFor, "recent": unusedFor / 2, "old": 2 * unusedFor} {
		path := filepath.Join(cache, folder, name)
		write(t, path, "program")
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	write(t, filepath.Join(cache, "broken", "build-1", "half"), "half a program")
	write(t, filepath.Join(cache, "build.lock"), "")
	prune(cache, "kept")
	for _, stays := range []string{"kept", "recent"} {
		require.FileExists(t, filepath.Join(cache, stays, name))
	}
	require.FileExists(t, filepath.Join(cache, "build.lock"))
	for _, goes := range []string{"old", "broken"} {
		require.NoDirExists(t, filepath.Join(cache, goes))
	}
}

func TestCounter_TellsPackagesFromErrors(t *testing.T) {
	t.Parallel()
	var c counter
	for _, part := range []string{"runtime\nnet/", "http\n# example.com/quick\n./main.go:3:15: undefined: nothing\ngo: downlo", "ading x v1\nbytes\n"} {
		_, err := c.Write([]byte(part))
		require.NoError(t, err)
	}
	require.Equal(t, "3 of at most 10 packages", c.progress(10))
	require.Equal(t, "3 packages", c.progress(0))
	require.Equal(t, "# example.com/quick\n./main.go:3:15: undefined: nothing\ngo: downloading x v1\n", c.failure())
}

func TestEvery_ReportsAfterFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		done := every(func(text string) { said = append(said, text) }, time.Duration.String)
		time.Sleep(27 * time.Second)
		done()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"5s", "15s", "25s"}, said)
	})
}
