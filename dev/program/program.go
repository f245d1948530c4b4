package program

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// name of the program, in the cache and beside jig-dev.
	name = "jig-temporal"
	// unusedFor is how long a program that nobody starts is kept.
	unusedFor = 30 * 24 * time.Hour
)

// Temporal returns the path of the server. It is taken from the user's cache directory, or built into it, when the sources
// are there, and otherwise expected beside this program. say is told when a build begins and, every few seconds of a wait,
// how far it is.
func Temporal(ctx context.Context, say func(string)) (string, error) {
	source := sources()
	if _, err := os.Stat(filepath.Join(source, "go.mod")); err != nil {
		return beside(source)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("a place for the Temporal server: %w", err)
	}
	return find(ctx, source, filepath.Join(cache, "jig", "temporal"), say)
}

// Describe names what the program at path consists of, with versions: "Temporal 1.32.1 and its Web UI 2.54.1".
func Describe(path string, withUI bool) string {
	versions := map[string]string{}
	if info, err := buildinfo.ReadFile(path); err == nil {
		for _, module := range info.Deps {
			versions[module.Path] = " " + strings.TrimPrefix(module.Version, "v")
		}
	}
	what := "Temporal" + versions["go.temporal.io/server"]
	if withUI {
		what += " and its Web UI" + versions["github.com/temporalio/ui-server/v2"]
	}
	return what
}

// sources is the folder of the module dev/temporal in the clone that this program was built from.
func sources() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "temporal")
}

// beside returns the server in the folder of this program.
func beside(source string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the Temporal server: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no Temporal server at %s, and its sources are not in %s: "+
			"build this program again in a clone of jig (%w)", path, source, err)
	}
	return path, nil
}

// find returns the program that was built from source in cache, after building it when it is missing. Of several processes
// one builds and the others wait.
func find(ctx context.Context, source, cache string, say func(string)) (string, error) {
	key, err := key(source)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, key)
	path := filepath.Join(folder, name)
	if used(path) {
		return path, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // programs are no secret
		return "", fmt.Errorf("a place for the Temporal server: %w", err)
	}
	release, err := lock(ctx, filepath.Join(cache, "build.lock"), say)
	if err != nil {
		return "", err
	}
	defer release()
	if used(path) {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // see above
		return "", fmt.Errorf("a place for the Temporal server: %w", err)
	}
	if err := build(ctx, source, path, say); err != nil {
		return "", err
	}
	prune(cache, key)
	return path, nil
}

// used reports whether the program is there, and notes that it is used now.
func used(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// lock waits until no other process builds.
func lock(ctx context.Context, path string, say func(string)) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a path of ours
	if err != nil {
		return nil, fmt.Errorf("lock the Temporal server's cache: %w", err)
	}
	waiting := every(say, func(passed time.Duration) string {
		return fmt.Sprintf("another process builds the Temporal server (waiting for %s)", passed)
	})
	defer waiting()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // nothing was written
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the Temporal server's cache: %w", errors.Join(err, file.Close()))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		}
	}
}

// prune removes programs that nobody has started for a long time. It is a courtesy: errors are ignored.
func prune(cache, keep string) {
	folders, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	for _, folder := range folders {
		if !folder.IsDir() || folder.Name() == keep {
			continue
		}
		path := filepath.Join(cache, folder.Name())
		info, err := os.Stat(filepath.Join(path, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(info.ModTime()) > unusedFor {
			_ = os.RemoveAll(path)
		}
	}
}
