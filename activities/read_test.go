package activities_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/tools"
)

// counting counts the reservations that its store makes.
type counting struct {
	activities.Store
	reserved atomic.Int32
	// broken makes that many records and reservations fail.
	broken atomic.Int32
}

func (c *counting) fails() error {
	if c.broken.Add(-1) >= 0 {
		return jig.Errorf(jig.CodeRateLimited, "not now")
	}
	return nil
}

func (c *counting) Reserve(ctx context.Context, r ledger.ReserveRequest) (ledger.Reservation, error) {
	if err := c.fails(); err != nil {
		return ledger.Reservation{}, err
	}
	c.reserved.Add(1)
	return c.Store.Reserve(ctx, r)
}

func (c *counting) FinishQuick(ctx context.Context, tenant, id string, done []ledger.QuickCompletion) ([]string, error) {
	if err := c.fails(); err != nil {
		return nil, err
	}
	return c.Store.FinishQuick(ctx, tenant, id, done)
}

// reading sets up an office with a tool that reads and counts how often it runs.
func reading(t *testing.T, read tools.Handler) (o *office, ledger *counting, runs *atomic.Int32) {
	t.Helper()
	ledger, runs = &counting{}, &atomic.Int32{}
	contract := jig.Tool{Name: payTool, Description: "Reads.", Permission: jig.PermissionRead, Idempotent: true, InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`)}
	o = newOffice(t, func(o *office) {
		ledger.Store = o.store
		o.store = ledger
		o.extra = []tools.Tool{tools.Raw(contract, func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
			runs.Add(1)
			return read(ctx, inv, input)
		})}
	})
	require.Equal(t, jig.CallReserved, o.asks(t, 1, payTool, `{}`).Status)
	return o, ledger, runs
}

// eventsOf lists the types of a call's events.
func (o *office) eventsOf(t *testing.T, id string) []jig.EventType {
	t.Helper()
	list, err := o.db.Events(t.Context(), o.tenant, o.session, 0, 0)
	require.NoError(t, err)
	var types []jig.EventType
	for _, e := range list {
		if e.CallID == id {
			types = append(types, e.Type)
		}
	}
	return types
}

func found(data string) jig.ToolResult {
	return jig.ToolResult{Success: true, Summary: "read", Data: json.RawMessage(data)}
}

// A call that only reads needs one transaction, which records its start and its end.
func TestRead_IsRecordedOnce(t *testing.T) {
	t.Parallel()
	o, ledger, runs := reading(t, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return found(`{}`) })
	for range 2 {
		require.Equal(t, jig.CallSucceeded, o.runs(t, "1.1"))
	}
	require.EqualValues(t, 1, runs.Load())
	require.Zero(t, ledger.reserved.Load())
	require.NotNil(t, o.call(t, "1.1").StartedAt)
	require.Equal(t, []jig.EventType{jig.EventToolStarted, jig.EventToolCompleted}, o.eventsOf(t, "1.1"))
}

// A read that takes long is seen executing, and so is one that reports progress. Neither runs twice.
func TestRead_ThatTakesLongIsReserved(t *testing.T) {
	t.Parallel()
	var o *office
	long := func(ctx context.Context, _ jig.Invocation, _ json.RawMessage) jig.ToolResult {
		for events := range o.db.Subscribe(ctx, o.tenant, o.session, 0) {
			if slices.ContainsFunc(events, func(e jig.Event) bool { return e.Type == jig.EventToolStarted }) {
				break
			}
		}
		return found(`{}`)
	}
	talkative := func(_ context.Context, inv jig.Invocation, _ json.RawMessage) jig.ToolResult {
		inv.Progress("half")
		return found(`{}`)
	}
	large := func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
		return found(`{"text":"` + strings.Repeat("x", 2*jig.InlineBytes) + `"}`)
	}
	for name, read := range map[string]tools.Handler{"long": long, "talkative": talkative, "large": large} {
		var ledger *counting
		var runs *atomic.Int32
		o, ledger, runs = reading(t, read)
		require.Equal(t, jig.CallSucceeded, o.runs(t, "1.1"), name)
		require.EqualValues(t, 1, runs.Load(), name)
		require.EqualValues(t, 1, ledger.reserved.Load(), name)
		events := o.eventsOf(t, "1.1")
		require.Equal(t, jig.EventToolStarted, events[0], name)
		require.Equal(t, jig.EventToolCompleted, events[len(events)-1], name)
	}
}

// A quick read whose worker may have died in the tool is reserved, so that its attempts are counted.
func TestRead_ThatWasTriedIsReserved(t *testing.T) {
	t.Parallel()
	o, ledger, runs := reading(t, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return found(`{}`) })
	require.NoError(t, o.db.TryQuick(t.Context(), o.tenant, o.session, []string{"1.1"}))
	require.Equal(t, jig.CallSucceeded, o.runs(t, "1.1"))
	require.EqualValues(t, 1, runs.Load())
	require.EqualValues(t, 1, ledger.reserved.Load())
}

// The result of a read that was canceled, paused or changed while it ran is not used.
func TestRead_OfACanceledSessionIsNotRecorded(t *testing.T) {
	t.Parallel()
	var o *office
	o, _, _ = reading(t, func(ctx context.Context, _ jig.Invocation, _ json.RawMessage) jig.ToolResult {
		require.NoError(t, o.db.CancelSession(ctx, ledger.End{Tenant: o.tenant, SessionID: o.session, Status: jig.StatusCanceled}))
		return found(`{}`)
	})
	require.Equal(t, jig.CallCanceled, o.runs(t, "1.1"))
	require.Nil(t, o.call(t, "1.1").Result.Data)
}

// A read that a policy denies, or that a pause holds back, does not run, although it was admitted.
func TestRead_ThatMayNotRunDoesNotRun(t *testing.T) {
	t.Parallel()
	none := func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return found(`{}`) }
	o, _, runs := reading(t, none)
	_, err := o.db.Pause(t.Context(), o.tenant, jig.Pause{Scope: jig.PauseTenant, By: "ana"}, nil)
	require.NoError(t, err)
	ran, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: "1.1"})
	require.NoError(t, err)
	require.Equal(t, activities.Ran{State: jig.CallReserved, Paused: true, Stuck: true}, ran)
	require.Zero(t, runs.Load())

	o, _, runs = reading(t, none)
	o.govern(t, "  - {name: no, when: \"true\", verdict: deny}\n")
	require.Equal(t, jig.CallDenied, o.runs(t, "1.1"))
	require.Zero(t, runs.Load())
}

// Temporal's retries reserve the call before it runs, so that the ledger limits the attempts of a tool that kills its workers.
func TestRead_IsReservedWhenItIsTriedAgain(t *testing.T) {
	t.Parallel()
	o, ledger, runs := reading(t, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return found(`{}`) })
	ledger.broken.Store(2) // the record and the reservation after it
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // on a busy machine a goroutine may wait for a processor
	env.RegisterActivityWithOptions(o.RunTool, activity.RegisterOptions{Name: payTool})
	env.ExecuteWorkflow(func(ctx workflow.Context) (activities.Ran, error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Millisecond, MaximumAttempts: 2},
		})
		var ran activities.Ran
		err := workflow.ExecuteActivity(ctx, payTool, activities.RunInput{SessionRef: o.ref(), Call: "1.1"}).Get(ctx, &ran)
		return ran, err
	})
	require.NoError(t, env.GetWorkflowError())
	require.EqualValues(t, 2, runs.Load())
	require.EqualValues(t, 1, ledger.reserved.Load())
	require.Equal(t, jig.CallSucceeded, o.call(t, "1.1").Status)
}
