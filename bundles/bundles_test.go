package bundles_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/tools/artifact"
	"github.com/jig-run/jig/tools/deps"
	"github.com/jig-run/jig/tools/file"
	"github.com/jig-run/jig/tools/prompt"
	"github.com/jig-run/jig/tools/todo"
	"github.com/jig-run/jig/tools/web"
)

func TestAgents(t *testing.T) {
	t.Parallel()
	agents, err := bundles.Documents()
	require.NoError(t, err)
	names := make([]string, 0, len(agents))
	for _, doc := range agents {
		if doc.Kind != spec.KindAgent {
			continue
		}
		names = append(names, doc.Name)
		require.NotEmpty(t, doc.Agent.Description, doc.Path)
		require.NotEmpty(t, doc.Agent.Instructions, doc.Path)
		require.Equal(t, doc.Agent.Version, doc.Version)
	}
	require.Contains(t, names, "dependency-review")
}

// What ships is what users copy: not even a warning is in it, with the tools that ship and nothing else.
func TestShippedDocumentsAreInOrder(t *testing.T) {
	t.Parallel()
	docs, err := bundles.Documents()
	require.NoError(t, err)
	registry, err := tools.NewRegistry(slices.Concat(
		file.Tools(file.Options{Dir: t.TempDir()}), todo.Tools(todo.Options{}), web.Tools(web.Options{}),
		artifact.Tools(artifact.Options{}), deps.Tools(deps.Options{Dir: t.TempDir()}), prompt.Tools(prompt.Options{}),
	)...)
	require.NoError(t, err)
	catalogue := spec.Catalogue{Tools: registry.Tools(), Agents: []string{}, Skills: []string{}, Tasks: []string{}, Specs: []spec.Execution{}}
	for _, doc := range docs {
		_, problems := spec.Load(doc.Path, doc.Body)
		if doc.Kind == spec.KindSkill { // its body is not its file
			problems = nil
		}
		require.Empty(t, problems, doc.Path)
	}
	require.Empty(t, spec.Check(docs, catalogue))
	require.Empty(t, spec.Advise(docs, catalogue))
}

// The examples are tools, whose members people read in forms and models in menus.
func TestExamplesAreToolsThatExplainThemselves(t *testing.T) {
	t.Parallel()
	docs, err := bundles.Documents()
	require.NoError(t, err)
	kinds := map[spec.Kind]int{}
	for _, doc := range docs {
		kinds[doc.Kind]++
		if doc.Execution == nil {
			continue
		}
		require.NoError(t, jig.CheckToolName(doc.Name), doc.Path)
		require.Greater(t, len(doc.Execution.Description), 100, doc.Path)
		for name, member := range membersOf(t, doc.Execution.Tool.InputSchema) {
			require.NotEmpty(t, member.Description, "%s: %s", doc.Path, name)
		}
		require.NotEmpty(t, spec.Explain(*doc.Execution).Text(), doc.Path)
	}
	require.GreaterOrEqual(t, kinds[spec.KindComposition], 6)
	require.Positive(t, kinds[spec.KindPrompt])
	require.Positive(t, kinds[spec.KindSkill])
}

// member is a member of an input.
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
