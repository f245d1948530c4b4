// Package scaffold writes new projects: a worker with a tool of its own, an agent, a policy, and their tests. The files are those of the
// folders project and shop, packages of this module that are built and tested with the rest of it. It must not know about the engine.
//
// [Find] says where a project gets jig from: a release, or the checkout that the running program was built in. [Files] returns the project's
// files with its module's name in them, and [Write] writes them to a folder without replacing anything.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed project shop
var project embed.FS

// File is a file of a new project. Its name has slashes and is relative to the project's folder.
type File struct {
	Name string
	Body []byte
}

// moduleForm is the form of a module's name that a project can have.
var moduleForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._~-]*(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

// CheckModule reports whether a project's module can have a name.
func CheckModule(name string) error {
	if !moduleForm.MatchString(name) || strings.HasSuffix(name, ".") {
		return fmt.Errorf("%q is not the name of a Go module; write e.g. shop or example.com/shop", name)
	}
	return nil
}

// ModuleOf returns a module's name for a project in a folder: the folder's name, if it can be one, or else "worker".
func ModuleOf(dir string) string {
	name := strings.ToLower(filepath.Base(dir))
	if CheckModule(name) != nil || name == "go" { // a module called go would take over the go command's own packages
		return "worker"
	}
	return name
}

// Files returns the files of a new project, sorted by name. The error is one of reading jig's checkout, if jig comes from one.
func Files(module string, jig Source) ([]File, error) {
	files, err := jig.goFiles(module)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(project, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := project.ReadFile(file)
		if err != nil {
			return err //nolint:wrapcheck // an embedded file can be read
		}
		name := strings.TrimPrefix(file, "project/")
		if path.Ext(name) == ".go" {
			body = bytes.ReplaceAll(body, []byte(`"`+Module+`/internal/scaffold/`), []byte(`"`+module+`/`))
			if body, err = format.Source(body); err != nil { // the imports have another order now
				return fmt.Errorf("format %s: %w", name, err)
			}
		}
		if path.Base(name) == "gitignore" { // under its real name it would concern this repository, and would not be embedded
			name = path.Join(path.Dir(name), ".gitignore")
		}
		files = append(files, File{Name: name, Body: body})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the embedded project: %w", err)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

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
