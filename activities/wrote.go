package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// whole reports whether a call consists of other calls, in a composition or in another session, and may be repeated. The row of such a
// call does not say what the call changed. A composition that succeeded is not repeated. An agent is repeated if its answer does not have
// the required form.
func (a *Activities) whole(ctx context.Context, call jig.Call) (bool, error) {
	tool, _, err := a.tool(ctx, call.Tenant, call.Tool, call.Version)
	child := childOf(tool)
	return child == ChildAgent || call.Status != jig.CallSucceeded && (child != "" || isDocument(tool)), err
}

// wrote reports whether any write has begun inside a call: in its steps, in the session that answers it, or in the sessions below.
func (a *Activities) wrote(ctx context.Context, call jig.Call) (bool, error) {
	var agents []string
	for _, tool := range a.Catalog.Tools() {
		if childOf(tool) == ChildAgent {
			agents = append(agents, tool.Name)
		}
	}
	type place struct{ session, call string }
	places := []place{{call.SessionID, call.ID}, {session: jig.ChildSessionID(call.SessionID, call.ID)}}
	for depth := 0; len(places) > 0 && depth <= protocol.MaxDepth; depth++ {
		var inner []place
		for _, p := range places {
			wrote, begun, err := a.Store.BegunBelow(ctx, call.Tenant, p.session, p.call, agents)
			if wrote || err != nil {
				return wrote, err
			}
			for _, id := range begun {
				inner = append(inner, place{session: jig.ChildSessionID(p.session, id)})
			}
		}
		places = inner
	}
	return len(places) > 0, nil // deeper than sessions can nest: assume that something was written
}
