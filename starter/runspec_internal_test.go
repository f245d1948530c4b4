package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

const specDocument = `kind: composition
name: my.spec
description: Says hello to whoever it is told to.
steps:
  - id: hello
    tool: file.read
    input: {path: go.mod}
`

func TestRunCallsAnExecutionSpec(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "spec.yaml")
	require.NoError(t, os.WriteFile(file, []byte(specDocument), 0o600))
	e := doneEngine()
	e.view = jig.SessionView{SessionID: "ses_1", Status: jig.StatusCompleted, Pass: 1}
	e.waited = client.CallResult{
		SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Data: json.RawMessage(`{"text":"hi"}`)},
	}
	got := jigCLI(t, e, nil, "run", file, "--input", "who=ana", "--output", "json")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, client.CallInput{
		Tenant: "default", Document: specDocument, DocumentName: file, Pairs: map[string]string{"who": "ana"}, Principal: e.input.Principal,
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
	require.Contains(t, got.stderr, "--task and --model go with an agent")
}

func TestRunTellsARegisteredSpecFromAnAgent(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.catalog = client.Catalog{Agents: []string{"some.agent"}}
	e.waited = client.CallResult{SessionID: "ses_1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}}
	require.Equal(t, 0, jigCLI(t, e, nil, "run", "some.agent").code)
	require.Equal(t, "some.agent", e.started.Agent)
	require.Empty(t, e.input.Tool)
	e.view.Status = jig.StatusCompleted
	require.Equal(t, 0, jigCLI(t, e, nil, "run", "some.spec").code)
	require.Equal(t, "some.spec", e.input.Tool)
}

func TestCatalogAddSendsTheDocuments(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "spec.yaml")
	require.NoError(t, os.WriteFile(file, []byte(specDocument), 0o600))
	e := doneEngine()
	e.trigger = client.CallResult{SessionID: "ses_1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Summary: "registered my.spec"}}
	got := jigCLI(t, e, nil, "catalog", "add", file)
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, catalogTool, e.input.Tool)
	require.Contains(t, string(e.input.Input), `"name: my.spec`[1:])

	got = jigCLI(t, doneEngine(), nil, "catalog", "add", t.TempDir())
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "there are no documents in")
}
