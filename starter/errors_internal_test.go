package starter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

func TestErrors_AreTheLastLineAsJSON(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "spec.yaml", "kind: composition\nname: my.spec\nstepz: []\nsteps: []\n")
	rich := &jig.Error{
		Code: jig.CodeInvalidInput, Message: "the input does not fit <it>", Field: "input", Hint: "see the schema", Reason: "schema",
		Violations: []jig.Violation{{Pointer: "/path", Message: "is missing"}, {Pointer: "/n", Message: "is no number"}},
	}
	absent := &jig.Error{Code: jig.CodeUnavailable, Message: "no Temporal server answers", Reason: client.ReasonNoTemporal}
	for name, row := range map[string]struct {
		engine any
		args   []string
		code   int
	}{
		"error-engine":    {&fake{err: rich}, []string{"approvals"}, exitFailed},
		"error-denied":    {&fake{err: &jig.Error{Code: jig.CodeDenied, Message: "not you"}}, []string{"cancel", "ses_1"}, exitDenied},
		"error-absent":    {&fake{err: absent}, []string{"catalog"}, exitUsage},
		"error-documents": {&fake{}, []string{"run", file}, exitUsage},
		"error-usage":     {&fake{}, []string{"validate", file, "--offline", "--catalog", "x"}, exitUsage},
		"error-argument":  {&fake{}, []string{"status", "a b"}, exitUsage},
		"error-command":   {&fake{}, []string{"runn"}, exitUsage},
		"error-flag":      {&fake{}, []string{"status", "ses_1", "--nope"}, exitUsage},
	} {
		got := jigCLI(t, row.engine, nil, append(row.args, "--output", "json")...)
		require.Equal(t, row.code, got.code, "%s: %s", name, got.stderr)
		require.Empty(t, got.stdout, name)
		require.Equal(t, 1, strings.Count(got.stderr, "\n"), "%s: one document on one line", name)
		golden(t, name+".json", strings.ReplaceAll(got.stderr, file, "spec.yaml"))
		var report struct{ Error jig.Error }
		require.NoError(t, json.Unmarshal([]byte(got.stderr), &report), name)
		require.NotEmpty(t, report.Error.Code)

		text := jigCLI(t, row.engine, nil, row.args...)
		require.Equal(t, row.code, text.code, "%s: the format changes no exit code", name)
		require.NotContains(t, text.stderr, `"error"`)
	}
}

func TestFailedSession_IsPrintedAsData(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.result = client.PassResult{SessionID: "ses_1", Status: jig.StatusFailed, Error: &jig.Error{Code: jig.CodeBudgetExhausted, Message: "too long"}}
	got := jigCLI(t, e, nil, "run", "review", "--output", "json")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, `"error":{"code":"BUDGET_EXHAUSTED"`)
	require.NotContains(t, got.stderr, `"error"`)
}

func TestErrors_AreTheLastLine(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.err = &jig.Error{Code: jig.CodeUnavailable, Message: "the worker went away"}
	got := jigCLI(t, e, nil, "run", writeFile(t, "review.md", reviewDocument), "--output", "json")
	require.Equal(t, exitFailed, got.code)
	require.Empty(t, got.stdout)
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	require.Greater(t, len(lines), 1)
	require.JSONEq(t, `{"error":{"code":"UNAVAILABLE","message":"the worker went away"}}`, lines[len(lines)-1])
}

func TestAsksForJSON_FindsTheLastOutputFlag(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"runn --output json": true, "runn --output=json": true, "--output json runn": true, "runn --output": false, "runn": false,
		"runn --output text --output json": true, "runn --output=json --output text": false, "runn -- --output json": false,
	} {
		require.Equal(t, want, asksForJSON(strings.Fields(line)), line)
	}
}
