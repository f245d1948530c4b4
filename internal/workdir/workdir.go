// Package workdir confines tools to the folder of the calling tenant and explains errors of the file system: a path outside the folder is
// NOT_PERMITTED, and a missing file is NOT_FOUND with the most similar names. It does not know what tools do with files.
package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/suggest"
)

// Dir is an open working directory. Close it after use. Its paths use slashes and are relative to the directory.
type Dir struct {
	*os.Root
	at string
}

// Open opens a working directory; an empty name means the current folder.
func Open(name string) (*Dir, error) {
	if name == "" {
		name = "."
	}
	at, err := filepath.Abs(name)
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "the working directory cannot be found: %w", err)
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "the working directory cannot be opened: %w", err).
			WithHint("set JIG_WORKDIR of the worker to a folder it can read")
	}
	return &Dir{Root: root, at: at}, nil
}

// Private is the name of the folder in which jig-dev keeps its own files, including the passwords of its database. No tool reads or writes
// anything below a folder with this name, in upper or lower case.
const Private = ".jig"

// Clean turns a path given by a caller into a path within the directory. "" means the directory itself; an absolute path is accepted if it
// is inside. A path that leads outside, or into [Private], is NOT_PERMITTED. Whether symbolic links leave the directory is checked when
// they are followed.
func (d *Dir) Clean(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", jig.Errorf(jig.CodeInvalidInput, "the path contains a NUL character").WithField("/path")
	}
	local := name
	if filepath.IsAbs(local) {
		rel, err := filepath.Rel(d.at, local)
		if err != nil {
			return "", escapes(name)
		}
		local = rel
	}
	local = path.Clean(filepath.ToSlash(local))
	if local != "." && !filepath.IsLocal(filepath.FromSlash(local)) {
		return "", escapes(name)
	}
	if d.private(local) {
		return "", jig.Errorf(jig.CodeNotPermitted, "%q belongs to jig itself", name).WithField("/path").WithReason("protected_path")
	}
	return local, nil
}

// private reports whether a path leads into jig's own folder, by name or through symbolic links.
func (d *Dir) private(local string) bool {
	if Holds(local, Private) {
		return true
	}
	base, err := filepath.EvalSymlinks(d.at)
	if err != nil {
		return false
	}
	for name := local; name != "."; name = path.Dir(name) { // if the file is missing, its folder decides
		real, err := filepath.EvalSymlinks(filepath.Join(base, filepath.FromSlash(name))) //nolint:revive // the builtin is not used here
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(base, real)
		return err == nil && Holds(filepath.ToSlash(rel), Private)
	}
	return false
}

// Holds reports whether an element of a path equals a name, ignoring case, because many file systems ignore case too.
func Holds(name, element string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(e string) bool { return strings.EqualFold(e, element) })
}

func escapes(name string) error {
	return jig.Errorf(jig.CodeNotPermitted, "%q is outside the working directory", name).WithField("/path").
		WithReason("outside_workdir").WithHint("use a path relative to the working directory, without .. that leads out of it")
}

// Regular opens a regular file for reading and returns its size in bytes.
func (d *Dir) Regular(name string) (*os.File, int64, error) {
	if _, err := d.Clean(name); err != nil { // the name was found in the directory, not given by a caller
		return nil, 0, err
	}
	info, err := d.Stat(name)
	if err != nil {
		return nil, 0, d.Explain(name, err)
	}
	if err := regular(name, info); err != nil {
		return nil, 0, err
	}
	f, err := d.Open(name)
	if err != nil {
		return nil, 0, d.Explain(name, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(name, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, d.Explain(name, err)
	}
	return f, info.Size(), nil
}

func regular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return jig.Errorf(jig.CodeInvalidInput, "%q is a folder, not a file", name).WithField("/path").
			WithReason("is_a_directory").WithHint("list it with file.list")
	case !info.Mode().IsRegular():
		return jig.Errorf(jig.CodeInvalidInput, "%q is neither a file nor a folder", name).WithField("/path").WithReason("special_file")
	}
	return nil
}

// Explain translates a file system error for name. A *jig.Error is returned unchanged.
func (d *Dir) Explain(name string, err error) error {
	var known *jig.Error
	var failed *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	// The os package does not export its error for a path that leaves the root.
	case errors.As(err, &failed) && strings.Contains(failed.Err.Error(), "escapes from parent"):
		return escapes(name)
	case errors.Is(err, fs.ErrNotExist):
		return jig.Errorf(jig.CodeNotFound, "there is no %q", name).WithField("/path").WithHint(d.near(name))
	case errors.Is(err, fs.ErrPermission):
		return jig.Errorf(jig.CodeNotPermitted, "the worker may not open %q", name).WithField("/path").WithReason("file_permission")
	case errors.Is(err, syscall.ENOTDIR):
		return jig.Errorf(jig.CodeNotFound, "there is no %q: a part of the path is a file", name).WithField("/path")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return jig.Errorf(jig.CodeInvalidInput, "the path is too long").WithField("/path")
	case errors.Is(err, syscall.ENOSPC):
		return jig.Errorf(jig.CodeUnavailable, "the disk is full")
	}
	return jig.Errorf(jig.CodeInternal, "%q: %w", name, err)
}

// near returns a hint with similar names in the folder of a missing file.
func (d *Dir) near(name string) string {
	folder, last := path.Dir(name), path.Base(name)
	f, err := d.Open(folder)
	if err != nil {
		return "there is no folder " + folder + " either; list what is there with file.list"
	}
	defer f.Close()
	names, err := f.Readdirnames(5000) // an error leaves the names read so far
	if err != nil && len(names) == 0 {
		return "the folder " + folder + " is empty"
	}
	found := suggest.Names(last, names, 3)
	for i := range found {
		found[i] = path.Join(folder, found[i])
	}
	if len(found) == 0 {
		return "list what is there with file.list"
	}
	return "did you mean " + strings.Join(found, " or ") + "?"
}

// Dirs holds the working directories of all tenants. A tool opens its caller's directory with Open(inv.Tenant).
type Dirs struct {
	// Base contains a folder for each tenant, named after the tenant and created when first needed.
	Base string
	// Default, when set, replaces the folder of the tenant "default". With jig-dev, that tenant works in the current folder.
	Default string
}

// Check refuses settings that would show tools the wrong files: no base folder, or the root of the file system.
func (d Dirs) Check() error {
	if d.Base == "" {
		return jig.Errorf(jig.CodeMissingParam, "JIG_WORKDIR is not set: it names the folder in which the file tools get a folder for each tenant").
			WithField("JIG_WORKDIR").WithHint("make an empty folder that the worker may write to, e.g. /var/lib/jig/work, and set JIG_WORKDIR to it")
	}
	for _, name := range []string{d.Base, d.Default} {
		if name == "" {
			continue
		}
		at, err := filepath.Abs(name)
		if err != nil {
			return jig.Errorf(jig.CodeInvalidInput, "JIG_WORKDIR cannot be used: %w", err).WithField("JIG_WORKDIR")
		}
		if real, err := filepath.EvalSymlinks(at); err == nil { //nolint:revive // the builtin is not used here
			at = real
		}
		if filepath.Dir(at) == at {
			return jig.Errorf(jig.CodeInvalidInput, "JIG_WORKDIR is %s: the file tools would see the whole file system", at).
				WithField("JIG_WORKDIR").WithHint("set it to an empty folder of its own, e.g. /var/lib/jig/work")
		}
	}
	return nil
}

// Open opens the working directory of a tenant and creates it if it does not exist.
func (d Dirs) Open(tenant string) (*Dir, error) {
	if err := jig.CheckTenant(tenant); err != nil {
		return nil, err
	}
	if tenant == jig.DefaultTenant && d.Default != "" {
		return Open(d.Default)
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	base, err := filepath.Abs(d.Base)
	if err != nil {
		return nil, unusable(err)
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, unusable(err)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, unusable(err)
	}
	defer func() { _ = root.Close() }()
	if err := root.Mkdir(tenant, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unusable(err)
	}
	info, err := root.Lstat(tenant)
	if err != nil {
		return nil, unusable(err)
	}
	if !info.IsDir() { // a link could lead into another tenant's folder
		return nil, jig.Errorf(jig.CodeUnavailable, "the working directory of tenant %s is not a folder", tenant).
			WithHint("remove what is there below JIG_WORKDIR")
	}
	own, err := root.OpenRoot(tenant)
	if err != nil {
		return nil, unusable(err)
	}
	return &Dir{Root: own, at: filepath.Join(base, tenant)}, nil
}

func unusable(err error) error {
	return jig.Errorf(jig.CodeUnavailable, "the working directory cannot be opened: %w", err).
		WithHint("set JIG_WORKDIR of the worker to a folder that it may write to")
}
