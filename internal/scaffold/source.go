package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/modfile"
)

// Module is the module path of jig.
const Module = "github.com/jig-run/jig"

// goVersion is the version of the language that jig needs, for projects that use a released jig.
const goVersion = "1.26.0"

// Source says where a project gets jig from.
type Source struct {
	// Version is a released version, e.g. v1.2.0. It is empty if Checkout is set.
	Version string
	// Checkout is a folder with jig's source code, to which the project's go.mod points.
	Checkout string
}

// Program describes the running program, for [Find].
type Program struct {
	// Release is the version with which `make release` built the program; empty for other programs.
	Release string
	// Build is the program's build information; it may be nil.
	Build *debug.BuildInfo
	// Folders are searched for a checkout, each with those above it, in this order. Relative ones are skipped.
	Folders []string
}

// Find returns where a project gets the jig that the running program belongs to. A released program knows its version, and one that `go install`
// built from a released version says so in its build information. Any other one was built in a checkout.
func Find(p Program) (Source, error) {
	if version := cmp.Or(p.Release, released(p.Build)); version != "" {
		return Source{Version: version}, nil
	}
	for _, dir := range p.Folders {
		if checkout := checkoutAt(dir); checkout != "" {
			return Source{Checkout: checkout}, nil
		}
	}
	return Source{}, errors.New("this program was built from a checkout of jig that can no longer be found")
}

// released returns the version of jig in a build, or "" if its source code did not come from a released module. Only a module that was
// downloaded has a checksum.
func released(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == Module && m.Replace == nil && m.Sum != "" {
			return m.Version
		}
	}
	return ""
}

// checkoutAt returns the nearest folder, beginning with dir and going up, that has jig's own go.mod. It returns "" if there is none.
func checkoutAt(dir string) string {
	if !filepath.IsAbs(dir) { // a program that was built with -trimpath has no absolute paths
		return ""
	}
	for {
		if IsCheckout(dir) {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
}

// IsCheckout reports whether a folder is the root of jig's source code.
func IsCheckout(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // it is only asked for its module's name
	return err == nil && modfile.ModulePath(content) == Module
}

// goFiles returns the project's go.mod and, for a checkout, its go.sum, so that the project can be built at once.
func (s Source) goFiles(module string) ([]File, error) {
	if s.Version != "" {
		body := fmt.Sprintf("module %s\n\ngo %s\n\nrequire %s %s\n", module, goVersion, Module, s.Version)
		return []File{{Name: "go.mod", Body: []byte(body)}}, nil
	}
	content, err := os.ReadFile(filepath.Join(s.Checkout, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read jig's checkout: %w", err)
	}
	sums, err := os.ReadFile(filepath.Join(s.Checkout, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("read jig's checkout: %w", err)
	}
	its, err := modfile.ParseLax("go.mod", content, nil)
	if err != nil {
		return nil, fmt.Errorf("read jig's checkout: %w", err)
	}
	language := goVersion
	if its.Go != nil {
		language = its.Go.Version
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module %s\n\ngo %s\n\nrequire %s v0.0.0\n\n", module, language, Module)
	b.WriteString("// This jig is not released: it was built from this folder. To use a released one, remove the line and run\n// go get " + Module + "@latest.\n")
	fmt.Fprintf(&b, "replace %s => %s\n\nrequire (\n", Module, modfile.AutoQuote(s.Checkout))
	for _, r := range its.Require {
		fmt.Fprintf(&b, "\t%s %s // indirect\n", r.Mod.Path, r.Mod.Version)
	}
	b.WriteString(")\n")
	return []File{{Name: "go.mod", Body: []byte(b.String())}, {Name: "go.sum", Body: sums}}, nil
}
