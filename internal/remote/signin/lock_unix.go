//go:build unix

package signin

import (
	"os"
	"syscall"
)

// tryLock takes the lock of a file, or returns an error if another process has it.
func tryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:wrapcheck // the caller wraps it
}
