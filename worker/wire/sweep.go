package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig/workflows"
)

// sweepEvery is how soon a session is closed whose workflow was ended from outside.
const sweepEvery = time.Minute

// scheduleSweep makes sure that the sweeper runs: one for all workers of a task queue.
func scheduleSweep(ctx context.Context, t sdk.Client, queue string) error {
	id := "jig-sweep-" + queue
	_, err := t.ScheduleClient().Create(ctx, sdk.ScheduleOptions{
		ID:      id,
		Spec:    sdk.ScheduleSpec{Intervals: []sdk.ScheduleIntervalSpec{{Every: sweepEvery}}},
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		Action: &sdk.ScheduleWorkflowAction{
			ID: id, Workflow: workflows.SweepWorkflow, TaskQueue: queue, WorkflowExecutionTimeout: 15 * time.Minute,
		},
	})
	var there *serviceerror.AlreadyExists
	if err == nil || errors.Is(err, temporal.ErrScheduleAlreadyRunning) || errors.As(err, &there) {
		return nil
	}
	return fmt.Errorf("schedule the sweeper: %w", err)
}

// runs tells the sweeper which workflows are open.
type runs struct{ temporal sdk.Client }

// Open reports whether a workflow of that id is running.
func (r runs) Open(ctx context.Context, workflowID string) (bool, error) {
	described, err := r.temporal.DescribeWorkflowExecution(ctx, workflowID, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for workflow %s: %w", workflowID, err)
	}
	open := []enumspb.WorkflowExecutionStatus{
		enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
		enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
	}
	return slices.Contains(open, described.GetWorkflowExecutionInfo().GetStatus()), nil
}
