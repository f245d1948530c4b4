package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/dev/internal/stack"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

// restartEnv is an environment with its own servers, whose data are kept while the servers are down.
type restartEnv struct {
	tenantEnv
	data     string
	binary   string
	settings []string
	stack    *stack.Stack
	temporal sdk.Client
}

func newRestartEnv(t *testing.T) *restartEnv {
	t.Helper()
	h := &restartEnv{tenantEnv: tenantEnv{testEnv: newTestEnv(t), tenant: "house"}, data: t.TempDir(), binary: shared.worker}
	removeLater(t, h.data)
	t.Cleanup(h.close)
	h.open()
	return h
}

// open starts the servers on the existing data, and a worker.
func (h *restartEnv) open() {
	h.t.Helper()
	var err error
	h.stack, err = stack.Start(h.t.Context(), stack.Options{DataDir: h.data, NoUI: true, Migrate: store.Migrate, GrantServer: store.GrantServer})
	require.NoError(h.t, err)
	h.temporal, err = sdk.Dial(sdk.Options{HostPort: h.stack.TemporalAddress(), Namespace: h.stack.Namespace(), Logger: quiet{}})
	require.NoError(h.t, err)
	h.Client = client.New(h.temporal, client.Options{TaskQueue: h.queue, WorkerTimeout: patience, RetryFor: patience})
	h.env = append(append(os.Environ(), h.stack.Environment()...), "JIG_TASK_QUEUE="+h.queue, "JIG_WORKDIR="+filepath.Join(h.dir, ".jig", "work"), "JIG_WORKDIR_DEFAULT="+h.dir,
		"JIG_HTTP_ALLOW_LOOPBACK=true", "JIG_LOG_LEVEL=warn")
	h.begin()
}

// begin starts a worker of the environment's current version.
func (h *restartEnv) begin() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.worker = exec.Command(h.binary)
	h.worker.Env, h.worker.Dir = append(append([]string{}, h.env...), h.settings...), h.dir
	h.worker.Stdout, h.worker.Stderr = h.log, h.log
	h.worker.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(h.t, h.worker.Start())
}

// close kills the worker and stops the servers. The data stay.
func (h *restartEnv) close() {
	h.kill()
	if h.temporal != nil {
		h.temporal.Close()
		h.temporal = nil
	}
	if h.stack != nil {
		ctx, cancel := shutdownContext(h.t)
		defer cancel()
		require.NoError(h.t, h.stack.Stop(ctx))
		h.stack = nil
	}
}

// deploy makes the next worker another version: the program differs by some bytes, so it has another build id, and the contract of
// test.revised is different.
func (h *restartEnv) deploy() {
	h.t.Helper()
	program, err := os.ReadFile(shared.worker)
	require.NoError(h.t, err)
	h.binary = filepath.Join(h.dir, "worker-2")
	require.NoError(h.t, os.WriteFile(h.binary, append(program, "another version"...), 0o755))
	h.settings = []string{"JIG_TEST_REVISION=2"}
}

// waitFor waits until the stored state of a session satisfies holds, and returns the state.
func (h *restartEnv) waitFor(id string, holds func(jig.SessionView) bool) jig.SessionView {
	h.t.Helper()
	var view jig.SessionView
	var err error
	require.True(h.t, eventually(h.t.Context(), patience, func() bool {
		view, err = h.Status(h.t.Context(), h.tenant, id)
		return err == nil && holds(view)
	}), "%s: %+v, %v", id, view, err)
	return view
}

// pending returns the only call or question that waits in a session.
func (h *restartEnv) pending(id string) jig.Pending {
	h.t.Helper()
	return h.waitFor(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 }).Pending[0]
}

// ends waits for a call's result, which must be a success.
func (h *restartEnv) ends(id string) protocol.CallResult {
	h.t.Helper()
	done, err := h.WaitCall(h.t.Context(), h.tenant, id)
	require.NoError(h.t, err)
	require.Equal(h.t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	return done
}

// builds returns the build ids of the workers that took part in a workflow.
func (h *restartEnv) builds(id string) map[string]bool {
	h.t.Helper()
	seen := map[string]bool{}
	iter := h.temporal.GetWorkflowHistory(h.t.Context(), id, "", false, 0)
	for iter.HasNext() {
		event, err := iter.Next()
		require.NoError(h.t, err)
		if build := event.GetWorkflowTaskCompletedEventAttributes().GetWorkerVersion().GetBuildId(); build != "" { //nolint:staticcheck // the replacement needs a worker with a deployment
			seen[build] = true
		}
	}
	return seen
}

// Calls and questions that wait for people keep waiting through three killed workers, a restart of Temporal and PostgreSQL, and a new version
// of the worker. A call asks again if the new version has changed its tool.
func TestApprovals_SurviveRestartsAndDeploys(t *testing.T) {
	t.Parallel()
	h, r := newRestartEnv(t), newReceiver(t)
	trusting := func(id string) { h.decided(id, jig.Decision{By: "operator", Answer: jig.AnswerApprove}) }
	h.install("tenant.yaml", h.tenantDocument(""), trusting)
	h.install("finance.yaml", financePolicy, trusting)
	waits := func(tool, name string) string {
		result := h.trigger(tool, map[string]any{"url": r.URL, "name": name})
		require.Equal(t, jig.CallWaiting, result.Status, "%+v", result)
		return result.SessionID
	}
	kept, revised := waits("test.kept", "kept"), waits("test.revised", "revised")
	var large string
	require.True(t, eventually(t.Context(), patience, func() bool {
		large = waits("test.write", "large-1")
		return underRule(h.pending(large))
	}), "the policy is read within a second")
	require.Equal(t, jig.CallWaiting, h.decided(large, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Status)
	question := h.trigger("person.ask", map[string]any{"question": "Which one?", "options": []string{"red", "blue"}}).SessionID
	first := waits("test.once", "small-0")
	require.NotEmpty(t, h.decided(first, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{
		When: "input.name.startsWith('small')", MaxUses: 3, Expires: "7d",
	}}).Grant)
	h.ends(first)
	_, err := h.Pause(t.Context(), client.PauseRequest{Tenant: h.tenant, Scope: jig.PauseTool, Target: "test.effect", By: "ana", Reason: "a check"})
	require.NoError(t, err)
	in := callInput("test.effect", map[string]any{"url": r.URL, "name": "held"})
	in.Tenant = h.tenant
	held := newID(h.tenant)
	_, err = h.StartCall(t.Context(), in, held)
	require.NoError(t, err)
	h.waitFor(held, func(v jig.SessionView) bool { return len(v.Calls) == 1 && len(v.Paused) == 1 })
	before := map[string]string{kept: h.pending(kept).Digest, revised: h.pending(revised).Digest, large: h.pending(large).Digest}

	for range 3 {
		h.kill()
		h.begin()
		h.pending(kept)
	}
	h.close()
	h.deploy()
	h.open()

	for id, digest := range before {
		require.Equal(t, digest, h.pending(id).Digest, "the call that was shown still waits")
	}
	require.Equal(t, jig.DecisionAccepted, h.decided(kept, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Digest: before[kept]}).Outcome)
	h.ends(kept)
	require.Len(t, h.builds(kept), 2, "two versions of the worker took part")
	h.requireAsksAgain(r, revised, before[revised])

	require.Len(t, h.pending(large).Votes, 1)
	require.Contains(t, h.decided(large, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Reason, "already")
	require.Equal(t, jig.CallReserved, h.decided(large, jig.Decision{By: "ben", Answer: jig.AnswerApprove}).Status)
	h.ends(large)

	ruled, err := h.Reply(t.Context(), h.tenant, question, jig.Reply{Call: "1.1", By: "ana", Value: json.RawMessage(`"blue"`)})
	require.NoError(t, err)
	require.Equal(t, jig.DecisionAccepted, ruled.Decisions[0].Outcome, ruled.Decisions[0].Reason)
	require.JSONEq(t, `{"answer":"blue","by":"ana"}`, string(h.ends(question).Result.Data))

	require.Equal(t, jig.CallSucceeded, h.trigger("test.once", map[string]any{"url": r.URL, "name": "small-1"}).Status, "the grant still covers the call")
	paused, err := h.Pauses(t.Context(), h.tenant)
	require.NoError(t, err)
	require.Len(t, paused.Pauses, 1)
	require.Equal(t, "a check", paused.Pauses[0].Reason)
	requests, _ := r.count("held")
	require.Zero(t, requests)
	_, err = h.Resume(t.Context(), client.PauseRequest{Tenant: h.tenant, Scope: jig.PauseTool, Target: "test.effect", By: "ben"})
	require.NoError(t, err)
	h.ends(held)
	for _, name := range []string{"kept", "revised", "large-1", "small-0", "small-1", "held"} {
		requests, _ := r.count(name)
		require.Equal(t, 1, requests, name)
	}
	h.requireAudited(h.tenant)
}

// requireAsksAgain approves a call whose tool has changed since it was shown. The approval has no effect, the call asks again with the new
// contract, and it runs once after that is approved.
func (h *restartEnv) requireAsksAgain(r *receiver, id, shown string) {
	h.t.Helper()
	h.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Digest: shown})
	h.waitFor(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 && v.Pending[0].Digest != shown })
	requests, _ := r.count("revised")
	require.Zero(h.t, requests, "the call has not run: the approved contract no longer exists, and the new one was not approved")
	withdrawn := h.eventsOf(id, jig.EventApprovalWithdrawn)
	require.Len(h.t, withdrawn, 1)
	asked := h.eventsOf(id, jig.EventToolNeedsApproval)
	require.Len(h.t, asked, 2)
	fresh := h.pending(id).Digest
	require.True(h.t, asked[1].Seq > withdrawn[0].Seq && strings.Contains(string(asked[1].Data), fresh))
	require.Equal(h.t, jig.DecisionRefused, h.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Digest: shown}).Outcome)
	require.Equal(h.t, jig.CallReserved, h.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Digest: fresh}).Status)
	h.ends(id)
}
