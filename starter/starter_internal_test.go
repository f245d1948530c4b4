package starter

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares an output with a golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func waitingCall() jig.Pending {
	return jig.Pending{
		Kind: jig.PendingApproval, Call: "3.1", Tool: "file.write", Input: json.RawMessage(`{"path":"report.md"}`),
		Summary: "write report.md", Reasons: []string{"a write asks"}, Digest: "d1", RequestedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
}

func doneView() jig.SessionView {
	return jig.SessionView{
		SessionID: "ses_1", Agent: "review", Status: jig.StatusCompleted, Pass: 4, Answer: "all fine <ok>",
		Calls:  []jig.CallView{{Call: "1.1", Tool: "deps.list", Status: jig.CallSucceeded, Summary: "38 modules", DurationMS: 12}},
		Counts: map[jig.CallStatus]int{jig.CallSucceeded: 40},
	}
}

func doneEngine() *fake {
	return &fake{
		view:   doneView(),
		result: client.PassResult{SessionID: "ses_1", Status: jig.StatusCompleted, Answer: "all fine <ok>", Reason: jig.ReasonAnswered, Passes: 4},
		pages: []client.EventsPage{{
			Events: []jig.Event{{SessionID: "ses_1", Seq: 1, At: noon, Type: jig.EventSessionCompleted}}, Status: jig.StatusCompleted,
		}},
	}
}

func TestOutput_JSONShapes(t *testing.T) {
	t.Parallel()
	waiting := jig.SessionView{
		SessionID: "ses_1", Agent: "review", Status: jig.StatusInputRequired, Pass: 3, Pending: []jig.Pending{waitingCall()},
		Calls: []jig.CallView{{Call: "3.1", Tool: "file.write", Status: jig.CallWaiting, Summary: "write report.md"}},
	}
	listed := waitingCall()
	listed.SessionID = "ses_1"
	for name, row := range map[string]struct {
		engine *fake
		args   []string
		code   int
	}{
		"run":          {doneEngine(), []string{"run", "review"}, 0},
		"detach":       {doneEngine(), []string{"run", "review", "--detach"}, 0},
		"status":       {&fake{view: waiting}, []string{"status", "ses_1"}, 0},
		"status-empty": {&fake{view: jig.SessionView{SessionID: "ses_1", Status: jig.StatusWorking}}, []string{"status", "ses_1"}, 0},
		"approvals":    {&fake{pending: []jig.Pending{listed}}, []string{"approvals"}, 0},
		"approvals-0":  {&fake{}, []string{"approvals"}, 0},
		"approve":      {&fake{}, []string{"approve", "ses_1", "3.1", "3.2"}, 0},
		"deny-refused": {
			&fake{ruled: []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionRefused, Reason: "already decided", Status: jig.CallSucceeded}}},
			[]string{"deny", "ses_1", "3.1", "--reason", "no"},
			1,
		},
		"reconcile": {&fake{}, []string{"reconcile", "ses_1", "2.1", "--outcome", "happened", "--result", `{"id":7}`}, 0},
		"trigger": {
			&fake{trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{
				Success: true, Data: json.RawMessage(`{"size":3}`), Summary: "3 bytes",
			}}},
			[]string{"trigger", "file.read", "--input", "path=go.mod"},
			0,
		},
		"events":  {&fake{events: []jig.Event{{SessionID: "ses_1", Seq: 1, At: noon, Type: jig.EventSessionStarted}, {SessionID: "ses_1", Seq: 2, At: noon, Type: jig.EventPassStarted, Pass: 1}}}, []string{"events", "ses_1"}, 0},
		"catalog": {&fake{catalog: client.Catalog{Tools: []jig.Tool{{Name: "a.b", InputSchema: json.RawMessage(`{}`)}}}}, []string{"catalog"}, 0},
		"catalog-whole": {
			&fake{catalog: client.Catalog{Tools: []jig.Tool{}, Agents: []string{"review"}, Skills: []string{}, Compositions: []string{"nightly"}}}, []string{"catalog"}, 0,
		},
		"message": {&fake{}, []string{"message", "ses_1", "go", "on"}, 0},
		"event":   {&fake{}, []string{"event", "ses_1", "paid", "--data", `{"n":1}`, "--id", "p1"}, 0},
		"cancel":  {&fake{}, []string{"cancel", "ses_1"}, 0},
	} {
		got := jigCLI(t, row.engine, nil, append(row.args, "--output", "json")...)
		require.Equal(t, row.code, got.code, "%s: %s", name, got.stderr)
		golden(t, name+".json", got.stdout)
	}
}

func TestRun_SendsItsFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "in.json")
	require.NoError(t, os.WriteFile(file, []byte(" {\"a\": 1}\n"), 0o600))
	e := doneEngine()
	got := jigCLI(t, e, nil, "run", "review", "--task", "check", "--input", "path=.", "--input", "note=a=b", "--input", "@"+file,
		"--model", "script/x", "--id", "mine", "--tenant", "acme", "--as", "bob")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, client.StartOptions{
		Tenant: "acme", ID: "mine", Agent: "review", Task: "check", Input: json.RawMessage(`{"a": 1}`),
		Pairs: map[string]string{"path": ".", "note": "a=b"}, Model: "script/x", Principal: jig.Principal{ID: "bob", Claimed: true},
		Source: jig.SourceCLI, Check: true,
	}, e.started)
	require.Equal(t, "all fine <ok>\n", got.stdout, "only data goes to stdout")
}

func TestRun_ReadsAnAgentDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := filepath.Join(dir, "mine.md")
	body := "---\nname: mine\nmodel: script/mine\ntools: [file.read]\nscript:\n  rules:\n    - answer: done\n---\nDo it.\n"
	require.NoError(t, os.WriteFile(good, []byte(body), 0o600))
	e := doneEngine()
	got := jigCLI(t, e, nil, "run", good)
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "mine", e.started.Agent)
	require.Equal(t, body, e.started.Document)

	bad := filepath.Join(dir, "bad.md")
	require.NoError(t, os.WriteFile(bad, []byte("---\nname: [\n---\n"), 0o600))
	got = jigCLI(t, doneEngine(), nil, "run", bad)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "bad.md:")

	got = jigCLI(t, doneEngine(), nil, "run", filepath.Join(dir, "none.md"))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "no such file")
}

func TestExitCodes_SayHowTheCommandEnded(t *testing.T) {
	t.Parallel()
	failed := doneEngine()
	failed.result = client.PassResult{SessionID: "ses_1", Status: jig.StatusFailed, Error: &jig.Error{Code: jig.CodeBudgetExhausted, Message: "too long"}}
	denied := doneEngine()
	denied.view.Counts = map[jig.CallStatus]int{jig.CallDenied: 1}
	expired := doneEngine()
	expired.result = client.PassResult{SessionID: "ses_1", Status: jig.StatusFailed, Error: &jig.Error{Code: jig.CodeExpired, Message: "nobody answered"}}
	unreachable := &fake{err: &jig.Error{Code: jig.CodeUnavailable, Message: "no Temporal", Reason: client.ReasonNoTemporal}}
	call := func(status jig.CallStatus) *fake {
		return &fake{trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: status, Result: &jig.ToolResult{}}}
	}
	for name, row := range map[string]struct {
		engine *fake
		args   []string
		code   int
	}{
		"completed":              {doneEngine(), []string{"run", "review"}, exitDone},
		"failed":                 {failed, []string{"run", "review"}, exitFailed},
		"a call was denied":      {denied, []string{"run", "review"}, exitDenied},
		"expired":                {expired, []string{"run", "review"}, exitDenied},
		"no Temporal":            {unreachable, []string{"approvals"}, exitUsage},
		"call succeeded":         {call(jig.CallSucceeded), []string{"trigger", "a.b"}, exitDone},
		"call failed":            {call(jig.CallFailed), []string{"trigger", "a.b"}, exitFailed},
		"call denied":            {call(jig.CallDenied), []string{"trigger", "a.b"}, exitDenied},
		"unknown command":        {&fake{}, []string{"runn"}, exitUsage},
		"unknown flag":           {&fake{}, []string{"status", "ses_1", "--nope"}, exitUsage},
		"no argument":            {&fake{}, []string{"status"}, exitUsage},
		"bad session":            {&fake{}, []string{"status", "a b"}, exitUsage},
		"bad call":               {&fake{}, []string{"approve", "ses_1", "first"}, exitUsage},
		"nothing waits":          {&fake{}, []string{"approve", "ses_1"}, exitFailed},
		"no call":                {&fake{}, []string{"reconcile", "ses_1"}, exitUsage},
		"bad tool":               {&fake{}, []string{"trigger", "nonsense"}, exitUsage},
		"bad output":             {&fake{}, []string{"approvals", "--output", "xml"}, exitUsage},
		"bad tenant":             {&fake{}, []string{"approvals", "--tenant", "_global"}, exitUsage},
		"bad input":              {&fake{}, []string{"run", "a", "--input", "novalue"}, exitUsage},
		"input twice":            {&fake{}, []string{"run", "a", "--input", "k=1", "--input", "k=2"}, exitUsage},
		"input not JSON":         {&fake{}, []string{"run", "a", "--input", "{nope"}, exitUsage},
		"input is not an object": {&fake{}, []string{"approve", "ses_1", "1.1", "--input", "[1"}, exitUsage},
		"detach and yes":         {&fake{}, []string{"run", "a", "--detach", "--yes"}, exitUsage},
		"no outcome":             {&fake{}, []string{"reconcile", "ses_1", "1.1"}, exitUsage},
		"result unasked":         {&fake{}, []string{"reconcile", "ses_1", "1.1", "--outcome", "give_up", "--result", "1"}, exitUsage},
		"edit of two":            {&fake{}, []string{"approve", "ses_1", "1.1", "1.2", "--input", "{}"}, exitUsage},
	} {
		got := jigCLI(t, row.engine, nil, row.args...)
		require.Equal(t, row.code, got.code, "%s: %s", name, got.stderr)
		if row.code == exitUsage {
			require.Equal(t, 1, strings.Count(got.stderr, "error: "), "%s: one message: %s", name, got.stderr)
			require.Empty(t, got.stdout, name)
		}
	}
}

// A number is passed on as it was written, whatever its size; the tool decides about it.
func TestInput_KeepsNumbersAsWritten(t *testing.T) {
	t.Parallel()
	engine := &fake{trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}}}
	out := jigCLI(t, engine, nil, "trigger", "a.b", "--input", `{"n":1e400}`)
	require.Equal(t, exitDone, out.code, out.stderr)
	require.Equal(t, `{"n":1e400}`, string(engine.input.Input))
}

func TestInterrupted_EndsWithItsOwnCode(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := jigCLIWith(t, ctx, doneEngine(), nil, "run", "review", "--id", "mine", "--tenant", "acme")
	require.Equal(t, exitInterrupted, got.code)
	require.Contains(t, got.stderr, "jig watch mine --tenant acme")
}

func TestNothingAnswers_ErrorsNameTheAddress(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	environ := []string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml")}
	program := Program{
		Args: []string{"jig", "status", "ses_1", "--temporal-address", "127.0.0.1:1"}, Environ: environ, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
	}
	require.Equal(t, exitUsage, program.Run(t.Context()))
	require.Contains(t, stderr.String(), "error: no Temporal server answers at 127.0.0.1:1 (address from: --temporal-address)")
	require.Empty(t, stdout.String())
}

func TestUsageErrors_HaveHints(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"statsu ses_1":         "error: unknown command \"statsu\" for \"jig\"\nhint: did you mean status?\n",
		"policy tset":          "error: unknown command \"tset\" for \"jig policy\"\nhint: did you mean test?\n",
		"audit foo":            "error: unknown command \"foo\" for \"jig audit\"\nhint: see `jig audit --help`\n",
		"run":                  "error: 0 arguments are given; expected AGENT|COMPOSITION|FILE\nhint: see `jig run --help`\n",
		"bundle install a b":   "error: 2 arguments are given; expected FOLDER\nhint: see `jig bundle install --help`\n",
		"watch":                "error: 0 arguments are given; expected SESSION|ENTITY\nhint: see `jig watch --help`\n",
		"approve s --yess":     "error: unknown flag: --yess\nhint: did you mean --yes?\n",
		"run x --no-wiat":      "error: unknown flag: --no-wiat\nhint: did you mean --no-wait?\n",
		"run x --zzzzzzzz":     "error: unknown flag: --zzzzzzzz\nhint: see `jig run --help`\n",
		"run /":                "error: read /: is a directory\n",
		"reconcile ses_1 1.1":  "error: --outcome is missing; it must be happened, not_happened or give_up\n",
		"token ses_1 1.1":      "error: --action is missing; it must be approve, deny, delegate, answer or reconcile\n",
		"token s 1.1 --action": "error: flag needs an argument: --action\nhint: see `jig token --help`\n",
	} {
		got := jigCLI(t, &fake{}, nil, strings.Fields(line)...)
		require.Equal(t, exitUsage, got.code, line)
		require.Equal(t, want, got.stderr, line)
	}
}

func TestHelp_HasSections(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, &fake{}, nil, "--help")
	require.Contains(t, got.stdout, "Approve and decide:\n  answer ")
	_, rest, found := strings.Cut(got.stdout, "Additional Commands:\n")
	require.True(t, found)
	rest, _, _ = strings.Cut(rest, "\n\n")
	require.Len(t, strings.Split(rest, "\n"), 3, "completion, help and version alone are in no section: %s", rest)
	require.Contains(t, jigCLI(t, &fake{}, nil, "policy", "test", "--help").stdout, "--catalog FILE ")
}

func TestCatalog_ListsRegisteredDocuments(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, &fake{catalog: known()}, nil, "catalog")
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "agents\n  review\ncompositions that are not tools\n  nightly\nskills\n  notes\nentity types\n  module\n")
	require.Equal(t, "3 tools (1 composition), 1 agent, 1 composition that is not a tool, 1 skill, 1 entity type\n", got.stderr)
}

func TestCompletion_CompletesFlagValues(t *testing.T) {
	t.Parallel()
	for flag, words := range map[string]string{"--format": "text\nmermaid\n", "--output": "text\njson\n"} {
		got := jigCLI(t, &fake{}, nil, "__complete", "explain", flag, "")
		require.Equal(t, 0, got.code, got.stderr)
		require.Contains(t, got.stdout, words)
	}
	require.Contains(t, jigCLI(t, &fake{}, nil, "__complete", "explain", "").stdout, ":0\n", "file names are completed")
}

func TestCompletion_PrintsAScriptForEachShell(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := jigCLI(t, &fake{}, nil, "completion", shell)
		require.Equal(t, 0, got.code, got.stderr)
		require.Contains(t, got.stdout, "jig", shell)
	}
	require.Equal(t, exitUsage, jigCLI(t, &fake{}, nil, "completion", "tcsh").code)
	require.Equal(t, 0, jigCLI(t, &fake{}, nil, "version").code)
	require.Equal(t, 0, jigCLI(t, &fake{}, nil, "--help").code)
}

func TestProgramName_IsWhatTheUserTypes(t *testing.T) {
	t.Parallel()
	require.Equal(t, "jig", programName("/usr/bin/jig"))
	require.Equal(t, "go run ./cmd/jig", programName("/tmp/go-build123/b001/exe/jig"))
}
