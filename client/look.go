package client

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

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
	e := jig.Errorf(jig.CodeConflict, "session %s has ended (%s): nothing in it is waiting", id, word).WithField("session")
	if s.kind == protocol.CallWorkflow {
		return e
	}
	return e.WithHint("`jig message` starts another pass of an ended session")
}
