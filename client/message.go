package client

import (
	"context"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Message sends a message to a session. A working session reads it in its next pass; an ended session starts another pass. An unknown
// session is NOT_FOUND.
func (c *Client) Message(ctx context.Context, tenant, id, text, by string) error {
	return c.Say(ctx, tenant, id, protocol.Message{Text: text, By: by})
}

// Say is like [Client.Message], but lets the sender choose an optional message id: the session accepts only one message with that id,
// however often it is sent.
func (c *Client) Say(ctx context.Context, tenant, id string, m protocol.Message) error {
	tenant, id = named(tenant, id)
	text := m.Text
	if text == "" {
		return jig.Errorf(jig.CodeMissingParam, "the message is empty").WithField("text")
	}
	if !utf8.ValidString(text) {
		return notUTF8("text")
	}
	if len(text) > inlineBytes {
		return jig.Errorf(jig.CodeInvalidInput, "the message has %d bytes; at most %d are allowed", len(text), inlineBytes).WithField("text")
	}
	agent, request, err := c.addressee(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := c.vouchMessage(ctx, tenant, id, &m); err != nil {
		return err
	}
	options := c.workflowOptions(id, tenant, agent, protocol.Summary(agent, text))
	if request != "" { // the run that the message starts keeps it
		options.Memo[memoRequest] = request
	}
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	err = c.repeat(ctx, func(ctx context.Context) error {
		_, err := c.signals.SignalWithStartWorkflow(ctx, id, protocol.SignalMessage, m,
			options, protocol.PassWorkflow, protocol.PassInput{Tenant: tenant, Task: protocol.Excerpt(text), Woken: new(m.Woken())})
		return err
	}, busy)
	return translate(err)
}

// addressee checks that a session can take a message and returns its agent and the digest of the request that started it. Temporal forgets ended workflows after
// the retention time, but the store does not, so addressee asks a worker about sessions that Temporal does not know.
func (c *Client) addressee(ctx context.Context, tenant, id string) (agent, request string, err error) {
	sighted, err := c.look(ctx, tenant, id)
	if isNotFound(err) {
		view, statusErr := c.Status(ctx, tenant, id)
		if isNotFound(statusErr) {
			return "", "", err
		}
		return view.Agent, "", statusErr
	}
	if err == nil && sighted.kind == protocol.CallWorkflow {
		err = jig.Errorf(jig.CodeConflict, "%s is a single call: it takes no messages", id).WithField("session")
	}
	return sighted.agent, sighted.request, err
}

// Cancel asks a session to stop: it cancels running tools and waiting approvals. It returns when the request is accepted, which is before
// the session has ended. An ended session is CONFLICT.
func (c *Client) Cancel(ctx context.Context, tenant, id string) error {
	return c.CancelBecause(ctx, tenant, id, "", "")
}

// CancelBecause is like [Client.Cancel], with a reason and the name of the person or program that cancels. Temporal keeps both in the history of the
// session's workflow, and jig in the audit. Nothing proves the name. Both may be empty.
func (c *Client) CancelBecause(ctx context.Context, tenant, id, reason, by string) error {
	tenant, id = named(tenant, id)
	sighted, err := c.look(ctx, tenant, id)
	if err != nil {
		return err
	}
	if !sighted.live {
		return hasEnded(id, sighted).WithHint("there is nothing to cancel")
	}
	err = translate(c.repeat(ctx, func(ctx context.Context) error {
		return c.temporal.CancelWorkflowWithOptions(ctx, sdk.CancelWorkflowOptions{WorkflowID: id, Reason: protocol.CancelReason(by, reason)})
	}, busy))
	if !isNotFound(err) {
		return err
	}
	if sighted, err = c.look(ctx, tenant, id); err != nil { // it ended meanwhile
		return err
	}
	return hasEnded(id, sighted).WithHint("there is nothing to cancel")
}
