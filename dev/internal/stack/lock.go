package stack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// LockedError says that another process uses a data folder.
type LockedError struct {
	// Dir is the data folder.
	Dir string
	// PID is the id of that process, if it is known.
	PID string
}

// Error names the folder and the process, and says what to do.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != "" {
		who = "process " + e.PID
	}
	return fmt.Sprintf("%s is in use by %s: stop that one, choose another folder, or keep no data (ephemeral)", e.Dir, who)
}

// lock locks a data folder for this process. The system releases the lock when the process ends, even after a crash.
func lock(dir string) (release func() error, err error) {
	path := filepath.Join(dir, "dev.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // this package makes the path
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, readErr := os.ReadFile(path) //nolint:gosec // this package makes the path
		if readErr != nil {
			holder = nil
		}
		return nil, errors.Join(&LockedError{Dir: dir, PID: string(bytes.TrimSpace(holder))}, file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
	}
	if err := errors.Join(file.Truncate(0), write(file, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
	}
	// Closing the file alone would keep the lock as long as a process that is just being started has a copy of the descriptor.
	return func() error { return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close()) }, nil
}

// write writes text to the beginning of a file.
func write(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err //nolint:wrapcheck // the caller adds what it wrote
}
