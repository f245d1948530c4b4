package starter

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

const specDocument = `kind: composition
name: my.spec
description: Says hello to whoever it is told to.
steps:
  - id: hello
    tool: file.read
    input: {path: go.mod}
`

const skillDocument = "---\nname: notes\ndescription: Use it to write release notes for people who run the software.\n---\nRead style.md first.\n"

// writeFile writes a file into a new folder and returns its path.
func writeFile(t *testing.T, name, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	return file
}

func TestRun_CallsAnExecutionSpec(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "spec.yaml")
	require.NoError(t, os.WriteFile(file, []byte(specDocument), 0o600))
	e := doneEngine()
	e.catalog = client.Catalog{Tools: []jig.Tool{{Name: "file.read", Implementation: "go"}}}
	e.view = jig.SessionView{SessionID: "ses_1", Status: jig.StatusCompleted, Pass: 1}
	e.waited = client.CallResult{
		SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Data: json.RawMessage(`{"text":"hi"}`)},
	}
	got := jigCLI(t, e, nil, "run", file, "--input", "who=ana", "--output", "json")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, client.CallInput{
		Tenant: "default", Document: specDocument, DocumentName: file, Pairs: map[string]string{"who": "ana"}, Principal: e.input.Principal,
		Source: jig.SourceCLI, Check: true,
	}, e.input)
	var report struct {
		SessionID string          `json:"session_id"`
		Output    json.RawMessage `json:"output"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.Equal(t, "ses_1", report.SessionID)
	require.JSONEq(t, `{"text":"hi"}`, string(report.Output))

	got = jigCLI(t, e, nil, "run", file, "--task", "something")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "--task and --model are for agents")
}

func TestRun_DistinguishesSpecsFromAgents(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.catalog = client.Catalog{Agents: []string{"some.agent", "review"}, Compositions: []string{"nightly"}}
	e.waited = client.CallResult{SessionID: "ses_1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}}
	require.Equal(t, 0, jigCLI(t, e, nil, "run", "some.agent").code)
	require.Equal(t, "some.agent", e.started.Agent)
	require.Empty(t, e.input.Tool)
	e.view.Status = jig.StatusCompleted
	require.Equal(t, 0, jigCLI(t, e, nil, "run", "some.spec").code)
	require.Equal(t, "some.spec", e.input.Tool)
	require.Equal(t, 0, jigCLI(t, e, nil, "run", "nightly").code)
	require.Equal(t, "nightly", e.input.Tool, "a spec whose name is not a tool name")
	require.Equal(t, 0, jigCLI(t, e, nil, "run", "review").code)
	require.Equal(t, "review", e.started.Agent)
}

func TestRun_WithoutAWorkerIsStored(t *testing.T) {
	t.Parallel()
	absent := &jig.Error{Code: jig.CodeUnavailable, Message: "no worker is answering", Reason: client.ReasonNoWorker}
	e := &unlisted{fake: doneEngine(), err: absent}
	require.Equal(t, 0, jigCLI(t, e, nil, "run", "review", "--detach").code)
	require.Equal(t, "review", e.started.Agent)
	require.Equal(t, 0, jigCLI(t, e, nil, "run", writeFile(t, "spec.yaml", specDocument), "--detach").code)
	require.Equal(t, specDocument, e.input.Document)

	got := jigCLI(t, e, nil, "run", "some.thing", "--detach")
	require.Equal(t, exitFailed, got.code, "it could be an agent or a spec")
	require.Contains(t, got.stderr, "no worker is answering")
	e.err = &jig.Error{Code: jig.CodeInternal, Message: "the database is gone"}
	require.Equal(t, exitFailed, jigCLI(t, e, nil, "run", "review", "--detach").code)
}

// unlisted is an engine whose catalog cannot be read.
type unlisted struct {
	*fake
	err error
}

func (u *unlisted) Catalog(context.Context, string) (client.Catalog, error) {
	return client.Catalog{}, u.err
}

func TestRun_RefusesABrokenSpec(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.catalog = client.Catalog{Tools: []jig.Tool{{Name: "file.reed"}}}
	file := writeFile(t, "spec.yaml", specDocument)
	got := jigCLI(t, e, nil, "run", file)
	require.Equal(t, exitUsage, got.code)
	require.Empty(t, got.stdout)
	require.Empty(t, e.input.Document, "nothing was started")
	checked := jigCLI(t, e, nil, "validate", file)
	require.Contains(t, checked.stdout, file+`:6:11: steps[0].tool: there is no tool "file.read" (did you mean`)
	require.Equal(t, checked.stdout+"error: 1 error in "+file+"\n", got.stderr, "the same problems")

	broken := writeFile(t, "broken.yaml", "kind: composition\nname: my.spec\nstepz: []\n")
	got = jigCLI(t, nil, nil, "run", broken)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, broken+":3:1: ")
	require.Contains(t, got.stderr, "error: 2 errors in "+broken)

	got = jigCLI(t, nil, nil, "run", writeFile(t, "SKILL.md", skillDocument))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "is a skill")
}

func TestCatalogAdd_SendsTheDocuments(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "spec.yaml")
	require.NoError(t, os.WriteFile(file, []byte(specDocument), 0o600))
	e := doneEngine()
	e.trigger = client.CallResult{SessionID: "ses_1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Summary: "registered my.spec"}}
	got := jigCLI(t, e, nil, "catalog", "add", file)
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, toolname.CatalogPut, e.input.Tool)
	require.Contains(t, string(e.input.Input), `"name: my.spec`[1:])

	skill := filepath.Dir(writeFile(t, "SKILL.md", skillDocument))
	require.NoError(t, os.WriteFile(filepath.Join(skill, "style.md"), []byte("Be short."), 0o600))
	got = jigCLI(t, e, nil, "catalog", "add", skill)
	require.Equal(t, 0, got.code, got.stderr)
	var sent struct{ Documents []struct{ Path, Body string } }
	require.NoError(t, json.Unmarshal(e.input.Input, &sent))
	require.Len(t, sent.Documents, 1)
	doc, problems := spec.Load(sent.Documents[0].Path, []byte(sent.Documents[0].Body))
	require.Empty(t, problems, "the tool can read what was sent")
	require.Equal(t, map[string]string{"style.md": "Be short."}, doc.Skill().Files)

	got = jigCLI(t, doneEngine(), nil, "catalog", "add", t.TempDir())
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "there are no documents in")
}
