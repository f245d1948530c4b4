package bundles_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/bundles/deps"
	"github.com/jig-run/jig/internal/builtin/artifact"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/builtin/file"
	"github.com/jig-run/jig/internal/builtin/prompt"
	"github.com/jig-run/jig/internal/builtin/todo"
	"github.com/jig-run/jig/internal/builtin/web"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// documents returns the documents of all bundles.
func documents(t *testing.T) []spec.Document {
	t.Helper()
	list, err := bundles.Bundles()
	require.NoError(t, err)
	var docs []spec.Document
	for _, b := range list {
		docs = append(docs, b.Documents...)
	}
	return docs
}

func TestBundles_AgentsAreUsable(t *testing.T) {
	t.Parallel()
	agents := documents(t)
	names := make([]string, 0, len(agents))
	for _, doc := range agents {
		if doc.Kind != spec.KindAgent {
			continue
		}
		names = append(names, doc.Name)
		require.NotEmpty(t, doc.Agent().Description, doc.Path)
		require.NotEmpty(t, doc.Agent().Instructions, doc.Path)
		require.Equal(t, doc.Agent().Version, doc.Version)
	}
	require.Contains(t, names, "dependency-review")
}

// Users copy what ships, so it must not cause even a warning, with only the tools that ship.
func TestBundles_DocumentsAreValid(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	registry, err := tools.NewRegistry(slices.Concat(
		file.Tools(file.Options{Dirs: workdir.Dirs{Default: t.TempDir()}}), todo.Tools(todo.Options{}), web.Tools(web.Options{}),
		artifact.Tools(artifact.Options{}), deps.Tools(deps.Options{Dirs: workdir.Dirs{Default: t.TempDir()}}), prompt.Tools(prompt.Options{}), entities.Tools(entities.Options{}),
	)...)
	require.NoError(t, err)
	catalog := spec.Catalog{Tools: registry.Tools(), Agents: []string{}, Skills: []string{}, Specs: []spec.Execution{}, EntityTypes: []entity.Type{}}
	for _, doc := range docs {
		_, problems := spec.Load(doc.Path, doc.Body)
		if doc.Kind == spec.KindSkill { // a skill's body is not its file
			problems = nil
		}
		require.Empty(t, problems, doc.Path)
	}
	require.Empty(t, spec.Check(docs, catalog))
	require.Empty(t, spec.Advise(docs, catalog))
}

func TestBundles_AreComplete(t *testing.T) {
	t.Parallel()
	list, err := bundles.Bundles()
	require.NoError(t, err)
	installed, taken := map[string]bool{}, map[string]string{}
	for _, b := range list {
		require.NoError(t, b.Manifest.Check())
		require.NotEmpty(t, b.Manifest.Title, b.Manifest.Name)
		require.NotEmpty(t, b.Manifest.Description, b.Manifest.Name)
		require.NotEmpty(t, b.Hash, b.Manifest.Name)
		for _, needed := range b.Manifest.Requires {
			require.True(t, installed[needed], "%s comes before %s, which it requires", b.Manifest.Name, needed)
		}
		installed[b.Manifest.Name] = true
		for _, doc := range b.Documents {
			kind := string(doc.Kind)
			if doc.Kind.IsExecution() {
				kind = "composition"
			}
			require.Empty(t, taken[kind+" "+doc.Name], "%s is in two bundles", doc.Name)
			taken[kind+" "+doc.Name] = b.Manifest.Name
		}
	}
	require.Contains(t, installed, "dependency-review")
	require.Contains(t, installed, "examples")
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries { // a folder that is not embedded would not ship
		if _, err := os.Stat(filepath.Join(e.Name(), spec.BundleFile)); err == nil {
			require.Contains(t, installed, e.Name(), "add it to embed.go")
		}
	}
}

// The examples are tools. People see their inputs in forms and models see the tools in menus, so they need descriptions.
func TestExamples_HaveDescriptions(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	kinds := map[spec.Kind]int{}
	for _, doc := range docs {
		kinds[doc.Kind]++
		if doc.Execution() == nil {
			continue
		}
		require.NoError(t, jig.CheckToolName(doc.Name), doc.Path)
		require.Greater(t, len(doc.Execution().Description), 100, doc.Path)
		for name, member := range membersOf(t, doc.Execution().Tool.InputSchema) {
			require.NotEmpty(t, member.Description, "%s: %s", doc.Path, name)
		}
		require.NotEmpty(t, spec.Explain(*doc.Execution()).Text(), doc.Path)
	}
	require.GreaterOrEqual(t, kinds[spec.KindComposition], 6)
	require.Positive(t, kinds[spec.KindPrompt])
	require.Positive(t, kinds[spec.KindSkill])
}

// member is a member of an input schema.
type member struct {
	Description string `json:"description"`
}

func membersOf(t *testing.T, schema json.RawMessage) map[string]member {
	t.Helper()
	var s struct {
		Properties map[string]member `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(schema, &s))
	return s.Properties
}
