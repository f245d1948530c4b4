//go:build unix

package file

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the lock of a folder, which all workers on this machine use while they replace a file in it. Closing the folder releases it.
func lock(folder *os.File) error {
	for {
		err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err //nolint:wrapcheck // the caller passes it to Explain
		}
	}
}
