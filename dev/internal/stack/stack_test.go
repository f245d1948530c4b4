package stack_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

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

func TestStart_EphemeralAndFreshRefuseAGivenServer(t *testing.T) {
	t.Parallel()
	for _, o := range []stack.Options{{Fresh: true}, {Ephemeral: true}} {
		o.DataDir, o.OwnerURL = t.TempDir(), "postgres://owner@127.0.0.1:1/jig"
		_, err := stack.Start(t.Context(), o)
		require.ErrorContains(t, err, "JIG_DATABASE_OWNER_URL")
	}
}
