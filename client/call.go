package client

import (
	"context"
	"errors"

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
	if input.Tenant, id, err = chosen(input.Tenant, id, input.Key); err != nil {
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
		return Started{}, jig.Errorf(jig.CodeInvalidInput, "give a tool or an execution spec").WithField("tool")
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
