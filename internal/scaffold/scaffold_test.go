package scaffold_test

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/jig-run/jig/internal/scaffold"
)

// checkout returns the root of this repository.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// body returns a file of a project. It must be there.
func body(t *testing.T, files []scaffold.File, name string) string {
	t.Helper()
	i := slices.IndexFunc(files, func(f scaffold.File) bool { return f.Name == name })
	require.GreaterOrEqual(t, i, 0, "there is no %s", name)
	return string(files[i].Body)
}

// A project can be built and tested in any folder, at once and without the network.
func TestProject_BuildsElsewhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a shop")
	files, err := scaffold.Files("example.com/shop", scaffold.Source{Checkout: checkout(t)})
	require.NoError(t, err)
	require.NoError(t, scaffold.Write(dir, files))
	for _, args := range [][]string{{"list", "-export", "./..."}, {"test", "-vet=off", "./..."}} { // list compiles the worker without linking it
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=readonly")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v\n%s", args, out)
		if args[0] == "test" {
			require.Contains(t, string(out), "ok  \texample.com/shop/shop\t")
		}
	}
}

func TestFiles_OfACheckout(t *testing.T) {
	t.Parallel()
	files, err := scaffold.Files("shop", scaffold.Source{Checkout: checkout(t)})
	require.NoError(t, err)
	parsed, err := modfile.Parse("go.mod", []byte(body(t, files, "go.mod")), nil)
	require.NoError(t, err)
	require.Equal(t, "shop", parsed.Module.Mod.Path)
	require.Equal(t, scaffold.Module, parsed.Require[0].Mod.Path)
	require.Len(t, parsed.Replace, 1)
	require.Equal(t, checkout(t), parsed.Replace[0].New.Path)
	its, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	jig, err := modfile.Parse("go.mod", its, nil)
	require.NoError(t, err)
	require.Len(t, parsed.Require, len(jig.Require)+1)
	require.Equal(t, jig.Go.Version, parsed.Go.Version)
	sums, err := os.ReadFile("../../go.sum")
	require.NoError(t, err)
	require.Equal(t, string(sums), body(t, files, "go.sum"))

	require.Contains(t, body(t, files, "main.go"), "\t\"shop/shop\"\n")
	require.Contains(t, body(t, files, ".gitignore"), ".jig/\n")
	for _, f := range files {
		require.NotContains(t, string(f.Body), "internal/scaffold", f.Name)
	}
}

// gofmt would change nothing, wherever the module's name puts its packages among the imports.
func TestFiles_AreFormatted(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"aaa.example/shop", "github.com/jig-run/jigs", "shop", "worker"} {
		files, err := scaffold.Files(module, scaffold.Source{Version: "v1.2.3"})
		require.NoError(t, err)
		formatted := 0
		for _, f := range files {
			if strings.HasSuffix(f.Name, ".go") {
				want, err := format.Source(f.Body)
				require.NoError(t, err)
				require.Equal(t, string(want), string(f.Body), "%s: %s", module, f.Name)
				formatted++
			}
		}
		require.Equal(t, 4, formatted)
	}
}

func TestFiles_OfAReleasedJig(t *testing.T) {
	t.Parallel()
	files, err := scaffold.Files("example.com/shop", scaffold.Source{Version: "v1.2.3"})
	require.NoError(t, err)
	its, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	jig, err := modfile.Parse("go.mod", its, nil)
	require.NoError(t, err)
	require.Equal(t, "module example.com/shop\n\ngo "+jig.Go.Version+"\n\nrequire github.com/jig-run/jig v1.2.3\n", body(t, files, "go.mod"))
	require.False(t, slices.ContainsFunc(files, func(f scaffold.File) bool { return f.Name == "go.sum" }))
}

// The build information says whether the program's source code was downloaded as a module. If not, its folders lead to it.
func TestFind_UsesTheReleaseOrTheCheckout(t *testing.T) {
	t.Parallel()
	root, other := checkout(t), t.TempDir()
	build := func(path, version, sum string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: path, Version: version, Sum: sum}}
	}
	within := &debug.BuildInfo{Main: debug.Module{Path: "example.com/x"}, Deps: []*debug.Module{{Path: scaffold.Module, Version: "v1.0.0", Sum: "h1:x"}}}
	replaced := &debug.BuildInfo{Deps: []*debug.Module{{Path: scaffold.Module, Version: "v1.0.0", Sum: "h1:x", Replace: &debug.Module{Path: root}}}}
	for name, row := range map[string]struct {
		program scaffold.Program
		want    scaffold.Source
	}{
		"an archive":            {scaffold.Program{Release: "v1.2.3", Build: build(scaffold.Module, "(devel)", ""), Folders: []string{root}}, scaffold.Source{Version: "v1.2.3"}},
		"installed":             {scaffold.Program{Build: build(scaffold.Module, "v1.2.3", "h1:x"), Folders: []string{root}}, scaffold.Source{Version: "v1.2.3"}},
		"part of a program":     {scaffold.Program{Build: within}, scaffold.Source{Version: "v1.0.0"}},
		"replaced":              {scaffold.Program{Build: replaced, Folders: []string{root}}, scaffold.Source{Checkout: root}},
		"built in a checkout":   {scaffold.Program{Build: build(scaffold.Module, "v0.0.0-20260101000000-abcdefabcdef+dirty", ""), Folders: []string{root}}, scaffold.Source{Checkout: root}},
		"without information":   {scaffold.Program{Folders: []string{other, filepath.Join(root, ".cache", "bin")}}, scaffold.Source{Checkout: root}},
		"a relative folder":     {scaffold.Program{Folders: []string{"../.."}}, scaffold.Source{}},
		"nothing that leads on": {scaffold.Program{Folders: []string{other, ""}}, scaffold.Source{}},
	} {
		got, err := scaffold.Find(row.program)
		require.Equal(t, row.want, got, name)
		require.Equal(t, row.want == scaffold.Source{}, err != nil, name)
	}
	require.True(t, scaffold.IsCheckout(root))
	require.False(t, scaffold.IsCheckout(filepath.Join(root, "internal")))
}

func TestWrite_ReplacesNothing(t *testing.T) {
	t.Parallel()
	files := []scaffold.File{{Name: "a.txt", Body: []byte("a")}, {Name: "b/c.txt", Body: []byte("c")}, {Name: "d.txt", Body: []byte("d")}}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d.txt"), []byte("mine"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), []byte("mine"), 0o600))
	var there *scaffold.ExistError
	require.ErrorAs(t, scaffold.Write(dir, files), &there)
	require.Equal(t, []string{"b/c.txt", "d.txt"}, there.Names)
	require.NoFileExists(t, filepath.Join(dir, "a.txt"))
	mine, err := os.ReadFile(filepath.Join(dir, "d.txt"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(mine))

	other := filepath.Join(t.TempDir(), "new", "folder")
	require.NoError(t, scaffold.Write(other, files))
	written, err := os.ReadFile(filepath.Join(other, "b", "c.txt"))
	require.NoError(t, err)
	require.Equal(t, "c", string(written))
	require.ErrorAs(t, scaffold.Write(other, files), &there)
	require.Len(t, there.Names, 3)

	link := filepath.Join(t.TempDir(), "linked")
	require.NoError(t, os.MkdirAll(link, 0o700))
	require.NoError(t, os.Symlink(other, filepath.Join(link, "b")))
	require.ErrorAs(t, scaffold.Write(link, files), &there, "a link that leads out of the folder")
	require.NoFileExists(t, filepath.Join(link, "a.txt"))

	failing := t.TempDir()
	require.Error(t, scaffold.Write(failing, []scaffold.File{files[0], files[1], files[0]}), "the third file cannot be written")
	require.NoFileExists(t, filepath.Join(failing, "a.txt"), "what was written before is removed")
}

func TestModuleOf_MakesAValidName(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"/home/ana/shop": "shop", "/home/ana/My-Shop.v2": "my-shop.v2", "/home/ana/a shop": "worker", "/": "worker", "/tmp/_x": "worker", "/x/go": "worker",
	} {
		require.Equal(t, want, scaffold.ModuleOf(dir), dir)
	}
	for _, name := range []string{"shop", "example.com/shop", "example.com/Shop/v2"} {
		require.NoError(t, scaffold.CheckModule(name), name)
	}
	for _, name := range []string{"", ".", "a b", "/x", "x/", "../x", "x\ny", "x//y", strings.Repeat("a", 3) + "."} {
		require.Error(t, scaffold.CheckModule(name), "%q", name)
	}
}
