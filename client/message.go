package client

import (
	"context"
	"crypto/rand"
	"time"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

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

// Event is an event for a session, for which its compositions may wait. See [Client.Event].
type Event = protocol.Event

// Event sends an event to a session. A composition of the session takes it as soon as it waits for an event with that name. A session takes
// only one event with the same id, however often it is sent. An unknown session is NOT_FOUND, and one that has ended is CONFLICT. If nothing
// in the session can wait for an event, its log has an event decision.refused.
func (c *Client) Event(ctx context.Context, tenant, id string, e Event) error {
	tenant, id = named(tenant, id)
	if err := e.Check(); err != nil {
		return translate(err)
	}
	if e.ID == "" {
		e.ID = rand.Text()
	}
	sighted, err := c.look(ctx, tenant, id)
	if err != nil {
		return err
	}
	if !sighted.live {
		return hasEnded(id, sighted).WithHint("it takes no more events")
	}
	if err := c.vouchEvent(ctx, tenant, id, &e); err != nil {
		return err
	}
	err = translate(c.repeat(ctx, func(ctx context.Context) error {
		return c.signals.SignalWorkflow(ctx, id, "", protocol.SignalEvent, e)
	}, busy))
	if !isNotFound(err) {
		return err
	}
	if sighted, err = c.look(ctx, tenant, id); err != nil { // it ended meanwhile
		return err
	}
	return hasEnded(id, sighted).WithHint("it takes no more events")
}

// sighting holds Temporal's information about a session's workflow.
type sighting struct {
	kind  string
	agent string
	// request is the digest of the request that started the session; empty if the session was not started by a client.
	request string
	status  enumspb.WorkflowExecutionStatus
	live    bool
}

// How many sessions a client remembers as a tenant's own, and for how long. A session never changes its tenant, and its id is not free again
// before Temporal's retention is over, which is a day at least.
const (
	maxOwn = 10_000
	ownFor = 10 * time.Minute
)

// ownKey names a session and a tenant that it belongs to.
type ownKey struct{ tenant, id string }

// own makes sure that a session belongs to a tenant: it has ended or is unknown otherwise. It asks Temporal unless this client started the
// session or looked at it a short time ago.
func (c *Client) own(ctx context.Context, tenant, id string) error {
	_, err := c.owned.Get(ownKey{tenant, id}, func(struct{}, bool) (struct{}, error) {
		sighted, err := c.look(ctx, tenant, id)
		if err == nil && !sighted.live {
			err = hasEnded(id, sighted)
		}
		return struct{}{}, err
	})
	return err
}

// look asks Temporal for a session's workflow. For another tenant's session it returns NOT_FOUND, as for an unknown one.
func (c *Client) look(ctx context.Context, tenant, id string) (sighting, error) {
	if err := jig.CheckSessionID(id); err != nil {
		return sighting{}, translate(err)
	}
	var described *workflowservicepb.DescribeWorkflowExecutionResponse
	err := c.repeat(ctx, func(ctx context.Context) (err error) {
		described, err = c.temporal.DescribeWorkflowExecution(ctx, id, "")
		return err
	}, busy)
	if err = translate(err); isNotFound(err) {
		return sighting{}, noSession(id)
	}
	if err != nil {
		return sighting{}, err
	}
	info := described.GetWorkflowExecutionInfo()
	kind := info.GetType().GetName()
	if kind != protocol.PassWorkflow && kind != protocol.CallWorkflow {
		return sighting{}, noSession(id)
	}
	attributes := info.GetSearchAttributes().GetIndexedFields()
	if owner, ok := keyword(attributes, protocol.AttrTenant); ok && owner != tenant {
		return sighting{}, noSession(id)
	}
	agent, _ := keyword(attributes, protocol.AttrAgent)
	request, _ := keyword(info.GetMemo().GetFields(), memoRequest)
	c.owned.Put(ownKey{tenant, id}, struct{}{})
	return sighting{kind: kind, agent: agent, request: request, status: info.GetStatus(), live: live(info.GetStatus())}, nil
}

// keyword decodes a search attribute or a memo field. ok is false if it is missing, which can happen if another program started the
// workflow.
func keyword(attributes map[string]*commonpb.Payload, name string) (value string, ok bool) {
	payload, ok := attributes[name]
	if !ok || converter.GetDefaultDataConverter().FromPayload(payload, &value) != nil {
		return "", false
	}
	return value, true
}

// otherSessions is a hint for finding the right session.
const otherSessions = "list sessions with `jig sessions`; --tenant selects another tenant"

func noSession(id string) *jig.Error {
	return jig.Errorf(jig.CodeNotFound, "there is no session %s", id).WithField("session").
		WithHint(otherSessions)
}

func hasEnded(id string, s sighting) *jig.Error {
	words := map[enumspb.WorkflowExecutionStatus]string{
		enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:  "completed",
		enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:     "failed",
		enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:   "was canceled",
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: "was terminated",
		enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  "timed out",
	}
	word, ok := words[s.status]
	if !ok {
		word = "ended"
	}
	e := jig.Errorf(jig.CodeConflict, "session %s has ended (%s): nothing in it is waiting", id, jig.Known(word)).WithField("session")
	if s.kind == protocol.CallWorkflow {
		return e
	}
	return e.WithHint("`jig message` starts another pass of an ended session")
}
