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
	// name is the name of the program, in the cache and in the folder of jig-dev.
	name = "jig-temporal"
	// unusedFor is how long an unused program is kept.
	unusedFor = 30 * 24 * time.Hour
)

// Temporal returns the path of the server. If the sources exist, it takes the server from the user's cache directory or builds it
// there. Otherwise it expects the server in the folder of this program. Temporal calls say when a build begins and every few
// seconds while it waits.
func Temporal(ctx context.Context, say func(string)) (string, error) {
	source := sources()
	if _, err := os.Stat(filepath.Join(source, "go.mod")); err != nil || !filepath.IsAbs(source) { // a release knows no path
		return beside(source)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder for the Temporal server: %w", err)
	}
	return find(ctx, source, filepath.Join(cache, "jig", "temporal"), say)
}

// Describe names the parts of the program at path with their versions, e.g. "Temporal 1.32.1 and its Web UI 2.54.1".
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

// sources returns the folder of the module dev/temporal in the clone that this program was built from.
func sources() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "temporal")
}

// beside returns the server in the folder of this program.
func beside(source string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the Temporal server: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no Temporal server at %s: keep the programs of a release in one folder, "+
			"or build this one again in a clone of jig (its sources were in %s; %w)", path, source, err)
	}
	return path, nil
}

// find returns the program in cache that was built from source. It builds the program if it is missing. If several processes need
// it, one builds and the others wait.
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
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // the programs are not secret
		return "", fmt.Errorf("create a folder for the Temporal server: %w", err)
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
		return "", fmt.Errorf("create a folder for the Temporal server: %w", err)
	}
	if err := build(ctx, source, path, say); err != nil {
		return "", err
	}
	prune(cache, key)
	return path, nil
}

// used reports whether the program exists, and records that it is used now.
func used(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// lock waits until no other process builds, and takes the lock for building.
func lock(ctx context.Context, path string, say func(string)) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // this package makes the path
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

// prune removes programs that have not been used for a long time. It ignores errors, because the cleanup is optional.
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
