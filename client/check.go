package client

import (
	"context"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// definite lists the errors of a check that a retry does not change, so that nothing is started.
var definite = []jig.Code{
	jig.CodeToolNotFound, jig.CodeNotFound, jig.CodeNotPermitted, jig.CodeMissingParam, jig.CodeInvalidInput, jig.CodeConflict,
}

// check returns the error with which a session or a call would fail to start. fresh reports that its id is new; otherwise a session with that
// id may exist, which is not started again. Any other failure is not an error: the start is durable, and the worker that picks it up checks
// it again. If that one refused the start, reuse lets another start have the id.
func (c *Client) check(ctx context.Context, in protocol.CheckRequest, fresh bool) (reuse enumspb.WorkflowIdReusePolicy, err error) {
	if !fresh {
		sighted, err := c.look(ctx, in.Tenant, in.SessionID)
		if err == nil && !c.refused(ctx, in.Tenant, in.SessionID, sighted) {
			return reuse, nil
		}
		if err == nil {
			reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
		}
	}
	err = c.ask(ctx, string(protocol.CheckStart), 0, in, nil)
	if ctx.Err() != nil || slices.Contains(definite, jig.CodeOf(err)) {
		return reuse, err
	}
	return reuse, nil
}

// refused reports whether a session was never opened: neither the store nor Temporal has a result of it. The store alone does not suffice, because it may
// have been restored from a backup.
func (c *Client) refused(ctx context.Context, tenant, id string, sighted sighting) bool {
	if sighted.status != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED {
		return false
	}
	if _, err := c.Status(ctx, tenant, id); !isNotFound(err) {
		return false
	}
	var ended protocol.PassResult
	err := c.outcome(ctx, id, &ended)
	return err != nil && ctx.Err() == nil && ended.Passes == 0
}
