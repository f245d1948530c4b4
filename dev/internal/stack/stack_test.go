package stack_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/jig-run/jig/dev/internal/pg"
	"github.com/jig-run/jig/dev/internal/stack"
)

func start(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	o.NoUI = true
	s, err := stack.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *stack.Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
}

func wait(ctx workflow.Context) (string, error) {
	var word string
	workflow.GetSignalChannel(ctx, "word").Receive(ctx, &word)
	return word, nil
}

// A waiting workflow still exists after everything was stopped and started again, and continues.
func TestStack_KeepsDataAcrossRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { require.NoError(t, pg.Remove(context.WithoutCancel(t.Context()), filepath.Join(dir, "pg"))) })
	s := start(t, stack.Options{DataDir: dir})
	client, err := sdk.Dial(sdk.Options{HostPort: s.TemporalAddress(), Namespace: s.Namespace()})
	require.NoError(t, err)
	_, err = client.ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{ID: "waits", TaskQueue: "q"}, "wait")
	require.NoError(t, err)
	client.Close()

	var locked *stack.LockedError
	_, err = stack.Start(t.Context(), stack.Options{DataDir: dir, NoUI: true})
	require.ErrorAs(t, err, &locked)
	stop(t, s)

	s = start(t, stack.Options{DataDir: dir})
	client, err = sdk.Dial(sdk.Options{HostPort: s.TemporalAddress(), Namespace: s.Namespace()})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	w := worker.New(client, "q", worker.Options{})
	w.RegisterWorkflowWithOptions(wait, workflow.RegisterOptions{Name: "wait"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	require.NoError(t, client.SignalWorkflow(t.Context(), "waits", "", "word", "kept"))
	var word string
	require.NoError(t, client.GetWorkflow(t.Context(), "waits", "").Get(t.Context(), &word))
	require.Equal(t, "kept", word)
}

// A wrong or taken address is reported before PostgreSQL starts and before the Temporal server is built.
func TestStack_ChecksAddressesFirst(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	for says, o := range map[string]stack.Options{
		"the address of Temporal: " + taken.Addr().String() + " is taken":   {TemporalAddress: taken.Addr().String()},
		"the address of the Web UI: " + taken.Addr().String() + " is taken": {UIAddress: taken.Addr().String()},
		`the address of Temporal: address "foo" is not host:port`:           {TemporalAddress: "foo"},
	} {
		var steps []string
		o.DataDir, o.Progress = t.TempDir(), func(step string, _ time.Duration) { steps = append(steps, step) }
		for range 2 { // the data folder is not locked afterwards
			_, err := stack.Start(t.Context(), o)
			require.ErrorContains(t, err, says)
		}
		require.Empty(t, steps)
	}
}

// countUp upserts a search attribute in its first workflow task.
func countUp(ctx workflow.Context) error {
	return workflow.UpsertTypedSearchAttributes(ctx, temporal.NewSearchAttributeKeyInt64("JigPass").ValueSet(7))
}

// requireAttributes checks that workflows can be started with search attributes, set them, and be found by them, without a retry.
func requireAttributes(t *testing.T, client sdk.Client) {
	t.Helper()
	w := worker.New(client, "q", worker.Options{})
	w.RegisterWorkflowWithOptions(countUp, workflow.RegisterOptions{Name: "countUp"})
	require.NoError(t, w.Start())
	defer w.Stop()
	run, err := client.ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
		ID: "counts", TaskQueue: "q",
		TypedSearchAttributes: temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword("JigStatus").ValueSet("working")),
	}, "countUp")
	require.NoError(t, err)
	require.NoError(t, run.Get(t.Context(), nil))
	events := client.GetWorkflowHistory(t.Context(), "counts", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		require.NotEqual(t, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, event.GetEventType(), "%s", event)
	}
	require.Eventually(t, func() bool {
		count, err := client.CountWorkflow(t.Context(), &workflowservicepb.CountWorkflowExecutionsRequest{
			Query: "JigStatus = 'working' AND JigPass = 7 AND ExecutionStatus = 'Completed'",
		})
		require.NoError(t, err)
		return count.GetCount() == 1
	}, time.Minute, 20*time.Millisecond)
}

// The server's services read a namespace when they start and then every two seconds, so the search attributes must be there before.
func TestStack_SearchAttributesWorkAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { require.NoError(t, pg.Remove(context.WithoutCancel(t.Context()), filepath.Join(dir, "pg"))) })
	s := start(t, stack.Options{DataDir: dir})
	client, err := sdk.Dial(sdk.Options{HostPort: s.TemporalAddress(), Namespace: s.Namespace()})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	requireAttributes(t, client)

	_, err = client.WorkflowService().RegisterNamespace(t.Context(), &workflowservicepb.RegisterNamespaceRequest{
		Namespace: "older", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	stop(t, s)
	s = start(t, stack.Options{DataDir: dir, Namespace: "older"})
	older, err := sdk.Dial(sdk.Options{HostPort: s.TemporalAddress(), Namespace: s.Namespace()})
	require.NoError(t, err)
	t.Cleanup(older.Close)
	requireAttributes(t, older)
}

func TestStart_EphemeralAndFreshRefuseAGivenServer(t *testing.T) {
	t.Parallel()
	for _, o := range []stack.Options{{Fresh: true}, {Ephemeral: true}} {
		o.DataDir, o.OwnerURL = t.TempDir(), "postgres://owner@127.0.0.1:1/jig"
		_, err := stack.Start(t.Context(), o)
		require.ErrorContains(t, err, "JIG_DATABASE_OWNER_URL")
	}
}
