package client

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Show returns a waiting call with its whole input. Lists of calls show at most 2 KiB of each input. Show returns NOT_FOUND if no call with
// that id waits, and CONFLICT if the call changes while it is being read.
func (c *Client) Show(ctx context.Context, tenant, session, call string) (jig.Pending, json.RawMessage, error) {
	tenant, session = named(tenant, session)
	var input []byte
	var first jig.Pending
	request := protocol.ShowRequest{Tenant: tenant, SessionID: session, Call: call}
	for {
		var page protocol.ShowPage
		if err := c.ask(ctx, protocol.ReadCall, 0, request, &page); err != nil {
			return jig.Pending{}, nil, err
		}
		if request.Offset == 0 {
			first = page.Pending
		}
		if page.Pending.Digest != first.Digest {
			return jig.Pending{}, nil, jig.Errorf(jig.CodeConflict, "call %s changed while it was read", call).WithField("call").WithHint("look again")
		}
		input = append(input, page.Input...)
		if len(input) >= page.Size || len(page.Input) == 0 {
			return first, input, nil
		}
		request.Offset = len(input)
	}
}
