package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// runs inspects workflows and signals them.
type runs struct{ temporal sdk.Client }

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
	described, err := r.temporal.DescribeWorkflowExecution(ctx, session, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for workflow %s: %w", session, err)
	}
	open := []enumspb.WorkflowExecutionStatus{
		enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
		enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
	}
	info := described.GetWorkflowExecutionInfo()
	owner, known := info.GetSearchAttributes().GetIndexedFields()[protocol.AttrTenant]
	if known {
		var name string
		if err := converter.GetDefaultDataConverter().FromPayload(owner, &name); err != nil {
			return false, fmt.Errorf("read the tenant of workflow %s: %w", session, err)
		}
		if name != tenant {
			return false, nil
		}
	}
	return slices.Contains(open, info.GetStatus()), nil
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
