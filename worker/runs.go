package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// runs inspects workflows and signals them.
type runs struct {
	temporal  sdk.Client
	namespace string
}

// Settled signals a workflow that a call was settled. A workflow that has ended does not need the signal.
func (r runs) Settled(ctx context.Context, workflowID string, call protocol.Settlement) error {
	err := r.temporal.SignalWorkflow(ctx, workflowID, "", protocol.SignalSettled, call)
	var missing *serviceerror.NotFound
	if err == nil || errors.As(err, &missing) {
		return nil
	}
	return jig.Errorf(jig.CodeUnavailable, "signal workflow %s: %w", workflowID, err)
}

// Open reports whether the workflow of a tenant's session is running. The workflow of another tenant's session counts as not running.
func (r runs) Open(ctx context.Context, tenant, session string) (bool, error) {
	described, err := r.describe(ctx, tenant, session)
	open := []enumspb.WorkflowExecutionStatus{
		enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
		enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
	}
	return slices.Contains(open, described.GetStatus()), err
}

// describe returns what Temporal knows of the latest run of a tenant's workflow; nil if it knows no such workflow.
func (r runs) describe(ctx context.Context, tenant, workflowID string) (*workflowpb.WorkflowExecutionInfo, error) {
	described, err := r.temporal.DescribeWorkflowExecution(ctx, workflowID, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return nil, nil //nolint:nilnil // nil means that there is no such workflow
	}
	if err != nil {
		return nil, fmt.Errorf("look for workflow %s: %w", workflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	owner, known := info.GetSearchAttributes().GetIndexedFields()[protocol.AttrTenant]
	if known {
		var name string
		if err := converter.GetDefaultDataConverter().FromPayload(owner, &name); err != nil {
			return nil, fmt.Errorf("read the tenant of workflow %s: %w", workflowID, err)
		}
		if name != tenant {
			return nil, nil //nolint:nilnil // as above
		}
	}
	return info, nil
}

// Ending says how the latest run of a tenant's workflow was ended, or is being ended, by somebody else.
func (r runs) Ending(ctx context.Context, tenant, workflowID string) (ledger.Ending, error) {
	info, err := r.describe(ctx, tenant, workflowID)
	switch {
	case err != nil:
		return ledger.Ending{}, err
	case info == nil:
		return ledger.Ending{How: ledger.EndedGone}, nil
	case info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return ledger.Ending{How: ledger.EndedItself}, nil
	}
	ending := ledger.Ending{}
	err = r.backwards(ctx, info.GetExecution(), func(event *historypb.HistoryEvent) (found bool) {
		ending, found = endingOf(event, info.GetParentExecution().GetWorkflowId())
		return found
	})
	return ending, err
}

// ResetReason returns the reason that was given for the reset from which a run came. The history of the new run holds the reason at the
// point where the earlier run was cut off.
func (r runs) ResetReason(ctx context.Context, workflowID, runID string) (string, error) {
	reason := ""
	run := &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID}
	return reason, r.backwards(ctx, run, func(event *historypb.HistoryEvent) bool {
		cut := event.GetWorkflowTaskFailedEventAttributes()
		reason = cut.GetFailure().GetMessage()
		return cut.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
	})
}

// backwards calls visit for the events of a run, the latest first, until visit returns true.
func (r runs) backwards(ctx context.Context, run *commonpb.WorkflowExecution, visit func(*historypb.HistoryEvent) bool) error {
	request := &workflowservicepb.GetWorkflowExecutionHistoryReverseRequest{Namespace: r.namespace, Execution: run, MaximumPageSize: eventsAtOnce}
	for {
		page, err := r.temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if err != nil {
			return fmt.Errorf("read the history of workflow %s: %w", run.GetWorkflowId(), err)
		}
		if slices.ContainsFunc(page.GetHistory().GetEvents(), visit) {
			return nil
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// eventsAtOnce is how many events one request for the end of a history returns. What ended a workflow is usually among them.
const eventsAtOnce = 100

// endingOf returns how an event ended a workflow that has the given parent. ok is false if the event does not end a workflow from outside.
func endingOf(event *historypb.HistoryEvent, parent string) (ending ledger.Ending, ok bool) {
	if terminated := event.GetWorkflowExecutionTerminatedEventAttributes(); terminated != nil {
		return ledger.Ending{How: ledger.EndedTerminated, Reason: terminated.GetReason(), Identity: terminated.GetIdentity()}, true
	}
	if requested := event.GetWorkflowExecutionCancelRequestedEventAttributes(); requested != nil {
		if by := requested.GetExternalWorkflowExecution().GetWorkflowId(); by != "" && by == parent {
			return ledger.Ending{How: ledger.EndedItself}, true
		}
		return ledger.Ending{How: ledger.EndedCanceled, Reason: requested.GetCause(), Identity: requested.GetIdentity()}, true
	}
	return ledger.Ending{How: ledger.EndedTimedOut}, event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT
}

// Ended returns the workflow ids that have an ended run, according to Temporal's visibility store.
func (r runs) Ended(ctx context.Context, workflowIDs []string) ([]string, error) {
	quoted := make([]string, len(workflowIDs))
	for i, id := range workflowIDs {
		quoted[i] = "'" + id + "'" // ids contain no quotes, see jig.CheckSessionID
	}
	query := "WorkflowId IN (" + strings.Join(quoted, ", ") + ") AND ExecutionStatus IN ('Completed', 'Failed', 'Canceled', 'Terminated', 'TimedOut')"
	var ended []string
	request := &workflowservicepb.ListWorkflowExecutionsRequest{Query: query}
	for {
		page, err := r.temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("look for workflows that ended: %w", err)
		}
		for _, info := range page.GetExecutions() {
			ended = append(ended, info.GetExecution().GetWorkflowId())
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			slices.Sort(ended)
			return slices.Compact(ended), nil
		}
	}
}
