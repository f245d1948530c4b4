package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// LoopInput is the input of the baselines.
type LoopInput struct {
	Tenant string
	Start  protocol.StartSession
	Plan   plan
}

// Loop is the baseline B0: an agent session written by hand with the SDK, as one long loop in one run. It calls the same Go functions as jig's
// Pass, with the same timeouts, so it writes the same ledger and events. It lacks the further features of Pass: messages, cancellation that
// closes the ledger, limits, a bounded history, status, and search attributes.
func Loop(ctx workflow.Context, in LoopInput) (string, error) {
	var a *activities.Activities
	ctx = baselineOptions(ctx)
	ref := protocol.SessionRef{Tenant: in.Tenant, SessionID: workflow.GetInfo(ctx).WorkflowExecution.ID}
	var opened activities.Opened
	if err := workflow.ExecuteLocalActivity(ctx, a.Open, activities.OpenInput{SessionRef: ref, Start: &in.Start}).Get(ctx, &opened); err != nil {
		return "", err //nolint:wrapcheck // a workflow returns Temporal's own errors
	}
	for pass := opened.Pass; ; pass++ {
		this := activities.PassRef{SessionRef: ref, Pass: pass}
		var thought activities.Thought
		if err := workflow.ExecuteActivity(ctx, a.Think, activities.ThinkInput{PassRef: this}).Get(ctx, &thought); err != nil {
			return "", err //nolint:wrapcheck // as above
		}
		if thought.Calls > 0 {
			if err := loopCalls(ctx, this, thought.Calls); err != nil {
				return "", err
			}
		}
		var settled activities.Settled
		if err := workflow.ExecuteLocalActivity(ctx, a.Settle, this).Get(ctx, &settled); err != nil {
			return "", err //nolint:wrapcheck // as above
		}
		if settled.Status.Final() {
			return settled.Answer, nil
		}
	}
}

// loopCalls admits the calls of a pass and runs them in parallel. A call that waits for a person waits for the signal first.
func loopCalls(ctx workflow.Context, pass activities.PassRef, calls int) error {
	var a *activities.Activities
	var admitted activities.Admitted
	err := workflow.ExecuteLocalActivity(ctx, a.Admit, activities.AdmitInput{PassRef: pass, Limit: calls}).Get(ctx, &admitted)
	if err != nil {
		return err //nolint:wrapcheck // a workflow returns Temporal's own errors
	}
	var running []workflow.Future
	for _, call := range admitted.Calls {
		if call.State == jig.CallWaiting && !approved(ctx, pass, call) {
			continue
		}
		running = append(running, workflow.ExecuteActivity(ctx, call.Tool, activities.RunInput{SessionRef: pass.SessionRef, Call: call.ID}))
	}
	for _, one := range running {
		var ran activities.Ran
		if err := one.Get(ctx, &ran); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}
	return nil
}

// approved waits for the signal that approves a call, or for the approval's expiry.
func approved(ctx workflow.Context, pass activities.PassRef, call activities.CallRef) bool {
	signals := workflow.GetSignalChannel(ctx, protocol.SignalApprove)
	var decision jig.Decision
	if ok, _ := signals.ReceiveWithTimeout(ctx, call.Ask.ExpiresAt.Sub(workflow.Now(ctx)), &decision); !ok {
		return false
	}
	var a *activities.Activities
	var heard activities.Handled
	signal := activities.Signal{
		SessionRef: pass.SessionRef, Name: protocol.SignalApprove, Key: "signal:" + call.ID, Pass: pass.Pass,
		Payload: []byte(`{"call":"` + call.ID + `","by":"bench"}`),
	}
	err := workflow.ExecuteLocalActivity(ctx, a.Hear, signal).Get(ctx, &heard)
	return err == nil
}

// baselineOptions sets the same timeouts as jig.
func baselineOptions(ctx workflow.Context) workflow.Context {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 90 * time.Second, HeartbeatTimeout: 10 * time.Second, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 30 * time.Second},
	})
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 2 * time.Second},
	})
}

// nothingActivity is the activity of the bare baseline.
const nothingActivity = "bench.nothing"

func nothing(context.Context, int) (int, error) { return 0, nil }

// Bare is the same loop without a store, to measure the cost of Temporal alone. Its results are shown but have no target.
func Bare(ctx workflow.Context, in LoopInput) (string, error) {
	ctx = baselineOptions(ctx)
	for pass := 1; pass <= in.Plan.Passes+1; pass++ {
		if err := workflow.ExecuteActivity(ctx, nothingActivity, pass).Get(ctx, nil); err != nil {
			return "", err //nolint:wrapcheck // a workflow returns Temporal's own errors
		}
		if pass <= in.Plan.Passes {
			if err := bareCalls(ctx, in.Plan.Calls); err != nil {
				return "", err
			}
		}
		if err := workflow.ExecuteLocalActivity(ctx, nothing, pass).Get(ctx, nil); err != nil {
			return "", err //nolint:wrapcheck // as above
		}
	}
	return "done", nil
}

func bareCalls(ctx workflow.Context, calls int) error {
	if err := workflow.ExecuteLocalActivity(ctx, nothing, calls).Get(ctx, nil); err != nil {
		return err //nolint:wrapcheck // a workflow returns Temporal's own errors
	}
	running := make([]workflow.Future, calls)
	for i := range running {
		running[i] = workflow.ExecuteActivity(ctx, nothingActivity, i)
	}
	for _, one := range running {
		if err := one.Get(ctx, nil); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}
	return nil
}
