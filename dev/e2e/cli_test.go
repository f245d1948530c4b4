package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// said is a program's output and exit code.
type commandResult struct {
	out, err string
	code     int
}

// command runs a program and waits for it.
func (d *testEnv) command(program string, args ...string) commandResult {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = d.env, d.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(d.t, err, &exit, program)
	}
	require.NotContains(d.t, out.String()+errs.String(), "goroutine ", "users must not see a stack trace")
	return commandResult{out: out.String(), err: errs.String(), code: cmd.ProcessState.ExitCode()}
}

func (d *testEnv) jig(args ...string) commandResult {
	d.t.Helper()
	return d.command(shared.cli.path(d.t), args...)
}

// stock runs Temporal's own CLI.
func (d *testEnv) stock(args ...string) commandResult {
	d.t.Helper()
	program, err := exec.LookPath("temporal")
	if err != nil {
		program, err = filepath.Abs(filepath.Join("..", "..", ".cache", "bin", "temporal"))
		require.NoError(d.t, err)
		require.FileExists(d.t, program, "the Temporal CLI is missing: `make temporal-cli` builds it")
	}
	return d.command(program, append(args, "--address", shared.stack.TemporalAddress(), "--namespace", shared.stack.Namespace())...)
}

func TestStockCLI_Answers(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)

	id := d.gated(r, "approved")
	queried := d.stock("workflow", "query", "--workflow-id", id, "--name", "status", "--output", "json")
	require.Zero(t, queried.code, queried.err)
	require.Contains(t, queried.out, `input_required`)
	require.Contains(t, queried.out, `test.write`)
	require.True(t, eventually(t.Context(), patience, func() bool {
		return strings.Contains(d.stock("workflow", "list", "--query", `JigStatus="input_required"`, "--output", "json").out, id)
	}))
	sent := d.stock("workflow", "signal", "--workflow-id", id, "--name", "approve", "--input", `{"call":"1.1","by":"ana"}`)
	require.Zero(t, sent.code, sent.err)
	require.Equal(t, "written", d.finish(id).Answer)

	id = d.gated(r, "denied")
	sent = d.stock("workflow", "signal", "--workflow-id", id, "--name", "deny", "--input", `{"call":"1.1","by":"ana","reason":"too much"}`)
	require.Zero(t, sent.code, sent.err)
	require.Equal(t, "DENIED", d.finish(id).Answer)

	id = d.gated(r, "spoken")
	sent = d.stock("workflow", "signal", "--workflow-id", id, "--name", "message", "--input", `{"text":"skip the archived ones","by":"ana"}`)
	require.Zero(t, sent.code, sent.err)
	require.True(t, eventually(t.Context(), patience, func() bool { return len(d.eventsSoFar(id, jig.EventMessageAdded)) == 1 }))
	sent = d.stock("workflow", "signal", "--workflow-id", id, "--name", "event", "--input", `{"name":"paid","data":{"id":7}}`)
	require.Zero(t, sent.code, sent.err)
	require.True(t, eventually(t.Context(), patience, func() bool { return len(d.eventsSoFar(id, jig.EventDecisionRefused)) == 1 }),
		"an event that nobody waits for is refused, not lost")
}

func TestCommandLine_CoversASession(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	file := filepath.Join(d.dir, "gated.md")
	require.NoError(t, os.WriteFile(file, []byte(agent(`["*"]`, gatedRules)), 0o600))

	detached := d.jig("run", file, "--input", "url="+r.URL, "--input", "name=w", "--detach", "--output", "json")
	require.Zero(t, detached.code, detached.err)
	var started struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(detached.out), &started))
	id := started.SessionID
	d.waiting(id)

	var status jig.SessionView
	got := d.jig("status", id, "--output", "json")
	require.Zero(t, got.code, got.err)
	require.NoError(t, json.Unmarshal([]byte(got.out), &status))
	require.Equal(t, jig.StatusInputRequired, status.Status)
	require.Len(t, status.Pending, 1)

	got = d.jig("approvals", "--output", "json")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, id)

	got = d.jig("approve", id, "1.9", "--as", "ana", "--output", "json")
	require.NotZero(t, got.code)
	require.Contains(t, got.out, "refused")

	got = d.jig("approve", id, "1.1", "--as", "ana", "--output", "json")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, `"accepted"`)
	require.Equal(t, "written", d.finish(id).Answer)

	got = d.jig("events", id, "--output", "json")
	require.Zero(t, got.code, got.err)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	for i, line := range lines {
		var e jig.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Equal(t, int64(i+1), e.Seq)
	}
	require.Contains(t, lines[len(lines)-1], "session.completed")

	require.Zero(t, d.jig("message", id, "again").code)
	d.until(id, func(v jig.SessionView) bool { return v.Status.Final() && v.Pass == 3 })

	waits := d.jig("run", file, "--input", "url="+r.URL, "--input", "name=x", "--no-wait", "--output", "json")
	require.Equal(t, 3, waits.code, waits.err)
	approved := d.jig("run", file, "--input", "url="+r.URL, "--input", "name=y", "--follow", "--yes", "--output", "json")
	require.Zero(t, approved.code, approved.err)
	require.Contains(t, approved.err, "\napproved 1.1 test.write (without asking, because of --yes)\n")
	require.NotContains(t, approved.err, "answer it with one of", "one line for each call")
}

func TestBadInput_GetsOneClearMessage(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	file := func(name, body string) string {
		path := filepath.Join(d.dir, name)
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		return path
	}
	bomb := "---\nname: bomb\nmodel: script/x\ntools: [a.b]\ndescription: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		bomb += string(i) + ": &" + string(i) + " [" + strings.Repeat("*"+string(i-1)+",", 9) + "]\n"
	}
	for name, row := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no such agent":       {[]string{"run", "dependency-reveiw"}, 1, "dependency-review"}, //nolint:misspell // on purpose
		"broken front matter": {[]string{"validate", "--offline", file("broken.md", "---\nname: [\n---\nx")}, 1, "broken.md"},
		"unknown key":         {[]string{"validate", "--offline", file("key.md", "---\nname: a\ndescription: A test agent.\nmodle: script/a\ntools: [a.b]\n---\nx")}, 1, "model"}, //nolint:misspell // on purpose
		"yaml bomb":           {[]string{"validate", "--offline", file("bomb.md", bomb+"---\nx")}, 1, "alias"},
		"wrong type":          {[]string{"validate", "--offline", file("type.md", "---\nname: a\ndescription: A test agent.\nmodel: script/a\ntools: [a.b]\nmax_passes: many\n---\nx")}, 1, "max_passes"},
		"run a broken file":   {[]string{"run", file("broken2.md", "---\nname: [\n---\nx")}, 2, "broken2.md"},
		"no such file":        {[]string{"run", "nothere.md"}, 2, "nothere.md"},
		"no such session":     {[]string{"status", "ses_nothere"}, 1, "there is no session \"ses_nothere\"\nhint: list sessions with `jig sessions`"},
		"bad session id":      {[]string{"status", "a b"}, 2, "session"},
		"bad input":           {[]string{"run", "dependency-review", "--input", "pth=go.mod", "--no-wait"}, 1, "path"},
		"unknown flag":        {[]string{"run", "--nope"}, 2, "nope"},
		"no Temporal":         {[]string{"approvals", "--temporal-address", "127.0.0.1:1"}, 2, "127.0.0.1:1"},
		"unknown provider":    {[]string{"run", "dependency-review", "--model", "closedai/x", "--no-wait"}, 1, "closedai"},
		"missing key":         {[]string{"run", "dependency-review", "--model", "anthropic/x", "--no-wait"}, 1, "ANTHROPIC_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := d.jig(row.args...)
			require.Equal(t, row.code, got.code, "%s%s", got.out, got.err)
			require.Contains(t, got.out+got.err, row.says)
		})
	}
}

func TestWorker_ReportsAMissingDatabase(t *testing.T) {
	t.Parallel()
	d := newTestEnv(t, "JIG_DATABASE_URL=postgres://nobody:secret@127.0.0.1:1/none")
	got := d.command(shared.worker)
	require.NotZero(t, got.code)
	require.Contains(t, got.err, "127.0.0.1:1")
	require.NotContains(t, got.err, "secret", "the log must not contain a password")
}
