package client

import (
	"cmp"
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// StartCall starts one call without a model and returns at once. The call may run a tool, a registered execution spec, or a document that
// is sent along. [Client.WaitCall] waits for its result; [Client.Follow] shows what happens.
//
// id is the client's own id for the call's session, as in [StartOptions]; if it is empty, jig makes one. If the id is taken, StartCall
// returns the existing call if the same request started it, and CONFLICT otherwise. The input's Check has the same meaning as in
// [StartOptions].
func (c *Client) StartCall(ctx context.Context, input protocol.CallInput, id string) (Started, error) {
	var err error
	fresh := id == "" && input.Key == ""
	if input.Tenant, id, err = chosen(input.Tenant, id, input.Key, calledName(input)); err != nil {
		return Started{}, err
	}
	request := callRequest(input)
	input.Check = input.Check || !fresh
	started, err := c.beginCall(ctx, input, id, fresh)
	if started.Existing && fresh { // an earlier attempt of this request started it
		started.Existing = false
	} else if started.Existing {
		_, err = c.sameRequest(ctx, input.Tenant, id, request)
	}
	if err != nil {
		return Started{}, err
	}
	return started, nil
}

// StartChild starts the session that answers a call of another session, under the id that [jig.ChildSessionID] returns. It is for tools,
// which may run more than once: if the session already exists, StartChild leaves it alone.
func (c *Client) StartChild(ctx context.Context, input protocol.CallInput, session string) error {
	if err := errors.Join(jig.CheckTenant(input.Tenant), jig.CheckSessionID(session)); err != nil {
		return translate(err)
	}
	started, err := c.beginCall(ctx, input, session, false)
	if err == nil && started.Existing {
		_, err = c.look(ctx, input.Tenant, session) // NOT_FOUND if the id belongs to another tenant's session
	}
	return err
}

// beginCall starts the workflow of a single call unless it exists. fresh reports that the id is new.
func (c *Client) beginCall(ctx context.Context, input protocol.CallInput, id string, fresh bool) (Started, error) {
	if input.Tool == "" && input.Document == "" && input.DocumentArtifact == "" {
		return Started{}, jig.Errorf(jig.CodeInvalidInput, "give a tool or a composition").WithField("tool")
	}
	options := c.callStart(id, input)
	if input.Parent == "" {
		if err := c.vouchCall(ctx, protocol.StateStart, id, &input); err != nil {
			return Started{}, err
		}
	}
	if err := c.stageCall(ctx, &input); err != nil {
		return Started{}, err
	}
	if input.Check {
		var err error
		check := protocol.CheckRequest{Tenant: input.Tenant, SessionID: id, Call: &input}
		if options.WorkflowIDReusePolicy, err = c.check(ctx, check, fresh); err != nil {
			return Started{}, err
		}
	}
	return c.startOnce(ctx, options, protocol.CallWorkflow, input)
}

// callRequest returns the request that starts a single call.
func callRequest(in protocol.CallInput) jig.SessionRequest {
	return jig.SessionRequest{Tool: in.Tool, Document: in.Document, Input: in.Input, Pairs: in.Pairs, Principal: in.Principal.ID}
}

// stageCall uploads the document and the input as artifacts if they are too large to travel with the start.
func (c *Client) stageCall(ctx context.Context, in *protocol.CallInput) (err error) {
	if err := sendable("document", in.Document, in.Input, in.Pairs); err != nil {
		return err
	}
	if size := pairsSize(in.Pairs); size > inlineBytes {
		return jig.Errorf(jig.CodeInvalidInput, "the key=value inputs have %d bytes; at most %d are allowed", size, inlineBytes).
			WithField("input").WithHint("pass large values as a JSON document")
	}
	if len(in.Document)+len(in.Input)+pairsSize(in.Pairs) <= inlineBytes {
		return nil
	}
	if len(in.Document) > inlineBytes/4 {
		if in.DocumentArtifact, err = c.upload(ctx, in.Tenant, []byte(in.Document)); err != nil {
			return err
		}
		in.Document = ""
	}
	if len(in.Input) > inlineBytes/4 {
		if in.InputArtifact, err = c.upload(ctx, in.Tenant, in.Input); err != nil {
			return err
		}
		in.Input = nil
	}
	return nil
}

// WholeResult returns a call's result with all of its data. If the given result was truncated, it fetches the whole one.
func (c *Client) WholeResult(ctx context.Context, tenant string, r protocol.CallResult) (*jig.ToolResult, error) {
	return r.Whole(func(artifact string) ([]byte, error) { return c.Artifact(ctx, tenant, artifact) })
}

// Trigger runs one tool call without a model and returns as soon as the call has its result or waits for a person; the status says which,
// and Pending names the calls that wait.
// id has the same meaning as in [Client.StartCall]. A call that is refused does not use up an id or a key that the caller chose: the call is
// checked first, which takes one more request.
//
// If no worker answers, the call is kept and runs as soon as one does; Trigger then returns an error, and a result that names the session.
// An input that is too large to travel with the start is uploaded first, which requires a worker that answers.
func (c *Client) Trigger(ctx context.Context, input protocol.CallInput, id string) (protocol.CallResult, error) {
	var err error
	fresh := id == "" && input.Key == ""
	if input.Tenant, id, err = chosen(input.Tenant, id, input.Key, calledName(input)); err != nil {
		return protocol.CallResult{}, err
	}
	if err := jig.CheckToolName(input.Tool); err != nil {
		return protocol.CallResult{}, translate(err)
	}
	request := callRequest(input)
	options := c.callStart(id, input)
	if err := c.vouchCall(ctx, protocol.StateStart, id, &input); err != nil {
		return protocol.CallResult{}, err
	}
	if err := c.stageCall(ctx, &input); err != nil {
		return protocol.CallResult{}, err
	}
	if input.Check || !fresh {
		check := protocol.CheckRequest{Tenant: input.Tenant, SessionID: id, Call: &input}
		if options.WorkflowIDReusePolicy, err = c.check(ctx, check, fresh); err != nil {
			return protocol.CallResult{}, err
		}
	}
	result := protocol.CallResult{SessionID: id}
	first := firstNews(id)
	err = c.watchWorker(ctx, id, func(ctx context.Context) error {
		return c.repeat(ctx, func(ctx context.Context) error { return c.startCall(ctx, options, first, input, &result) },
			func(err error) bool { return busy(err) || cutOff(err) })
	})
	if alreadyStarted(err) {
		sighted, same := c.sameRequest(ctx, input.Tenant, id, request)
		if same != nil && !fresh {
			return protocol.CallResult{}, same
		}
		result, err = c.joinCall(ctx, input.Tenant, id, sighted, first)
	}
	switch {
	case err == nil:
		return c.withPending(ctx, input.Tenant, withClientID(result))
	case isNoWorker(err):
		return withClientID(protocol.CallResult{SessionID: id}), c.noWorker()
	default:
		return protocol.CallResult{}, translate(err)
	}
}

// firstNews returns the update that answers as soon as a call has its result or waits for a person.
func firstNews(id string) sdk.UpdateWorkflowOptions {
	return sdk.UpdateWorkflowOptions{
		UpdateID: updateID(protocol.UpdateWait, id), WorkflowID: id, UpdateName: protocol.UpdateWait,
		WaitForStage: sdk.WorkflowUpdateStageCompleted,
	}
}

// AwaitCall waits until a single call that was started has its result or waits for a person, like [Client.Trigger].
func (c *Client) AwaitCall(ctx context.Context, tenant, id string) (protocol.CallResult, error) {
	tenant, id = named(tenant, id)
	sighted, err := c.lookCall(ctx, tenant, id)
	if err != nil {
		return protocol.CallResult{}, err
	}
	result, err := c.joinCall(ctx, tenant, id, sighted, firstNews(id))
	if err != nil {
		return protocol.CallResult{}, translate(err)
	}
	return c.withPending(ctx, tenant, withClientID(result))
}

// lookCall is like look, and refuses sessions that are not single calls.
func (c *Client) lookCall(ctx context.Context, tenant, id string) (sighting, error) {
	sighted, err := c.look(ctx, tenant, id)
	if err == nil && sighted.kind != protocol.CallWorkflow {
		err = jig.Errorf(jig.CodeConflict, "%s is an agent session, not a single call", id).WithField("session")
	}
	return sighted, err
}

// withPending adds the calls that wait for a person to the result of a call that has not ended.
func (c *Client) withPending(ctx context.Context, tenant string, r protocol.CallResult) (protocol.CallResult, error) {
	if r.Status.Final() {
		return r, nil
	}
	view, err := c.Status(ctx, tenant, r.SessionID)
	if err != nil {
		return r, err
	}
	r.Pending = protocol.WaitingCalls(view)
	return r, nil
}

func withClientID(r protocol.CallResult) protocol.CallResult {
	r.ClientID = jig.ClientID(r.SessionID)
	return r
}

// joinCall waits until an existing call has its result or waits for a person.
func (c *Client) joinCall(
	ctx context.Context, tenant, id string, sighted sighting, first sdk.UpdateWorkflowOptions,
) (protocol.CallResult, error) {
	if !sighted.live {
		return c.WaitCall(ctx, tenant, id)
	}
	result := protocol.CallResult{SessionID: id}
	ended, err := c.updateRun(ctx, tenant, first, &result)
	if ended != nil {
		return c.WaitCall(ctx, tenant, id)
	}
	return result, err
}

// calledName returns the tool or the document that a single call runs, for people.
func calledName(in protocol.CallInput) string { return cmp.Or(in.Tool, in.DocumentName) }

// callStart returns the start options of a single call's workflow, which is started now or by a schedule.
func (c *Client) callStart(id string, input protocol.CallInput) sdk.StartWorkflowOptions {
	options := c.workflowOptions(id, input.Tenant, "", protocol.Summary(calledName(input), input.Asked()))
	options.Memo[memoRequest] = callRequest(input).Digest()
	return options
}

// startCall starts the workflow and waits until the call has its result or waits for a person.
func (c *Client) startCall(
	ctx context.Context, options sdk.StartWorkflowOptions, first sdk.UpdateWorkflowOptions, input protocol.CallInput, result *protocol.CallResult,
) error {
	options.WorkflowIDReusePolicy = cmp.Or(options.WorkflowIDReusePolicy, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
	// The existing call may be a different one, and its result must not be mistaken for the result of this request.
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	start := c.temporal.NewWithStartWorkflowOperation(options, protocol.CallWorkflow, input)
	handle, err := c.temporal.UpdateWithStartWorkflow(ctx, sdk.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start, UpdateOptions: first,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, result) //nolint:wrapcheck // the caller translates it
}

// WaitCall waits until a single call has its result, even if it needs an approval first, and returns it. If the call's session was canceled
// or terminated, the error is CANCELED.
func (c *Client) WaitCall(ctx context.Context, tenant, id string) (protocol.CallResult, error) {
	tenant, id = named(tenant, id)
	if _, err := c.lookCall(ctx, tenant, id); err != nil {
		return protocol.CallResult{}, err
	}
	result := protocol.CallResult{SessionID: id}
	err := c.repeat(ctx, func(ctx context.Context) error {
		return c.temporal.GetWorkflow(ctx, id, "").Get(ctx, &result)
	}, busy)
	if err != nil {
		return protocol.CallResult{}, translate(err)
	}
	return withClientID(result), nil
}
