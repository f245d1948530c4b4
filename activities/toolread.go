package activities

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// readers are the tools that [Activities.ReadWithTool] may run. They read from the database quickly, and do not ask a model.
var readers = []string{
	toolname.EntitiesListTypes, toolname.EntitiesFilter, toolname.EntitiesSearch, toolname.EntitiesGet, toolname.EntitiesGetText,
	toolname.EntitiesListRelations, toolname.TasksGetStatus,
}

// ReadWithTool runs a reading tool for a principal, without a session. The rules are those for a call of the tool: the tenant must have the tool, the
// principal the permissions, the input must fit the schema, and policy must allow it. If the call would have to wait for approval, it is refused.
func (a *Activities) ReadWithTool(ctx context.Context, in protocol.ToolReadRequest) (_ protocol.ToolReading, err error) {
	defer asTemporal(&err)
	tool, known, err := a.tool(ctx, in.Tenant, in.Tool, "")
	if err != nil {
		return protocol.ToolReading{}, err
	}
	if !known || !slices.Contains(readers, in.Tool) || !tool.OnlyReads() {
		return protocol.ToolReading{}, jig.Errorf(jig.CodeToolNotFound, "the tool %s cannot be used for reading without a session", in.Tool).WithField("tool").
			WithHint("call the tool instead")
	}
	session := jig.Session{
		Tenant: in.Tenant, Pass: 1, Principal: in.Principal, Source: jig.SourceAPI, Agent: jig.Agent{Name: jig.CallAgent, Tools: []string{in.Tool}},
	}
	if err := a.acting(ctx, &session); err != nil {
		return protocol.ToolReading{}, err
	}
	data, err := a.readNow(ctx, session, tool, jig.Call{Tenant: in.Tenant, ID: jig.CallID(1, 1), Pass: 1, Ordinal: 1, Tool: tool.Name}, in.Input)
	if len(data) > pageBytes {
		return protocol.ToolReading{}, jig.Errorf(jig.CodeInvalidInput, "the result has %d bytes; at most %d are allowed", len(data), pageBytes).
			WithHint("request fewer entities, fewer fields, or a field of the object")
	}
	return protocol.ToolReading{Data: data}, err
}

// readNow runs a reading tool outside the ledger and returns its data. The call is checked like any other: the principal and its agent must be allowed
// to use the tool, the input must fit, and policy must let the call run without asking.
func (a *Activities) readNow(ctx context.Context, session jig.Session, tool jig.Tool, call jig.Call, input json.RawMessage) (json.RawMessage, error) {
	if refused := allowed(tool, session); refused != nil {
		return nil, refused
	}
	if refused := a.normalize(ctx, session, tool, input, &call); refused != nil {
		return nil, refused
	}
	if err := (&origins{Activities: a}).trace(ctx, session, tool, &call); err != nil { // rules read what the session has read
		return nil, err
	}
	ruling, err := a.Policy.Rule(ctx, tool, call, session, a.Now())
	if err != nil {
		return nil, err
	}
	if ruling.Held != "" || ruling.Verdict != jig.VerdictRun {
		return nil, jig.Errorf(jig.CodeNotPermitted, "policy does not let %s run without asking", tool.Name).WithReason("policy").
			WithHint("call the tool instead; the call waits for approval, or fails with the reason")
	}
	result := a.goContract(tool).run(ctx, call.Input, a.invocation(session, call, 0, nil))
	if !result.Success {
		return nil, result.Error
	}
	return result.Data, nil
}

// reader returns the function that makes the call which a document's preview asks for. The call is checked like every other one: the tool must be
// one that only reads, the caller and its agent may use it, the input fits, and the policies let it run without asking.
func (p *previews) reader(call jig.Call) plan.Read {
	return func(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
		tool, ok, err := p.goTool(ctx, call.Tenant, name)
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
