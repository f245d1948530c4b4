package starter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

const publishDocument = `kind: composition
name: cms.publish
description: Writes a page, and asks before it does.
input_schema:
  type: object
  properties: {page: {type: string}}
  required: [page]
steps:
  - id: look
    tool: file.read
    if: input.page != ""
    input: {path: "${input.page}"}
  - id: write
    tool: file.write
    input: {path: out.md}
    undo: {tool: file.write, input: {path: out.md}}
`

const questionDocument = `kind: prompt
name: ask.tone
description: Says in which tone a text is written.
model: openai/gpt-5
prompt: In which tone is this written? ${input.text}
`

const reviewDocument = "---\nname: review\ndescription: Reads pages and says what is wrong with them.\nmodel: anthropic/x\ntools: [file.*, cms.publish]\n---\nRead it.\n"

// explainFolder creates a folder with several kinds of documents.
func explainFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{
		"a/publish.yaml": publishDocument, "b/question.yaml": questionDocument, "c/review.md": reviewDocument,
		"d/SKILL.md": skillDocument, "d/style.md": "Be short.",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	}
	return dir
}

func TestExplain_MatchesGoldenFiles(t *testing.T) {
	t.Parallel()
	dir := explainFolder(t)
	e := &fake{catalog: known()}
	for name, args := range map[string][]string{
		"explain.txt":     {dir},
		"explain.mmd":     {dir, "--format", "mermaid"},
		"explain-one.mmd": {filepath.Join(dir, "a"), "--format", "mermaid"},
		"explain.json":    {dir, "--output", "json"},
	} {
		got := jigCLI(t, e, nil, append([]string{"explain"}, args...)...)
		require.Equal(t, exitDone, got.code, "%s: %s", name, got.stderr)
		golden(t, name, strings.ReplaceAll(got.stdout, filepath.ToSlash(dir), "docs"))
		if name == "explain.mmd" {
			require.Contains(t, got.stderr, "the agent review has no diagram")
			require.Contains(t, got.stderr, "the skill notes has no diagram")
		} else {
			require.Empty(t, got.stderr, name)
		}
	}
}

// Explaining a bundle's folder lists what the bundle contains and explains each document. Explaining the manifest alone describes only the
// bundle.
func TestExplain_ListsABundle(t *testing.T) {
	t.Parallel()
	dir := explainFolder(t)
	for name, body := range map[string]string{
		"bundle.yaml": "kind: bundle\nname: pages\nversion: 1.2.0\ndescription: Pages and their reviews.\n",
		"start.yaml": "kind: thin_tool\nname: review.start\ndescription: Starts a review.\ncreates: {type: review, title: 'Review of ${input.page}'}\nstarts: {}\n" +
			"input_schema: {type: object, properties: {page: {type: string}}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	got := jigCLI(t, nil, nil, "explain", dir, "--offline")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "bundle pages (version 1.2.0)\nPages and their reviews.\n\nit contains:\n   1 agent: review\n"+
		"   1 composition: cms.publish\n   1 prompt: ask.tone\n   1 skill: notes\n   1 thin tool: review.start\n")
	require.Contains(t, got.stdout, "thin tool review.start (version ")
	require.Contains(t, got.stdout, "it creates an entity of type review: Review of ${input.page}\n")

	alone := jigCLI(t, nil, nil, "explain", filepath.Join(dir, "bundle.yaml"), "--offline")
	require.Equal(t, "bundle pages (version 1.2.0)\nPages and their reviews.\n", alone.stdout)
	drawn := jigCLI(t, nil, nil, "explain", filepath.Join(dir, "start.yaml"), "--offline", "--format", "mermaid")
	require.Contains(t, drawn.stdout, "in the background")
	require.Equal(t, exitUsage, jigCLI(t, nil, nil, "explain", filepath.Join(dir, "bundle.yaml"), "--offline", "--format", "mermaid").code)
}

func TestExplain_WorksWithoutAWorker(t *testing.T) {
	t.Parallel()
	dir := explainFolder(t)
	file := filepath.Join(dir, "a", "publish.yaml")
	with := jigCLI(t, &fake{catalog: known()}, nil, "explain", file)
	require.Contains(t, with.stdout, "asks a person first")
	require.Empty(t, with.stderr)

	catalog := filepath.Join(t.TempDir(), "catalog.json")
	require.Equal(t, exitDone, jigCLI(t, &fake{catalog: known()}, nil, "catalog", "export", catalog).code)
	require.Equal(t, with.stdout, jigCLI(t, nil, nil, "explain", file, "--catalog", catalog).stdout)

	for _, reason := range []string{client.ReasonNoTemporal, client.ReasonNoWorker} {
		absent := &fake{err: &jig.Error{Code: jig.CodeUnavailable, Message: "nobody answers", Reason: reason}}
		got := jigCLI(t, absent, nil, "explain", file)
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Equal(t, "nobody answers: calls that ask a person are not marked\n", got.stderr)
		require.NotContains(t, got.stdout, "asks a person")
		require.NotContains(t, got.stdout, "no such tool", "without a catalog, tools are not known")

		offline := jigCLI(t, nil, nil, "explain", file, "--offline")
		require.Equal(t, exitDone, offline.code)
		require.Equal(t, got.stdout, offline.stdout)
		require.Contains(t, offline.stderr, "are not marked (--offline)")
	}
	failing := &fake{err: &jig.Error{Code: jig.CodeInternal, Message: "the database is gone"}}
	require.Equal(t, exitFailed, jigCLI(t, failing, nil, "explain", file).code)
}

func TestExplain_RegisteredDocuments(t *testing.T) {
	t.Parallel()
	skill, err := json.Marshal(map[string]any{
		"kind": "skill", "name": "notes", "description": "Use it for release notes.", "instructions": strings.Repeat("Do it.\n", 20),
		"files": map[string]string{"style.md": "Be short.\x1b"},
	})
	require.NoError(t, err)
	c := known()
	c.Agents = append(c.Agents, "notes")
	e := &fake{catalog: c, documents: map[string]string{
		"composition cms.publish": publishDocument, "agent review": reviewDocument, "skill notes": string(skill),
		"agent notes":         strings.ReplaceAll(reviewDocument, "name: review", "name: notes"),
		"composition nightly": strings.ReplaceAll(publishDocument, "cms.publish", "nightly"),
	}}
	explain := func(args ...string) []explained {
		got := jigCLI(t, e, nil, append([]string{"explain", "--output", "json"}, args...)...)
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Empty(t, got.stderr)
		var answer struct{ Documents []explained }
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer))
		return answer.Documents
	}
	all := explain("cms.publish", "nightly", "review")
	require.Len(t, all, 3)
	require.Equal(t, "cms.publish", all[0].Document)
	require.Contains(t, all[0].Text, "asks a person first: permission write")
	require.Contains(t, all[0].Mermaid, "flowchart TD")
	require.Equal(t, "nightly", all[1].Name)
	require.Contains(t, all[2].Text, "agent review")
	require.Empty(t, all[2].Mermaid)

	all = explain("notes")
	require.Len(t, all, 2, "an agent and a skill with the same name")
	require.Contains(t, all[1].Text, "instructions, 20 lines:\n   Do it.\n")
	require.Contains(t, all[1].Text, "   …\n")
	require.Contains(t, all[1].Text, "   style.md, 10 bytes\n")

	mixed := explain(writeFile(t, "question.yaml", questionDocument), "nightly")
	require.Equal(t, []string{"ask.tone", "nightly"}, []string{mixed[0].Name, mixed[1].Name})

	for name, row := range map[string]struct {
		args []string
		code int
		says string
	}{
		"unknown":      {[]string{"nightli"}, exitFailed, "nightly"},
		"a tool":       {[]string{"file.read"}, exitFailed, "is a tool written in code"},
		"a file":       {[]string{"./nightli.yaml"}, exitUsage, "nightli.yaml: no such file"},
		"offline":      {[]string{"nightly", "--offline"}, exitUsage, "need a worker"},
		"no diagram":   {[]string{"review", "--format", "mermaid"}, exitUsage, "nothing to draw"},
		"format":       {[]string{"nightly", "--format", "png"}, exitUsage, "it must be text or mermaid"},
		"broken":       {[]string{writeFile(t, "x.yaml", "kind: composition\nname: x\n")}, exitUsage, "x.yaml:1:1: "},
		"no documents": {[]string{t.TempDir()}, exitUsage, "there are no documents in"},
		"nothing":      {nil, exitUsage, "expected PATH…|NAME"},
	} {
		got := jigCLI(t, e, nil, append([]string{"explain"}, row.args...)...)
		require.Equal(t, row.code, got.code, "%s: %s", name, got.stderr)
		require.Contains(t, got.stderr, row.says, name)
		require.Empty(t, got.stdout, name)
	}
	absent := &fake{err: &jig.Error{Code: jig.CodeUnavailable, Message: "nobody answers", Reason: client.ReasonNoTemporal}}
	got := jigCLI(t, absent, nil, "explain", "nightly")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "there is no file or folder nightly")
}
