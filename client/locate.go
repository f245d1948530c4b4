package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Locate returns the calls to answer when a person answers the given calls of a session. A call that waits itself is its own answer. For a call
// whose child session has one waiting call, it is that one; if several wait there, the error is CONFLICT and names them. A call that does not
// wait at all is returned as it is, without a digest.
func (c *Client) Locate(ctx context.Context, tenant, session string, calls []string) ([]protocol.WaitingCall, error) {
	tenant, session = named(tenant, session)
	pending, err := c.Approvals(ctx, tenant, session)
	if err != nil {
		return nil, err
	}
	waiting := protocol.WaitingCalls(jig.SessionView{SessionID: session, Pending: pending})
	located := make([]protocol.WaitingCall, len(calls))
	for i, call := range calls {
		if located[i], err = protocol.Locate(waiting, session, call); err != nil {
			return nil, err
		}
	}
	return located, nil
}
