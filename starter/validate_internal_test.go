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
	"github.com/jig-run/jig/spec"
)

// known is the catalog of a worker with a few tools and documents.
func known() client.Catalog {
	object := func(required string) json.RawMessage {
		return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"` + required + `":{"type":"string"}},"required":["` + required + `"]}`)
	}
	return client.Catalog{
		Tools: []jig.Tool{
			{Name: "cms.publish", Implementation: "composition", Permission: jig.PermissionDraft, InputSchema: object("page")},
			{Name: "file.read", Implementation: "go", Permission: jig.PermissionRead, InputSchema: object("path")},
			{Name: "file.write", Implementation: "go", Permission: jig.PermissionWrite, InputSchema: object("path")},
		},
		Agents: []string{"review"}, Skills: []string{"notes"}, Compositions: []string{"nightly"}, EntityTypes: []string{"module"},
	}
}

// checked is a problem in the JSON output of `validate`.
type checked struct {
	Document, Path, Code, Severity, Message, Hint string
	Line, Column                                  int
}

// validate runs `validate --output json` and returns the problems.
func validate(t *testing.T, e any, code int, args ...string) []checked {
	t.Helper()
	got := jigCLI(t, e, nil, append([]string{"validate", "--output", "json"}, args...)...)
	require.Equal(t, code, got.code, "%s%s", got.stdout, got.stderr)
	var report struct {
		OK       bool
		Problems []checked
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.Equal(t, code == exitDone, report.OK)
	require.NotNil(t, report.Problems)
	return report.Problems
}

const callsNothing = `kind: composition
name: my.report
description: Writes a report about whatever it is told to look at.
steps:
  - id: page
    tool: file.raed
    input: {path: a.md}
  - id: other
    composition: nightli
  - id: published
    composition: cms.publish
    input: {pages: a.md}
  - id: asked
    prompt: {mode: agent, agent: reviewer, prompt: "Is it good?"}
  - id: written
    prompt: {mode: skill, skill: note, model: openai/x, prompt: "Write."}
  - id: fine
    composition: nightly
    input: {whatever: 1}
`

func TestValidate_ChecksNamesAgainstTheCatalog(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "report.yaml", callsNothing)
	e := &fake{catalog: known()}
	codes := []string{}
	problems := validate(t, e, exitFailed, file)
	for _, p := range problems {
		require.Equal(t, file, p.Document)
		require.Positive(t, p.Line)
		require.NotEmpty(t, p.Hint, p.Message)
		codes = append(codes, p.Path+" "+p.Code)
	}
	require.Equal(t, []string{
		"steps[0].tool UNKNOWN_TOOL", "steps[1].composition UNKNOWN_COMPOSITION", "steps[2].input.page MISSING_KEY",
		"steps[2].input.pages UNKNOWN_KEY", "steps[3].prompt.agent UNKNOWN_AGENT", "steps[4].prompt.skill UNKNOWN_SKILL",
	}, codes)
	require.Contains(t, problems[1].Hint, "nightly")

	catalog := filepath.Join(t.TempDir(), "catalog.json")
	require.Equal(t, exitDone, jigCLI(t, e, nil, "catalog", "export", catalog).code)
	require.Equal(t, problems, validate(t, nil, exitFailed, file, "--catalog", catalog), "a catalog file finds the same problems as the worker")

	got := jigCLI(t, nil, nil, "validate", file, "--offline")
	require.Equal(t, exitDone, got.code, got.stdout)
	require.Contains(t, got.stderr, "not checked (--offline)")

	old := writeFile(t, "catalog.json", `{"tools":[{"name":"file.read"}]}`)
	got = jigCLI(t, nil, nil, "validate", file, "--catalog", old)
	require.Contains(t, got.stderr, "were not checked: the catalog")
	require.Contains(t, got.stdout, "file.raed")
	require.NotContains(t, got.stdout, "nightli", "an old catalog does not list compositions")
}

func TestValidate_ChecksDocumentsAgainstEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, body string) string {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
		return file
	}
	spec := func(name, calls string) string {
		return "kind: composition\nname: " + name + "\ndescription: Calls another one and gives back what that said.\n" +
			"steps:\n  - id: next\n    composition: " + calls + "\n"
	}
	b, a := write("b.yaml", spec("loop-b", "loop-a")), write("a.yaml", spec("loop-a", "loop-b"))
	write("notes/SKILL.md", skillDocument)
	write("notes/a.yaml", "kind: composition\nof the skill, no document")
	write("README.md", "# Not a document\n")
	problems := validate(t, nil, exitFailed, dir, "--offline")
	require.Len(t, problems, 1)
	require.Equal(t, "CYCLE", problems[0].Code)
	require.Equal(t, filepath.ToSlash(a), problems[0].Document)

	require.Equal(t, problems, validate(t, nil, exitFailed, dir, a, filepath.Join(dir, "notes", "SKILL.md"), "--offline"), "each file is read once")
	require.Empty(t, validate(t, nil, exitDone, b, filepath.Join(dir, "notes"), "--offline"), "the other spec may be registered")

	twin := writeFile(t, "twin.yaml", spec("loop-b", "whatever"))
	problems = validate(t, nil, exitFailed, b, twin, "--offline")
	require.Len(t, problems, 1)
	require.Equal(t, "DUPLICATE_KEY", problems[0].Code)
	require.Equal(t, twin, problems[0].Document)
	require.Contains(t, problems[0].Message, b)
}

func TestValidate_ReadsTheSpecsThatAreCalled(t *testing.T) {
	t.Parallel()
	calls := func(name, composition string) string {
		return "kind: composition\nname: " + name + "\ndescription: Calls another one and gives back what that said.\n" +
			"input_schema: {type: object, required: [page], properties: {page: {type: string}}}\n" +
			"steps:\n  - parallel:\n      - id: next\n        composition: " + composition + "\n        input: {page: a}\n"
	}
	c := known()
	c.Compositions = []string{"broken", "deep", "gone", "nightly", "unused"}
	e := &fake{catalog: c, documents: map[string]string{
		"composition nightly": calls("nightly", "deep"), "composition deep": calls("deep", "report"), "composition broken": "kind: composition\nname: [",
	}}
	file := writeFile(t, "report.yaml", calls("report", "nightly"))
	problems := validate(t, e, exitFailed, file)
	require.Len(t, problems, 1)
	require.Equal(t, "CYCLE", problems[0].Code)
	require.Contains(t, problems[0].Message, "report -> nightly -> deep -> report")
	got := jigCLI(t, e, nil, "run", file)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "report -> nightly -> deep -> report")

	file = writeFile(t, "input.yaml", strings.ReplaceAll(calls("mine", "deep"), "page: a", "page: 7"))
	problems = validate(t, e, exitFailed, file)
	require.Len(t, problems, 1)
	require.Equal(t, "steps[0].parallel[0].input.page", problems[0].Path)

	require.Empty(t, validate(t, e, exitDone, writeFile(t, "a.yaml", calls("one", "gone"))), "only its name is known")
	require.Empty(t, validate(t, e, exitDone, writeFile(t, "a.yaml", calls("one", "broken"))), "a document that cannot be read is not checked")
	e.documents["composition deep"] = calls("deep", "unused")
	require.Empty(t, validate(t, e, exitDone, writeFile(t, "report.yaml", calls("report", "nightly"))))
}

func TestValidate_Advises(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "mine.md", "---\nname: mine\ndescription: An agent that reads what you tell it to.\nmodel: anthropic/x\ntools:\n  - file.raed\n  - cms.*\n---\nDo it.\n")
	problems := validate(t, &fake{catalog: known()}, exitDone, file)
	require.Equal(t, []checked{{
		Document: file, Path: "tools[0]", Code: "UNKNOWN_TOOL", Severity: "warning", Line: 6, Column: 5,
		Message: problems[0].Message, Hint: problems[0].Hint,
	}}, problems)
	require.Contains(t, problems[0].Hint, "file.read")

	vague := writeFile(t, "vague.yaml", "kind: composition\nname: file.reads\ndescription: Helper.\nsteps:\n  - set: {a: 1}\n")
	got := jigCLI(t, &fake{catalog: known()}, nil, "validate", vague)
	require.Equal(t, exitDone, got.code)
	require.Contains(t, got.stdout, vague+":2:7: warning: name: ")
	require.Contains(t, got.stdout, vague+":3:14: warning: description: ")
	require.Contains(t, got.stderr, "ok: 2 warnings in 1 document")

	broken := writeFile(t, "broken.yaml", "kind: composition\nname: my.broken\ndescription: Helper.\nstep: []\n")
	for _, p := range validate(t, nil, exitFailed, broken, "--offline") {
		require.Equal(t, string(spec.SeverityError), p.Severity, "there is no advice on a document that cannot be read")
	}
}

func TestValidate_NeedsACatalogOrOffline(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "spec.yaml", specDocument)
	absent := &fake{err: &jig.Error{Code: jig.CodeUnavailable, Message: "no worker", Hint: "start one"}}
	got := jigCLI(t, absent, nil, "validate", file)
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, "error: no worker\nhint: start one; or give --catalog FILE, or --offline to skip checking names\n", got.stderr)
	require.Empty(t, got.stdout)

	for name, args := range map[string][]string{
		"no such path":   {filepath.Join(t.TempDir(), "none"), "--offline"},
		"both":           {file, "--offline", "--catalog", "x.json"},
		"no catalog":     {file, "--catalog", file},
		"another object": {file, "--catalog", writeFile(t, "a.json", "{}")},
		"no file":        {file, "--catalog", "none.json"},
		"no path":        {},
	} {
		got := jigCLI(t, &fake{}, nil, append([]string{"validate"}, args...)...)
		require.Equal(t, exitUsage, got.code, name)
		require.Empty(t, got.stdout, name)
	}
	empty := jigCLI(t, nil, nil, "validate", t.TempDir(), "--offline", "--output", "json")
	require.JSONEq(t, `{"ok":true,"problems":[]}`, empty.stdout)
	require.Contains(t, jigCLI(t, nil, nil, "validate", t.TempDir(), "--offline").stderr, "there are no documents here")
}

func TestValidate_LooksForEntityTypes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "start.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`kind: thin_tool
name: things.start
description: Starts to look at a thing that somebody named, and says under which id it will be found.
creates: {type: modul, title: a thing}
`), 0o600))
	got := jigCLI(t, &fake{catalog: known()}, nil, "validate", file)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, `"module"`, "the hint is the nearest name")
	require.Contains(t, got.stdout, "creates.type")
}
