package client

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/workflows"
)

// Trigger runs one tool call without a model and returns as soon as it has its result or waits for a person: the status
// says which. id is the call's session; a fresh one when empty. An id that is taken gives the call that is there.
// When no worker answers, the call is kept and runs as soon as one does; the result then names the session beside the error. An
// input too large to travel with the start is kept aside first, which takes a worker that answers.
func (c *Client) Trigger(ctx context.Context, input workflows.CallInput, id string) (workflows.CallResult, error) {
	if input.Tenant == "" {
		input.Tenant = jig.DefaultTenant
	}
	if id == "" {
		id = jig.NewSessionID()
	}
	err := errors.Join(jig.CheckTenant(input.Tenant), jig.CheckSessionID(id), jig.CheckToolName(input.Tool))
	if err != nil {
		return workflows.CallResult{}, translate(err)
	}
	if err := c.stageCall(ctx, &input); err != nil {
		return workflows.CallResult{}, err
	}
	result := workflows.CallResult{SessionID: id}
	err = c.watchWorker(ctx, id, func(ctx context.Context) error {
		return c.repeat(ctx, func(ctx context.Context) error { return c.startCall(ctx, input, id, &result) },
			func(err error) bool { return busy(err) || cutOff(err) })
	})
	var taken *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &taken):
		return c.WaitCall(ctx, input.Tenant, id)
	case isNoWorker(err):
		return workflows.CallResult{SessionID: id}, c.noWorker()
	default:
		return workflows.CallResult{}, translate(err)
	}
}

// callStart is what a single call's workflow starts with, now or by a schedule.
func (c *Client) callStart(id string, input workflows.CallInput) sdk.StartWorkflowOptions {
	name := input.Tool
	if name == "" {
		name = input.DocumentName
	}
	return c.workflowOptions(id, input.Tenant, "", summary(name, ""))
}

// startCall starts the workflow, or finds it running, and waits for the first word of it.
func (c *Client) startCall(ctx context.Context, input workflows.CallInput, id string, result *workflows.CallResult) error {
	options := c.callStart(id, input)
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	start := c.temporal.NewWithStartWorkflowOperation(options, workflows.CallWorkflow, input)
	handle, err := c.temporal.UpdateWithStartWorkflow(ctx, sdk.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: sdk.UpdateWorkflowOptions{
			UpdateID: updateID(workflows.UpdateWait, id), WorkflowID: id, UpdateName: workflows.UpdateWait,
			WaitForStage: sdk.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, result) //nolint:wrapcheck // translated by the caller
}

// WaitCall waits until a single call has its result, also through an approval, and returns it. A call whose session was cancelled or
// terminated has none: the error is CANCELED.
func (c *Client) WaitCall(ctx context.Context, tenant, id string) (workflows.CallResult, error) {
	sighted, err := c.look(ctx, tenant, id)
	if err != nil {
		return workflows.CallResult{}, err
	}
	if sighted.kind != workflows.CallWorkflow {
		return workflows.CallResult{}, jig.Errorf(jig.CodeConflict, "%s is an agent session, not a single call", id).WithField("session")
	}
	result := workflows.CallResult{SessionID: id}
	err = c.repeat(ctx, func(ctx context.Context) error {
		return c.temporal.GetWorkflow(ctx, id, "").Get(ctx, &result)
	}, busy)
	if err != nil {
		return workflows.CallResult{}, translate(err)
	}
	return result, nil
}
