package starter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

// The project is written completely, its documents are valid, and the policy's cases hold.
func TestInit_WritesAWholeProject(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my shop")
	got := jigCLI(t, noWorker(), nil, "init", dir)
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "go.mod\ngo.sum\nmain.go\n")
	require.Contains(t, got.stderr, "cd '"+dir+"'")
	require.NotContains(t, got.stderr, "go mod tidy")
	require.NotContains(t, got.stderr, "GOWORK")
	for _, name := range strings.Fields(got.stdout) {
		require.FileExists(t, filepath.Join(dir, name))
	}
	module, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(module), "module worker\n"), "the folder's name is not one of a module")

	docs, problems := spec.LoadFS(os.DirFS(dir), ".")
	require.Empty(t, problems)
	require.Len(t, docs, 2)
	got = jigCLI(t, noWorker(), nil, "policy", "test", filepath.Join(dir, "policy.yaml"))
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stderr, "ok: 3 cases")
}

func TestInit_ReplacesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"main.go", "README.md", "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600))
	}
	got := jigCLI(t, nil, nil, "init", dir)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, dir+" already has README.md, main.go; nothing was written")
	require.Contains(t, got.stderr, "choose another folder")
	require.NoFileExists(t, filepath.Join(dir, "go.mod"))
}

func TestInit_Flags(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.work"), nil, 0o600))
	got := jigCLI(t, nil, nil, "init", filepath.Join(dir, "shop"), "--module", "example.com/x", "--jig", "..", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	var report initReport
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.Equal(t, filepath.Join(dir, "shop"), report.Folder)
	require.Equal(t, "example.com/x", report.Module)
	require.Equal(t, initJig{Checkout: source}, report.Jig)
	require.Contains(t, report.Files, "go.mod")
	require.Contains(t, report.Commands[1], "export GOWORK=off")

	for says, args := range map[string][]string{
		`--module: "a b" is not the name of a Go module`: {"--module", "a b"},
		"is not jig's source code":                       {"--jig", dir},
	} {
		got := jigCLI(t, nil, nil, append([]string{"init", filepath.Join(dir, "other")}, args...)...)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.stderr, says)
		require.NoDirExists(t, filepath.Join(dir, "other"))
	}
}

// The printed commands are those of the project's README.
func TestInit_PrintsTheCommandsOfTheReadme(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	got := jigCLI(t, nil, nil, "init", dir, "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	var report initReport
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	for _, command := range report.Commands[1:] { // the first one goes to the folder
		command, _, _ = strings.Cut(command, "  #")
		require.Contains(t, string(readme), strings.TrimSpace(command))
	}
}
