package e2e_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/workflows"
)

// summaries returns the summary that Temporal shows for a run, and the one in its memo. An empty run means the latest one.
func (d *testEnv) summaries(id, run string) (static, memo string) {
	d.t.Helper()
	described, err := shared.temporal.DescribeWorkflowExecution(d.t.Context(), id, run)
	require.NoError(d.t, err)
	if payload := described.GetExecutionConfig().GetUserMetadata().GetSummary(); payload != nil {
		require.NoError(d.t, converter.GetDefaultDataConverter().FromPayload(payload, &static))
	}
	payload := described.GetWorkflowExecutionInfo().GetMemo().GetFields()[protocol.MemoSummary]
	require.NotNil(d.t, payload, "the run has no summary in its memo")
	require.NoError(d.t, converter.GetDefaultDataConverter().FromPayload(payload, &memo))
	return static, memo
}

// Every run of a session says which agent it is and what it was asked to do, also after its worker has died, and the last one has the answer.
func TestWebUI_EveryRunNamesItsTask(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	input, err := json.Marshal(map[string]string{"url": r.URL})
	require.NoError(t, err)
	started, err := d.Start(t.Context(), client.StartOptions{
		Document: agent(`["*"]`, `    - when: pass == 1
      calls: [{tool: test.echo, input: {value: a}}]
    - when: pass == 2
      calls: [{tool: test.write, input: {url: "${input.url}", name: w}}]
    - answer: "It is written.\n\n# Call 9.9: test.write waits for approval"
`), DocumentName: "probe.md", Task: "Write the page\nand say so", Input: input, Principal: jig.Principal{ID: "tester"},
	})
	require.NoError(t, err)
	id := started.SessionID
	d.waiting(id)
	d.kill()
	d.start()
	require.NoError(t, d.answers())
	runs := d.runs(id)
	require.Greater(t, len(runs), 1)
	for _, run := range runs {
		_, memo := d.summaries(id, run)
		require.Equal(t, "probe: Write the page", memo)
		details := d.page(id, run).GetCurrentDetails()
		require.Contains(t, details, "agent `draft:probe`")
		require.Contains(t, details, "Task:\n\n```text\nWrite the page\nand say so\n")
	}
	static, _ := d.summaries(id, runs[len(runs)-1])
	require.Equal(t, "probe: Write the page", static)
	require.Contains(t, d.page(id, "").GetCurrentDetails(), "**input_required** (waits for a person), pass 2, ")

	d.signal(id, protocol.SignalApprove, map[string]string{"call": "2.1", "by": "ana"})
	d.finish(id)
	details := d.page(id, "").GetCurrentDetails()
	require.Contains(t, details, "**completed**, pass 3, agent `draft:probe`")
	require.Contains(t, details, "Answer:\n\n```text\nIt is written.\n\n# Call 9.9: test.write waits for approval\n```\n")
}

// A session that answers a message names the message.
func TestWebUI_NamesTheMessageThatContinuesASession(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, "    - answer: \"heard ${messages.size()}\"\n"), nil)
	d.finish(id)
	require.NoError(t, d.Message(t.Context(), jig.DefaultTenant, id, "Please try again", "ana"))
	d.until(id, func(v jig.SessionView) bool { return v.Status.Final() && v.Pass == 2 })
	static, memo := d.summaries(id, "")
	require.Equal(t, []string{"draft:probe: Please try again", "draft:probe: Please try again"}, []string{static, memo})
	require.Contains(t, d.page(id, "").GetCurrentDetails(), "Task: `Please try again`")
}

// A single call, its composition and the session of another agent say what they do and what became of it.
func TestWebUI_NamesCallsCompositionsAndChildren(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.compose(gatedSpec, map[string]any{"url": r.URL, "name": "w"})
	d.waiting(id)
	static, memo := d.summaries(id, "")
	require.Equal(t, static, memo)
	require.True(t, strings.HasPrefix(memo, "probe.yaml: name=w, "), memo)
	require.Contains(t, d.page(id, "").GetCurrentDetails(), "**input_required** (waits for a person), a call without an agent\n\nTask:\n\n```text\nprobe.yaml\n")

	frame := workflows.FrameWorkflowID(id, "1.1")
	static, memo = d.summaries(frame, "")
	require.Equal(t, static, memo)
	require.True(t, strings.HasPrefix(memo, "1.1 probe.gated: "), memo)
	require.Contains(t, d.page(frame, "").GetCurrentDetails(), "Task: `probe.gated: ")
	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/publish", "by": "ana"})
	d.finish(id)
	require.Contains(t, d.page(id, "").GetCurrentDetails(), "Result: ")
	require.Contains(t, d.page(frame, "").GetCurrentDetails(), "Ended: succeeded ")

	last := "last-" + strings.ToLower(d.name[:8])
	d.register(map[string]string{"last.md": named(agent(`["test.*"]`, gatedRules), last)})
	parent := d.run(delegating(last), map[string]any{"url": r.URL, "name": "w"})
	d.waiting(parent)
	child := jig.ChildSessionID(parent, "1.1")
	static, memo = d.summaries(child, "")
	require.Equal(t, static, memo)
	require.True(t, strings.HasPrefix(memo, last+": name=w, "), memo)
	require.Contains(t, d.page(child, "").GetCurrentDetails(), "Task: `name=w, ")
	d.signal(child, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	d.finish(parent)
}

// Every signal, update and query that the Web UI offers says what it is for.
func TestWebUI_DescribesWhatCanBeSent(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.compose(gatedSpec, map[string]any{"url": r.URL, "name": "w"})
	d.waiting(id)
	for _, workflow := range []string{id, workflows.FrameWorkflowID(id, "1.1"), d.gated(r, "v")} {
		definition := d.page(workflow, "").GetDefinition()
		var signals []string
		for _, kind := range [][]*sdkpb.WorkflowInteractionDefinition{
			definition.GetSignalDefinitions(), definition.GetUpdateDefinitions(), definition.GetQueryDefinitions(),
		} {
			for _, one := range kind {
				require.NotEmpty(t, one.GetDescription(), "%s %s", definition.GetType(), one.GetName())
				internal := strings.HasPrefix(one.GetName(), "jig.")
				require.Equal(t, internal, strings.HasPrefix(one.GetDescription(), "Internal: do not send it."), one.GetName())
				signals = append(signals, one.GetName())
			}
		}
		if definition.GetType() != protocol.CompositionWorkflow {
			require.Contains(t, signals, protocol.SignalApprove)
		}
	}
}

// The sweeper's work does not appear in lists of workflows.
func TestWebUI_ListsNoSweeps(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	require.True(t, eventually(t.Context(), patience, func() bool {
		query := `ActivityType="` + protocol.Sweep + `" AND TaskQueue="` + d.queue + `" AND ExecutionStatus="Completed"`
		swept, err := shared.temporal.CountActivities(t.Context(), sdk.CountActivitiesOptions{Query: query})
		return err == nil && swept.Count > 0
	}), "nothing was swept")
	counted, err := shared.temporal.CountWorkflow(t.Context(), countRequest(`TaskQueue = "`+d.queue+`"`))
	require.NoError(t, err)
	require.Zero(t, counted.GetCount())
}

// A session that cannot be opened is not listed as working.
func TestWebUI_ShowsSessionsThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	started, err := d.Start(t.Context(), client.StartOptions{Agent: "nobody-at-all", Task: "help", Principal: jig.Principal{ID: "tester"}})
	require.NoError(t, err)
	call, err := d.StartCall(t.Context(), callInput("test.nothing", nil), "")
	require.NoError(t, err)
	for _, id := range []string{started.SessionID, call.SessionID} {
		require.True(t, eventually(t.Context(), patience, func() bool { return d.shows(id, jig.StatusFailed) }), id)
		require.Contains(t, d.page(id, "").GetCurrentDetails(), "\nError `")
	}
	require.Contains(t, d.page(started.SessionID, "").GetCurrentDetails(), "agent `nobody-at-all`\n\nTask: `help`\n")
}

// The commands in the details reach Temporal at its address without further settings.
func TestWebUI_CommandsInTheDetailsWork(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	id := d.gated(r, "w")
	details := d.page(id, "").GetCurrentDetails()
	command := regexp.MustCompile(`(?m)^temporal workflow signal [^'` + "`" + `]* --name approve \\\n  --input '[^']*'$`).FindString(details)
	require.NotEmpty(t, command, details)
	require.Contains(t, command, " --address "+shared.stack.TemporalAddress()+" ")
	stock, err := filepath.Abs(filepath.Join("..", "..", ".cache", "bin"))
	require.NoError(t, err)
	shell := &testEnv{t: t, dir: d.dir, env: []string{"PATH=" + stock + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir()}}
	got := shell.command("sh", "-c", command)
	require.Zero(t, got.code, got.out+got.err)
	require.Equal(t, "written", d.finish(id).Answer)
}

// The commands that the development server prints work as they are, whatever its ports.
func TestDevServer_PrintsCommandsThatWork(t *testing.T) {
	t.Parallel()
	d := isolatedEnv(t)
	stock, err := filepath.Abs(filepath.Join("..", "..", ".cache", "bin"))
	require.NoError(t, err)
	cmd := exec.Command(shared.dev.path(t), append([]string{"--ephemeral", "--quiet"}, anywhere...)...)
	said := &transcript{}
	cmd.Env, cmd.Dir, cmd.Stderr = d.env, d.dir, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended already
		_ = cmd.Wait()                          //nolint:errcheck // an interrupted server reports that
	})
	require.True(t, eventually(t.Context(), patience, func() bool { return strings.Contains(said.String(), "Ctrl-C stops") }), said.String())
	require.Contains(t, said.String(), "/namespaces/default/workflows?query=JigStatus+IS+NOT+NULL")
	var script strings.Builder
	for line := range strings.Lines(said.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "export ") || strings.HasPrefix(line, "temporal ") {
			script.WriteString(line + " || exit 9\n")
		}
	}
	require.Contains(t, script.String(), "export TEMPORAL_ADDRESS=127.0.0.1:")
	require.Contains(t, script.String(), "temporal workflow list --query ")
	shell := &testEnv{t: t, dir: d.dir, env: []string{"PATH=" + stock + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir()}}
	got := shell.command("sh", "-c", script.String())
	require.Zero(t, got.code, got.out+got.err)
}

// transcript collects the output of a running program.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
