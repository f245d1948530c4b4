package workflows

import (
	"errors"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// runAgent answers a call by running a child session.
func (b *callTable) runAgent(ctx workflow.Context, c *call) (activities.Ran, error) {
	var a *activities.Activities
	var child activities.Child
	in := activities.RunInput{SessionRef: b.ref, Call: c.ref.ID}
	if err := workflow.ExecuteLocalActivity(databaseOptions(ctx), a.BeginChild, in).Get(ctx, &child); err != nil {
		return activities.Ran{}, err //nolint:wrapcheck // the caller checks for Temporal's own types
	}
	if child.Ended != nil {
		if child.Ended.Paused { // try again later, or in the next run
			c.stuck = child.Ended.Stuck
			b.asks++
			if err := workflow.Sleep(ctx, pausedAgain); err != nil {
				return activities.Ran{}, err //nolint:wrapcheck // the caller checks for Temporal's own types
			}
		}
		return *child.Ended, nil
	}
	options := b.childOptions(child.SessionID, c)
	options.TypedSearchAttributes = temporal.NewSearchAttributes(
		temporal.NewSearchAttributeKeyKeyword(protocol.AttrTenant).ValueSet(b.ref.Tenant),
		temporal.NewSearchAttributeKeyKeyword(protocol.AttrAgent).ValueSet(child.Start.Agent),
		temporal.NewSearchAttributeKeyKeyword(protocol.AttrStatus).ValueSet(string(jig.StatusWorking)),
		temporal.NewSearchAttributeKeyInt64(protocol.AttrPass).ValueSet(1),
		temporal.NewSearchAttributeKeyInt64(protocol.AttrPending).ValueSet(0),
	)
	options.StaticSummary = protocol.Summary(child.Start.Agent, child.Start.Asked())
	options.Memo = map[string]any{protocol.MemoSummary: options.StaticSummary}
	end := activities.EndChildInput{RunInput: in}
	if err := b.child(ctx, options, protocol.PassWorkflow, protocol.PassInput{Tenant: b.ref.Tenant, Start: &child.Start}, nil); err != nil {
		end.Error = activities.ErrorFrom(err)
	}
	free, _ := workflow.NewDisconnectedContext(ctx)
	var ran activities.Ran
	err := workflow.ExecuteLocalActivity(databaseOptions(free), a.EndChild, end).Get(free, &ran)
	return ran, err //nolint:wrapcheck // the caller checks for Temporal's own types
}

func (b *callTable) childOptions(id string, c *call) workflow.ChildWorkflowOptions {
	summary := strings.TrimSpace(c.ref.ID + " " + protocol.Summary(c.ref.Tool, c.ref.Title))
	return workflow.ChildWorkflowOptions{
		WorkflowID: id, WaitForCancellation: true, StaticSummary: summary, Memo: map[string]any{protocol.MemoSummary: summary},
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
}

// child runs a child workflow to its end. After a reset, the previous run's child may still exist. In that case child asks a composition
// to yield, or waits for a session to end, and then tries again.
func (b *callTable) child(ctx workflow.Context, options workflow.ChildWorkflowOptions, name string, in, result any) error {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), name, in).Get(ctx, result)
		var running *temporal.ChildWorkflowExecutionAlreadyStartedError
		if !errors.As(err, &running) {
			return err //nolint:wrapcheck // the caller checks for Temporal's own types
		}
		if name != protocol.PassWorkflow {
			workflow.SignalExternalWorkflow(ctx, options.WorkflowID, "", signalYield, nil)
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return err //nolint:wrapcheck // the caller checks for Temporal's own types
		}
	}
}
