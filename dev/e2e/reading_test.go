package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// file writes a file into the environment's folder and returns its path.
func (d *testEnv) file(name, body string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	require.NoError(d.t, os.WriteFile(path, []byte(body), 0o600))
	return path
}

// prints runs a command with JSON output, checks its exit code, and decodes what it prints.
func (d *testEnv) prints(code int, v any, args ...string) {
	d.t.Helper()
	got := d.jig(append(args, "--output", "json")...)
	require.Equal(d.t, code, got.code, got.err)
	require.NoError(d.t, json.Unmarshal([]byte(got.out), v), got.out)
}

// sameForStrangers checks that a command answers a stranger's request for an existing session as it answers one for a session that does not
// exist.
func (d *testEnv) sameForStrangers(id string, args ...string) {
	d.t.Helper()
	unknown := "ses_nothere"
	ask := func(id string) commandResult {
		filled := []string{"--tenant", "stranger"}
		for _, arg := range args {
			filled = append(filled, strings.ReplaceAll(arg, "SESSION", id))
		}
		got := d.jig(filled...)
		got.out, got.err = strings.ReplaceAll(got.out, id, unknown), strings.ReplaceAll(got.err, id, unknown)
		return got
	}
	got := ask(id)
	require.NotZero(d.t, got.code)
	require.Equal(d.t, ask(unknown), got)
}

const pagesDocument = `kind: composition
name: probe.pages
description: Writes two pages and says what became of them.
input_schema: {type: object, properties: {url: {type: string}}, required: [url], additionalProperties: false}
steps:
  - id: first
    tool: test.write
    input: {url: "${input.url}", name: first}
  - id: second
    tool: test.write
    input: {url: "${input.url}", name: second}
output: {status: published, pages: 2}
`

// After a composition has waited, everybody in the tenant can read its output, and nobody in another tenant.
func TestResult_OfACompositionThatWaited(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	var waits protocol.SessionResult
	d.prints(3, &waits, "run", d.file("pages.yaml", pagesDocument), "--input", "url="+r.URL, "--no-wait")
	id := waits.SessionID
	require.Len(t, waits.Pending, 1)
	require.Equal(t, []string{id, "1.1/first", "test.write"}, []string{waits.Pending[0].SessionID, waits.Pending[0].Call, waits.Pending[0].Tool})
	for _, call := range []string{"1.1/first", "1.1/second"} {
		var now protocol.SessionResult
		require.True(t, eventually(t.Context(), patience, func() bool {
			d.prints(3, &now, "result", id)
			return len(now.Pending) == 1 && now.Pending[0].Call == call
		}))
		require.Equal(t, jig.StatusInputRequired, now.Status)
		require.Equal(t, 3, d.jig("result", id, call).code, "a call that waits has no result")
		_, err := d.Decide(t.Context(), "", id, []jig.Decision{{Call: call, By: "ana", Digest: now.Pending[0].Digest, Answer: jig.AnswerApprove}})
		require.NoError(t, err)
		if call == "1.1/first" { // the result survives the worker
			d.kill()
			d.start()
		}
	}
	var done protocol.SessionResult
	d.prints(0, &done, "result", id, "--wait")
	require.Equal(t, jig.StatusCompleted, done.Status)
	require.JSONEq(t, `{"status":"published","pages":2}`, string(done.Output))
	require.JSONEq(t, string(done.Output), d.jig("result", id).out)

	var call protocol.CallRecord
	d.prints(0, &call, "result", id, "1.1/second")
	require.Equal(t, jig.CallSucceeded, call.Status)
	require.Contains(t, string(call.Input), `"second"`)
	require.True(t, call.Result.Success)
	require.Equal(t, 1, d.jig("result", id, "1.1/third").code)
	d.sameForStrangers(id, "result", "SESSION")
	d.sameForStrangers(id, "result", "SESSION", "1.1/second")
}

// A start that cannot work is refused at once: no session is started.
func TestStart_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	strict := d.file("strict.md", agent(`["test.echo"]`, "    - answer: done\n",
		"input_schema: {type: object, properties: {title: {type: string}}, additionalProperties: false}"))
	pages := d.file("pages.yaml", pagesDocument)
	for name, row := range map[string]struct {
		args []string
		says string
	}{
		"an unknown agent":          {[]string{"run", "nosuchagent"}, `there is no agent "nosuchagent"`},
		"an unknown composition":    {[]string{"run", "probe.nosuch"}, "there is no tool"},
		"a misspelt input":          {[]string{"run", strict, "--input", "titel=x"}, "titel"},
		"an input of a composition": {[]string{"run", pages, "--input", "ulr=x"}, "ulr"},
		"a model without a key":     {[]string{"run", strict, "--model", "anthropic/x"}, "ANTHROPIC_API_KEY"},
		"an unknown provider":       {[]string{"run", strict, "--model", "closedai/x"}, "closedai"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := newID(jig.DefaultTenant)
			got := d.jig(append(row.args, "--id", jig.ClientID(id))...)
			require.Equal(t, 1, got.code, got.err)
			require.Contains(t, got.err, row.says)
			require.NotContains(t, got.err, "started")
			_, err := shared.temporal.DescribeWorkflowExecution(t.Context(), id, "")
			require.ErrorContains(t, err, "not found")
		})
	}
	var refused struct{ Error struct{ Code, Field string } }
	got := d.jig("run", "nosuchagent", "--output", "json")
	require.Empty(t, got.out)
	require.NoError(t, json.Unmarshal([]byte(got.err), &refused), "the error is one JSON document")
	require.Equal(t, string(jig.CodeNotFound), refused.Error.Code)
	require.Equal(t, "agent", refused.Error.Field)
}
