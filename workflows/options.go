package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

// Timeouts and retries, by class. docs/timeouts.md has the same values in a table, and a test compares the two.
const (
	// heartbeatTimeout is how long it takes to notice that a worker has died.
	heartbeatTimeout = 10 * time.Second
	// modelTimeout limits one attempt to get an answer from the model. modelAttempts limits how often a provider that is down or busy is
	// asked.
	modelTimeout  = 15 * time.Minute
	modelAttempts = activities.ModelAttempts
	// quickModelTimeout limits an answer of a model that is known to be quick. Beyond it, the model is asked in an activity.
	quickModelTimeout = 5 * time.Second
	// toolGrace is added to the tool's own timeout, so that the attempt can store its result.
	toolGrace = 30 * time.Second
	// databaseTimeout limits one attempt of a local activity that only reads or writes the database. It is retried until the database is
	// back.
	databaseTimeout = 30 * time.Second
	// untilItSucceeds limits all attempts of a local activity together. Without such a limit the SDK would take that of one attempt, and an
	// outage of half a minute would end sessions.
	untilItSucceeds = 10 * 365 * 24 * time.Hour
)

// modelOptions returns the options for asking the model. If the provider is busy or down, the activity is retried, after the provider's
// Retry-After if there is one.
func modelOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: modelTimeout, HeartbeatTimeout: heartbeatTimeout, WaitForCancellation: true, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: activities.ModelBackoff, BackoffCoefficient: 2, MaximumInterval: activities.MaxModelBackoff, MaximumAttempts: modelAttempts,
		},
	})
}

// quickModelOptions returns the options for asking a model that is known to be quick.
func quickModelOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: quickModelTimeout, Summary: summary, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

// pausedOptions returns the options for checking whether a pause has ended. The check is retried until the pause has ended.
func pausedOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: databaseTimeout, WaitForCancellation: true, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	})
}

// toolOptions returns the options for a tool. Temporal retries without limit, because its retries only bring the call back to a worker;
// the ledger limits how often the tool itself runs.
func toolOptions(ctx workflow.Context, c *call) workflow.Context {
	ref, summary := c.ref, c.words()
	switch {
	case c.stuck:
		summary = ref.ID + " is held back until a person acts"
	case ref.Previews && ref.State == jig.CallReserved:
		summary = "preview of " + summary
	}
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Duration(ref.Timeout)*time.Second + toolGrace, HeartbeatTimeout: heartbeatTimeout,
		WaitForCancellation: true, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	})
}

// localToolOptions returns the options for quick tools that run in one local activity.
func localToolOptions(ctx workflow.Context, calls []*call) workflow.Context {
	longest := 0
	summary := calls[0].words()
	if more := len(calls) - 1; more > 0 {
		summary += " and " + itoa(more) + " more"
	}
	for _, c := range calls {
		longest = max(longest, c.ref.Timeout)
	}
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Duration(longest)*time.Second + toolGrace, ScheduleToCloseTimeout: untilItSucceeds, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
	})
}

// databaseOptions returns the options for an idempotent transaction, which is retried until it succeeds. The summary says what it does, for
// people who look at the timeline.
func databaseOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: databaseTimeout, ScheduleToCloseTimeout: untilItSucceeds, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 2 * time.Second},
	})
}
