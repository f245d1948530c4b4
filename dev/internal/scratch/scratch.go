// Package scratch marks folders as used by a process, so that a later process can remove those of processes that were killed.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// mark returns the name of the file beside a folder that is locked while a process uses the folder. Folders of another kind have other marks.
func mark(dir, kind string) string { return dir + suffix(kind) }

func suffix(kind string) string { return ".jig-" + kind + "-in-use" }

// holdFor is how long Hold waits for a process that sweeps.
const holdFor = 5 * time.Second

// Hold marks a folder, which need not exist yet, as used until release is called or this process ends. It fails if the folder is in use.
func Hold(dir, kind string) (release func() error, err error) {
	path := mark(dir, kind)
	for until := time.Now().Add(holdFor); ; time.Sleep(time.Millisecond) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller chose the folder
		if err != nil {
			return nil, fmt.Errorf("mark %s as in use: %w", dir, err)
		}
		err = lock(file)
		if err == nil && isAt(file, path) {
			return func() error { return errors.Join(os.Remove(path), file.Close()) }, nil
		}
		_ = file.Close() // another process uses or sweeps it, or a sweep removed the file before it was locked
		if err != nil && time.Now().After(until) {
			return nil, fmt.Errorf("%s is in use: %w", dir, err)
		}
	}
}

// Sweep calls remove for each folder in parent that a process of the same user marked and did not release before it ended. All errors are joined
// and returned; a folder that cannot be removed keeps its mark.
func Sweep(parent, kind string, remove func(dir string) error) error {
	marks, err := filepath.Glob(filepath.Join(parent, "*"+suffix(kind)))
	if err != nil {
		return fmt.Errorf("look for leftovers in %s: %w", parent, err)
	}
	var failed error
	for _, path := range marks {
		failed = errors.Join(failed, sweep(path, strings.TrimSuffix(path, suffix(kind)), remove))
	}
	return failed
}

func sweep(path, dir string, remove func(dir string) error) error {
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0) //nolint:gosec // Sweep found it
	if err != nil {
		return nil // it belongs to another user, or has just been removed
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("the mark %s: %w", path, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() || lock(file) != nil || !isAt(file, path) {
		return nil // it is in use, or another process sweeps
	}
	if err := remove(dir); err != nil {
		return fmt.Errorf("remove what a killed process left in %s: %w", dir, err)
	}
	return os.Remove(path) //nolint:wrapcheck // the error names the file
}

// lock locks a file, or fails at once. The system releases the lock when the process ends, even if it is killed.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:wrapcheck // the callers say what it is for
}

// isAt reports whether a path still leads to an open file.
func isAt(file *os.File, path string) bool {
	here, err := file.Stat()
	there, pathErr := os.Stat(path)
	return err == nil && pathErr == nil && os.SameFile(here, there)
}
