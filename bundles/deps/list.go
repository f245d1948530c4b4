package deps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/jig-run/jig"
)

// maxModFile is the size of the largest go.mod that is read, in bytes.
const maxModFile = 4 << 20

type listInput struct {
	Path string `json:"path" jsonschema:"go.mod or its folder, relative to the working directory" maxLength:"4096" path:"true"`
}

type listOutput struct {
	Module  string     `json:"module"  jsonschema:"path of the module itself"`
	Go      string     `json:"go"      jsonschema:"required Go version; empty if go.mod names none"`
	Modules []required `json:"modules" jsonschema:"sorted by path"`
}

type required struct {
	Path     string `json:"path"`
	Version  string `json:"version"  jsonschema:"empty if a local folder replaces the module"`
	Indirect bool   `json:"indirect"`
}

// Summary implements tools.Summarizer.
func (o listOutput) Summary() string {
	direct := 0
	for _, m := range o.Modules {
		if !m.Indirect {
			direct++
		}
	}
	return fmt.Sprintf("%s requires %d modules, %d of them directly", o.Module, len(o.Modules), direct)
}

func (f *family) list(_ context.Context, inv jig.Invocation, in listInput) (listOutput, error) {
	name, raw, err := f.readModFile(inv.Tenant, in.Path)
	if err != nil {
		return listOutput{}, err
	}
	file, err := modfile.Parse(name, raw, nil)
	if err != nil {
		return listOutput{}, badModFile("it does not parse: " + firstProblem(err))
	}
	if file.Module == nil {
		return listOutput{}, badModFile(name + " has no module line")
	}
	out := listOutput{Module: file.Module.Mod.Path}
	if file.Go != nil {
		out.Go = file.Go.Version
	}
	for _, r := range file.Require {
		used := replaced(file.Replace, r.Mod)
		out.Modules = append(out.Modules, required{Path: used.Path, Version: used.Version, Indirect: r.Indirect})
	}
	slices.SortFunc(out.Modules, func(a, b required) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
	out.Modules = slices.Compact(out.Modules)
	return out, nil
}

// readModFile reads the go.mod at the given path, or in the given folder.
func (f *family) readModFile(tenant, name string) (string, []byte, error) {
	dir, err := f.dirs.Open(tenant)
	if err != nil {
		return "", nil, err
	}
	defer dir.Close()
	if name, err = dir.Clean(name); err != nil {
		return "", nil, err
	}
	info, err := dir.Stat(name)
	if err != nil {
		return "", nil, dir.Explain(name, err)
	}
	if info.IsDir() {
		name = path.Join(name, "go.mod")
		if _, err := dir.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return "", nil, jig.Errorf(jig.CodeNotFound, "there is no %q", name).WithField("/path").
				WithHint("give the path of a go.mod; file.list with glob **/go.mod finds them")
		}
	}
	file, size, err := dir.Regular(name)
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	if size > maxModFile {
		return "", nil, badModFile(fmt.Sprintf("%s has %d bytes, at most %d are read", name, size, maxModFile))
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxModFile))
	if err != nil {
		return "", nil, dir.Explain(name, err)
	}
	return name, raw, nil
}

func badModFile(why string) error {
	return jig.Errorf(jig.CodeInvalidInput, "not a usable go.mod: %s", why).WithField("/path").WithReason("invalid_go_mod")
}

// firstProblem returns the first error that a parser reported.
func firstProblem(err error) string {
	var list modfile.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return list[0].Error()
	}
	return err.Error()
}

// replaced returns the module that is built instead of m. A replacement for exactly m's version takes precedence over one for all versions.
// A local folder keeps the path and has no version.
func replaced(list []*modfile.Replace, m module.Version) module.Version {
	var found *modfile.Replace
	for _, r := range list {
		if r.Old.Path == m.Path && (r.Old.Version == m.Version || (r.Old.Version == "" && found == nil)) {
			found = r
		}
	}
	switch {
	case found == nil:
		return m
	case found.New.Version == "":
		return module.Version{Path: m.Path}
	}
	return found.New
}
