package activities

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

// reader returns the function that makes the call which a document's preview asks for. The call is checked like every other one: the tool must be
// one that only reads, the caller and its agent may use it, the input fits, and the policies let it run without asking.
func (p *previews) reader(call jig.Call) plan.Read {
	return func(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
		tool, ok, err := p.code(ctx, call.Tenant, name)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, p.noTool(ctx, call.Tenant, name)
		}
		if !tool.OnlyReads() {
			return nil, jig.Errorf(jig.CodeNotPermitted, "a preview only reads, and %s does more than that or sends data away", name)
		}
		session := p.session
		if session.Agent.Name == jig.CallAgent && session.Depth == 0 { // nobody but the principal chose the tool, so no agent's list limits it
			session.Agent.Tools = []string{"*"}
		}
		return p.readNow(ctx, session, tool, jig.Call{Tenant: call.Tenant, SessionID: call.SessionID, ID: call.ID, Pass: call.Pass, Tool: name, CreatedAt: p.Now()}, input)
	}
}
