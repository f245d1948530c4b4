package program

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// key returns a cache key for everything that a build depends on: the files of source without its tests, the version of Go, the
// platform and the arguments of the build.
func key(source string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH, arguments(""))
	root, err := os.OpenRoot(source)
	if err != nil {
		return "", fmt.Errorf("the sources of the Temporal server: %w", err)
	}
	// fs.WalkDir visits the names in order, so the key does not depend on the file system.
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(root.FS(), path)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		fmt.Fprintln(sum, filepath.ToSlash(path), len(content))
		sum.Write(content)
		return nil
	})
	if err := errors.Join(err, root.Close()); err != nil {
		return "", fmt.Errorf("the sources of the Temporal server: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]), nil
}
