package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jig-run/jig"
)

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
