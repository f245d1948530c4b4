package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// changedCall is a change to the workflow Call behind a version, as a new release may have one.
const changedCall = `	if workflow.GetVersion(ctx, "e2e-changed", workflow.DefaultVersion, 1) >= 1 {
		if err := workflow.Sleep(ctx, 1_000_000); err != nil {
			return nil, err
		}
	}
	var pass workflow.Context
`

// buildChanged builds the test worker from sources in which the workflow Call is changed.
func buildChanged(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", "..", "workflows", "call.go"))
	require.NoError(t, err)
	body, err := os.ReadFile(source)
	require.NoError(t, err)
	changed := strings.Replace(string(body), "	var pass workflow.Context\n", changedCall, 1)
	require.NotEqual(t, string(body), changed)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "call.go"), []byte(changed), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: filepath.Join(dir, "call.go")}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-overlay", filepath.Join(dir, "overlay.json"),
		"-o", filepath.Join(dir, "worker"), "github.com/jig-run/jig/dev/e2e/testworker").CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(dir, "worker")
}

// builtBy returns the build of the worker that a workflow last ran on.
func (d *testEnv) builtBy(id string) string {
	d.t.Helper()
	described, err := shared.temporal.DescribeWorkflowExecution(d.t.Context(), id, "")
	require.NoError(d.t, err)
	return described.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId()
}

// knows waits until Temporal knows a version of the deployment jig.
func (d *testEnv) knows(build string) {
	d.t.Helper()
	require.True(d.t, eventually(d.t.Context(), patience, func() bool {
		found, err := shared.temporal.WorkerDeploymentClient().GetHandle("jig").Describe(d.t.Context(), sdk.WorkerDeploymentDescribeOptions{})
		for _, v := range found.Info.VersionSummaries {
			if err == nil && v.Version.BuildID == build {
				return true
			}
		}
		return false
	}), "Temporal does not know of the version %s", build)
}

// An old and a new worker run side by side, over approvals that wait and a changed workflow. The commands are those of docs/operations.md.
func TestDeploying_WhileApprovalsWait(t *testing.T) {
	t.Parallel()
	commands := strings.Split(strings.TrimSpace(strings.Join(blocks(t, "docs/operations.md", "sh"), "")), "\n")
	var makeCurrent []string
	for _, command := range commands {
		if strings.HasPrefix(command, "temporal worker deployment set-current-version") {
			makeCurrent = append(makeCurrent, command)
		}
	}
	require.Len(t, makeCurrent, 2)
	current := func(command, build string) {
		said := newTestEnv(t).stock(strings.Fields(command)[1:]...)
		busy := func() bool { // the machine is, or the worker does not poll all its queues yet
			return strings.Contains(said.err, "deadline exceeded") || strings.Contains(said.err, "missing active task queues") ||
				strings.Contains(said.err, "stream terminated")
		}
		for said.code != 0 && busy() && t.Context().Err() == nil {
			said = newTestEnv(t).stock(strings.Fields(command)[1:]...)
		}
		require.Zero(t, said.code, said.out+said.err)
		require.Contains(t, command, "--build-id "+build+" ")
	}
	changed := buildChanged(t)

	d := newTestEnv(t, "JIG_DEPLOYMENT=jig:v1")
	r := newReceiver(t)
	d.start()
	d.knows("v1")
	current(makeCurrent[0], "v1")
	require.NoError(t, d.answers())
	asks := func(name string) string {
		started, err := d.StartCall(t.Context(), callInput("test.write", map[string]any{"url": r.URL, "name": name}), "")
		require.NoError(t, err)
		return started.SessionID
	}
	approve := func(id, call string) {
		d.signal(id, protocol.SignalApprove, map[string]string{"call": call, "by": "ana"})
	}
	single, beside, twice := asks("single"), asks("beside"), d.run(agent(`["*"]`, `    - when: pass == 1
      calls: [{tool: test.write, input: {url: "${input.url}", name: agent1}}]
    - when: pass == 2
      calls: [{tool: test.write, input: {url: "${input.url}", name: agent2}}]
    - answer: done
`), map[string]any{"url": r.URL})
	composed := d.compose(`kind: composition
name: page.publish
steps: [{id: sent, tool: test.write, input: {url: "${input.url}", name: composed}}]
output: {}
`, map[string]any{"url": r.URL})
	for _, id := range []string{single, beside, twice, composed} {
		d.waiting(id)
		require.Equal(t, "v1", d.builtBy(id))
	}

	// A new worker starts beside the old one. It gets no work until its version is current.
	next := workerCommand(append(d.env, "JIG_DEPLOYMENT=jig:v2"), d.dir, d.log)
	next.Path, next.Args[0] = changed, changed
	require.NoError(t, next.Start())
	t.Cleanup(func() {
		_ = next.Process.Kill() //nolint:errcheck // it may have ended
		_ = next.Wait()         //nolint:errcheck // it was killed, which Wait reports
	})
	d.knows("v2")
	require.True(t, eventually(t.Context(), patience, func() bool {
		log, err := os.ReadFile(d.log.Name())
		return err == nil && strings.Contains(string(log), makeCurrent[1])
	}), "the worker logs the command that makes its version current")
	approve(beside, "1.1")
	require.Equal(t, jig.StatusCompleted, d.finish(beside).Status)
	require.Equal(t, "v1", d.builtBy(beside))

	// The new version is current: sessions that wait move to it, and new ones have the changed workflow.
	current(makeCurrent[1], "v2")
	require.True(t, eventually(t.Context(), patience, func() bool { // each task queue is told separately
		done, err := d.Trigger(t.Context(), callInput("test.echo", map[string]any{"value": jig.NewSessionID()}), "")
		require.NoError(t, err)
		return d.builtBy(done.SessionID) == "v2"
	}))
	fresh := asks("fresh")
	d.waiting(fresh)
	require.Equal(t, "v2", d.builtBy(fresh))
	approve(twice, "1.1")
	require.Equal(t, "2.1", d.until(twice, func(v jig.SessionView) bool { return len(v.Pending) == 1 && v.Pending[0].Call == "2.1" }).Pending[0].Call)
	d.kill() // the old worker: nothing that waits needs it
	approve(single, "1.1")
	approve(twice, "2.1")
	approve(fresh, "1.1")
	approve(composed, "1.1/sent")
	for _, id := range []string{single, twice, fresh, composed} {
		require.Equal(t, jig.StatusCompleted, d.finish(id).Status)
		require.Equal(t, "v2", d.builtBy(id))
		for _, failure := range d.taskFailures(id) {
			require.Equal(t, "timed out", failure, "a task may have been on its way to the worker that was killed")
		}
	}
	for _, name := range []string{"single", "beside", "fresh", "composed", "agent1", "agent2"} {
		requests, _ := r.count(name)
		require.Equal(t, 1, requests, name)
	}
}
