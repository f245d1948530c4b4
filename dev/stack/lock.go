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
	// PID of the process that has it, when it is known.
	PID string
}

// Error names the folder, the process and the ways out.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != "" {
		who = "process " + e.PID
	}
	return fmt.Sprintf("%s is in use by %s: stop that one, choose another folder, or keep no data (ephemeral)", e.Dir, who)
}

// lock takes a data folder for this process. The system gives it free when the process ends, however it ends.
func lock(dir string) (release func() error, err error) {
	path := filepath.Join(dir, "dev.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a path of ours
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, readErr := os.ReadFile(path) //nolint:gosec // a path of ours
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
	return file.Close, nil
}

// write puts text at the beginning of a file.
func write(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err //nolint:wrapcheck // the caller says what it was for
}
