package workflows_test

import (
	"context"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

type activityInfo = activity.Info

// watcher intercepts the calls between the workflow and the test environment. It gives each run its own id, records which signals
// arrived and how many activities are running, and retries activities as often as a server does.
type watcher struct {
	interceptor.WorkerInterceptorBase

	play *play
	env  *testsuite.TestWorkflowEnvironment
	run  string
}

func (w *watcher) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &watchedWorkflow{watcher: w}
	i.Next = next
	return i
}

func (w *watcher) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &watchedActivity{watcher: w}
	i.Next = next
	return i
}

type watchedActivity struct {
	interceptor.ActivityInboundInterceptorBase

	watcher *watcher
}

func (a *watchedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	a.watcher.play.flying.Add(1)
	defer a.watcher.play.flying.Add(-1)
	return a.Next.ExecuteActivity(ctx, in)
}

type watchedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase

	watcher *watcher
}

func (i *watchedWorkflow) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &patient{}
	o.Next = next
	return i.Next.Init(o)
}

func (i *watchedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	workflow.GetInfo(ctx).OriginalRunID = i.watcher.run // the test environment leaves both empty
	workflow.GetInfo(ctx).FirstRunID = "first"
	return i.Next.ExecuteWorkflow(ctx, in)
}

func (i *watchedWorkflow) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	p := i.watcher.play
	own := workflow.GetInfo(ctx).WorkflowExecution.ID == p.id && !strings.HasPrefix(in.SignalName, "jig.")
	if own && !i.watcher.env.IsWorkflowCompleted() && len(p.posted) > 0 {
		p.posted[0].heard, p.posted[0].accepted = true, true // signals arrive in the order in which they were posted
		p.posted = p.posted[1:]
	}
	return i.Next.HandleSignal(ctx, in)
}

// patient retries activities without limit, as a server does. The test environment would give up after ten attempts.
type patient struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (o *patient) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	options := workflow.GetActivityOptions(ctx)
	if options.RetryPolicy != nil && options.RetryPolicy.MaximumAttempts == 0 {
		retry := *options.RetryPolicy
		retry.MaximumAttempts = 1_000_000
		ctx = workflow.WithRetryPolicy(ctx, retry)
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}
