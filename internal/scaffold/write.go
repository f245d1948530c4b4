package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Source code is no secret. If jig-dev runs as root, PostgreSQL's own user must be able to pass through the project's folder.
const (
	folderMode = 0o755
	fileMode   = 0o644
)

// ExistError says that a project cannot be written because some of its files exist.
type ExistError struct {
	Dir string
	// Names are those of the files, relative to Dir.
	Names []string
}

func (e *ExistError) Error() string {
	return fmt.Sprintf("%s already has %s; nothing was written", e.Dir, strings.Join(e.Names, ", "))
}

// Write writes files to a folder, which it creates if necessary. It never replaces a file: if one exists, it writes nothing and returns an
// [*ExistError]. After any other error, it removes the files that it has written.
func Write(dir string, files []File) error {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return fmt.Errorf("create the project's folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the project's folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	var there []string
	for _, f := range files {
		if _, err := root.Lstat(f.Name); err == nil || !errors.Is(err, fs.ErrNotExist) {
			there = append(there, f.Name)
		}
	}
	if len(there) > 0 {
		return &ExistError{Dir: dir, Names: there}
	}
	for n, f := range files {
		if err := writeNew(root, f); err != nil {
			for _, done := range files[:n] {
				err = errors.Join(err, root.Remove(done.Name))
			}
			return fmt.Errorf("write the project: %w", err)
		}
	}
	return nil
}

// writeNew writes a file that must not exist.
func writeNew(root *os.Root, f File) error {
	if err := root.MkdirAll(path.Dir(f.Name), folderMode); err != nil {
		return err //nolint:wrapcheck // Write adds what it did
	}
	file, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}
	_, err = file.Write(f.Body)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, root.Remove(f.Name))
	}
	return nil
}
