package client

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// comparisonTimeout bounds how long Show waits for a worker that compares the call.
const comparisonTimeout = 5 * time.Second

// Show returns a waiting call with its whole input, whether it has changed since it was shown, earlier decisions about calls of the tool, and
// what a token for an answer would sign. Lists of calls show at most 2 KiB of each input. Show returns NOT_FOUND if no call with that id
// waits, and CONFLICT if the call changes while it is being read.
func (c *Client) Show(ctx context.Context, tenant, session, call string) (protocol.ShownCall, error) {
	tenant, session = named(tenant, session)
	var input []byte
	var first protocol.ShowPage
	request := protocol.ShowRequest{Tenant: tenant, SessionID: session, Call: call}
	for {
		var page protocol.ShowPage
		if err := c.ask(ctx, string(protocol.ReadCall), 0, request, &page); err != nil {
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
				Pending: first.Pending, Input: input, Similar: append([]protocol.SimilarDecision{}, first.Similar...), Comparison: c.comparison(ctx, request, first),
				ToSign: append([]protocol.SignedClaims{}, first.ToSign...),
			}, nil
		}
		request.Offset = len(input)
	}
}

// comparison returns whether a call that waits for approval is still what people are shown, as stored or as a worker says now; nil if the call
// waits for something else. A call that no worker compares in time is shown without the comparison.
func (c *Client) comparison(ctx context.Context, of protocol.ShowRequest, shown protocol.ShowPage) *protocol.Comparison {
	if shown.Comparison != nil || shown.Pending.Kind != jig.PendingApproval {
		return shown.Comparison
	}
	ctx, cancel := context.WithTimeout(ctx, comparisonTimeout)
	defer cancel()
	var found protocol.Comparison
	err := c.ask(ctx, string(protocol.ReadComparison), 0, protocol.CompareRequest{Tenant: of.Tenant, SessionID: of.SessionID, Call: of.Call}, &found)
	switch {
	case ctx.Err() != nil || isNoWorker(err):
		return &protocol.Comparison{Status: protocol.ComparisonUnknown, Detail: "no worker answered in time"}
	case err != nil:
		return &protocol.Comparison{Status: protocol.ComparisonUnknown, Detail: jig.AsError(err).Message}
	}
	return &found
}
