package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig/activities"
)

// Time-outs and retries, by class. The table in docs/timeouts.md says the same, and a test compares the two.
const (
	// heartbeatTimeout is how soon a dead worker is noticed.
	heartbeatTimeout = 10 * time.Second
	// modelTimeout bounds one attempt to get an answer; modelAttempts how often a provider that is down or busy is asked.
	modelTimeout  = 15 * time.Minute
	modelAttempts = 10
	// toolGrace is what an attempt has beyond its tool's own time-out, to write its result down.
	toolGrace = 30 * time.Second
	// databaseTimeout bounds one attempt of the bookkeeping in local activities, which is tried until the database is back.
	databaseTimeout = 30 * time.Second
	// sweepTimeout bounds one sweep.
	sweepTimeout = 10 * time.Minute
)

// modelOptions are for the model: retried while it is busy or down, as its Retry-After says.
func modelOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: modelTimeout, HeartbeatTimeout: heartbeatTimeout, WaitForCancellation: true, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: modelAttempts,
		},
	})
}

// pausedOptions are for looking whether a pause is over, until it is.
func pausedOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: databaseTimeout, WaitForCancellation: true, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	})
}

// toolOptions are for a tool. How often its effect is tried is the ledger's business; Temporal's attempts only bring the
// call back to a worker, so they have no limit.
func toolOptions(ctx workflow.Context, ref activities.CallRef) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Duration(ref.Timeout)*time.Second + toolGrace, HeartbeatTimeout: heartbeatTimeout,
		WaitForCancellation: true, Summary: ref.ID + " " + ref.Title,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	})
}

// localToolOptions are for quick tools beside the workflow.
func localToolOptions(ctx workflow.Context, calls []*call) workflow.Context {
	longest := 0
	summary := calls[0].ref.ID + " " + calls[0].ref.Tool + " " + calls[0].ref.Title
	if more := len(calls) - 1; more > 0 {
		summary += " and " + itoa(more) + " more"
	}
	for _, c := range calls {
		longest = max(longest, c.ref.Timeout)
	}
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Duration(longest)*time.Second + toolGrace, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
	})
}

// databaseOptions are for bookkeeping: one transaction, idempotent, tried until it is done.
func databaseOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: databaseTimeout,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 2 * time.Second},
	})
}

// sweepOptions are for the sweeper.
func sweepOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: sweepTimeout, HeartbeatTimeout: heartbeatTimeout,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, MaximumAttempts: 3},
	})
}
