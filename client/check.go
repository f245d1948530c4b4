package client

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// definite lists the errors of a check that a retry does not change, so that nothing is started.
var definite = []jig.Code{
	jig.CodeToolNotFound, jig.CodeNotFound, jig.CodeNotPermitted, jig.CodeMissingParam, jig.CodeInvalidInput, jig.CodeConflict,
}

// check returns the error with which a session or a call would fail to start. fresh reports that its id is new; otherwise a session with that
// id may exist, which is not started again. Any other failure is not an error: the start is durable, and the worker that picks it up checks
// it again.
func (c *Client) check(ctx context.Context, in protocol.CheckRequest, fresh bool) error {
	if !fresh {
		if _, err := c.look(ctx, in.Tenant, in.SessionID); err == nil {
			return nil
		}
	}
	err := c.ask(ctx, protocol.CheckStart, 0, in, nil)
	if ctx.Err() != nil || slices.Contains(definite, jig.CodeOf(err)) {
		return err
	}
	return nil
}
