//go:build !unix

package file

import (
	"errors"
	"os"
)

// lock cannot take the lock of a folder on this system, so that writes with a precondition are refused.
func lock(*os.File) error { return errors.ErrUnsupported }
