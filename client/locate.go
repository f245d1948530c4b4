package client

import (
	"context"
	"fmt"
	"strings"

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
		if located[i], err = locate(waiting, session, call); err != nil {
			return nil, err
		}
	}
	return located, nil
}

func locate(waiting []protocol.WaitingCall, session, call string) (protocol.WaitingCall, error) {
	var below []protocol.WaitingCall
	for _, w := range waiting {
		if w.SessionID == session && w.Call == call {
			return w, nil
		}
		if w.Via == call {
			below = append(below, w)
		}
	}
	switch len(below) {
	case 0:
		return protocol.WaitingCall{SessionID: session, Call: call}, nil
	case 1:
		return below[0], nil
	}
	names := make([]string, len(below))
	for i, w := range below {
		names[i] = w.SessionID + " " + w.Call
	}
	return protocol.WaitingCall{}, jig.Errorf(jig.CodeConflict, "%d calls wait below call %s of session %s", len(below), call, session).
		WithField("call").WithHint(fmt.Sprintf("name one of them: %s", jig.Cut(strings.Join(names, ", "), 1000)))
}
