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
		if refused := allowed(tool, session); refused != nil {
			return nil, refused
		}
		read := jig.Call{Tenant: call.Tenant, SessionID: call.SessionID, ID: call.ID, Pass: call.Pass, Tool: name, CreatedAt: p.now()}
		if refused := p.normalize(ctx, session, tool, input, &read); refused != nil {
			return nil, refused
		}
		ruling, err := p.policy.Rule(ctx, tool, read, session, p.now())
		if err != nil {
			return nil, err
		}
		if ruling.Held != "" || ruling.Verdict != jig.VerdictRun {
			return nil, jig.Errorf(jig.CodeNotPermitted, "the policies do not let %s run without asking", name)
		}
		result := p.inCode(tool).run(ctx, read.Input, p.invocation(session, read, 0, nil))
		if !result.Success {
			return nil, result.Error
		}
		return result.Data, nil
	}
}
