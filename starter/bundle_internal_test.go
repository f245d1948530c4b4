package starter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/bundle"
)

// bundleFolder writes the folder of a bundle.
func bundleFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "notes")
	for name, body := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	}
	return dir
}

const (
	notesManifest = "kind: bundle\nname: notes\nversion: 1.0.0\ndescription: Notes.\n"
	noteType      = "kind: entity_type\nname: note\ndescription: A note.\nfields:\n  - {name: text, type: text}\n"
	noteSkill     = "---\nname: tidy\ndescription: How to tidy up notes.\n---\nBe short.\n"
)

func TestBundleInstall_SendsTheFolder(t *testing.T) {
	t.Parallel()
	dir := bundleFolder(t, map[string]string{
		"bundle.yaml": notesManifest, "types/note.yaml": noteType, "README.md": "# Notes\n", "skills/tidy/SKILL.md": noteSkill,
	})
	e := &fake{trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Summary: "installed"}}}
	got := jigCLI(t, e, nil, "bundle", "install", dir, "--replace", "--tenant", "acme")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "bundle.install", e.input.Tool)
	require.Equal(t, "acme", e.input.Tenant)
	var sent struct {
		Files   []struct{ Path, Body string }
		Replace bool
	}
	require.NoError(t, json.Unmarshal(e.input.Input, &sent))
	require.True(t, sent.Replace)
	paths := map[string]string{}
	for _, f := range sent.Files {
		paths[f.Path] = f.Body
	}
	require.Len(t, paths, 3, "%v", paths)
	require.Equal(t, notesManifest, paths["bundle.yaml"])
	require.Equal(t, noteType, paths["types/note.yaml"])
	require.Contains(t, got.stderr, "installed")
}

func TestBundleInstall_ChecksFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		code  int
		says  string
	}{
		"no manifest": {map[string]string{"note.yaml": noteType}, exitFailed, "bundle.yaml"},
		"broken":      {map[string]string{"bundle.yaml": notesManifest, "note.yaml": noteType + "  - {name: text, type: txt}\n"}, exitFailed, "note.yaml:"},
		"nested":      {map[string]string{"bundle.yaml": notesManifest, "note.yaml": noteType, "a/bundle.yaml": "kind: bundle\nname: other\nversion: 1.0.0\n"}, exitFailed, "a/bundle.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &fake{}
			got := jigCLI(t, e, nil, "bundle", "install", bundleFolder(t, c.files))
			require.Equal(t, c.code, got.code, got.stderr)
			require.Contains(t, got.stdout, c.says)
			require.Empty(t, e.input.Tool, "nothing was sent")
			valid := jigCLI(t, e, nil, "validate", "--offline", bundleFolder(t, c.files))
			if name != "no manifest" { // without a manifest it is a folder of documents
				require.Equal(t, c.code, valid.code, valid.stderr)
				require.Contains(t, valid.stdout, c.says)
			}
		})
	}
	file := filepath.Join(bundleFolder(t, map[string]string{"bundle.yaml": notesManifest}), "bundle.yaml")
	got := jigCLI(t, &fake{}, nil, "bundle", "install", file)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "give the folder")
	got = jigCLI(t, &fake{}, nil, "catalog", "add", file)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "bundle install")
}

func TestBundleRemove_WaitsForAPerson(t *testing.T) {
	t.Parallel()
	e := &fake{
		trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallWaiting},
		pages:   []client.EventsPage{{Status: jig.StatusInputRequired}},
		view:    jig.SessionView{SessionID: "ses_1", Status: jig.StatusInputRequired, Pending: []jig.Pending{waitingCall()}},
	}
	got := jigCLI(t, e, nil, "bundle", "remove", "notes", "--no-wait", "--output", "json")
	require.Equal(t, exitWaiting, got.code, got.stderr)
	require.Equal(t, "bundle.remove", e.input.Tool)
	require.JSONEq(t, `{"name":"notes"}`, string(e.input.Input))
	require.Empty(t, e.decided)
}

func TestCatalogRemove_WaitsForAPerson(t *testing.T) {
	t.Parallel()
	e := &fake{
		trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallWaiting},
		pages:   []client.EventsPage{{Status: jig.StatusInputRequired}},
		view:    jig.SessionView{SessionID: "ses_1", Status: jig.StatusInputRequired, Pending: []jig.Pending{waitingCall()}},
	}
	got := jigCLI(t, e, nil, "catalog", "remove", "policy", "shop", "--no-wait", "--output", "json")
	require.Equal(t, exitWaiting, got.code, got.stderr)
	require.Equal(t, "catalog.remove", e.input.Tool)
	require.JSONEq(t, `{"documents":[{"kind":"policy","name":"shop"}]}`, string(e.input.Input))
	require.Empty(t, e.decided)
}

func TestBundle_ListsAndShows(t *testing.T) {
	t.Parallel()
	installed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	data, err := json.Marshal(api.BundleList{Bundles: []bundle.Bundle{{
		Manifest: bundle.Manifest{Name: "notes", Version: "1.2.0", Title: "Notes"}, Hash: "abc", InstalledAt: installed, InstalledBy: "ana",
		Documents: []bundle.DocumentVersion{{Kind: "entity_type", Name: "note", Version: "v1"}, {Kind: "composition", Name: "notes.take", Version: "v2"}},
	}}})
	require.NoError(t, err)
	e := &fake{trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Data: data}}}
	got := jigCLI(t, e, nil, "bundle", "list", "--output", "json")
	require.Equal(t, 0, got.code, got.stderr)
	require.JSONEq(t, string(data), got.stdout)
	got = jigCLI(t, e, nil, "bundle", "list")
	require.Regexp(t, `notes +1\.2\.0 +2 .* ana +Notes`, got.stdout)
	got = jigCLI(t, e, nil, "bundle", "show", "notes")
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `composition +notes\.take +v2`, got.stdout, "a catalog without the tool, for example of another worker")
	e.catalog = client.Catalog{Tools: []jig.Tool{{Name: "notes.take", Implementation: jig.ImplementationThin}}}
	got = jigCLI(t, e, nil, "bundle", "show", "notes")
	require.Regexp(t, `thin_tool +notes\.take +v2`, got.stdout, "the kind that its document names")
	require.Contains(t, got.stderr, "notes 1.2.0 (abc)")
	got = jigCLI(t, e, nil, "bundle", "show", "nots")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "did you mean")

	refused := jig.Failure(jig.Errorf(jig.CodeDenied, "no"))
	e.trigger = client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallDenied, Result: &refused}
	got = jigCLI(t, e, nil, "bundle", "list")
	require.Equal(t, exitDenied, got.code)
	require.Empty(t, got.stdout)

	e.trigger.Status, e.trigger.Result = jig.CallSucceeded, &jig.ToolResult{Success: true, Data: json.RawMessage(`{"bundles":[]}`)}
	got = jigCLI(t, e, nil, "bundle", "list")
	require.Equal(t, 0, got.code)
	require.Contains(t, got.stderr, "no bundle is installed")
}
