package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Show returns a waiting call with its whole input, earlier decisions about calls of the tool, and what a token for an answer would sign. Lists of calls show at most 2 KiB of each input. Show returns NOT_FOUND if no call with
// that id waits, and CONFLICT if the call changes while it is being read.
func (c *Client) Show(ctx context.Context, tenant, session, call string) (protocol.ShownCall, error) {
	tenant, session = named(tenant, session)
	var input []byte
	var first protocol.ShowPage
	request := protocol.ShowRequest{Tenant: tenant, SessionID: session, Call: call}
	for {
		var page protocol.ShowPage
		if err := c.ask(ctx, protocol.ReadCall, 0, request, &page); err != nil {
			return protocol.ShownCall{}, err
		}
		if request.Offset == 0 {
			first = page
		}
		if page.Pending.Digest != first.Pending.Digest {
			return protocol.ShownCall{}, jig.Errorf(jig.CodeConflict, "call %s changed while it was read", call).WithField("call").WithHint("look again")
		}
		input = append(input, page.Input...)
		if len(input) >= page.Size || len(page.Input) == 0 {
			return protocol.ShownCall{
				Pending: first.Pending, Input: input, Similar: append([]protocol.SimilarDecision{}, first.Similar...), ToSign: append([]protocol.SignedClaims{}, first.ToSign...),
			}, nil
		}
		request.Offset = len(input)
	}
}
