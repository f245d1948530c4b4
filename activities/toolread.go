package activities

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// readers are the tools that [Activities.ReadWithTool] runs. They read what the database has, quickly, and ask no model.
var readers = []string{
	toolname.EntitiesListTypes, toolname.EntitiesFilter, toolname.EntitiesSearch, toolname.EntitiesGet, toolname.EntitiesGetText,
	toolname.EntitiesListRelations, toolname.TasksGetStatus,
}

// ReadWithTool runs a tool that reads, for a principal and without a session, under the rules that a call of the tool has: the tenant's tools, the
// principal's permissions, the tool's schema, and policy. A call that would wait for approval is refused.
func (a *Activities) ReadWithTool(ctx context.Context, in protocol.ToolReadRequest) (protocol.ToolReading, error) {
	reading, err := a.readWithTool(ctx, in)
	return reading, temporalError(err)
}

func (a *Activities) readWithTool(ctx context.Context, in protocol.ToolReadRequest) (protocol.ToolReading, error) {
	tool, known, err := a.tool(ctx, in.Tenant, in.Tool, "")
	if err != nil {
		return protocol.ToolReading{}, err
	}
	if !known || !slices.Contains(readers, in.Tool) || !tool.OnlyReads() {
		return protocol.ToolReading{}, jig.Errorf(jig.CodeToolNotFound, "no tool %s reads without a session", in.Tool).WithField("tool").
			WithHint("make a call of it")
	}
	session := jig.Session{
		Tenant: in.Tenant, Pass: 1, Principal: in.Principal, Source: jig.SourceAPI, Agent: jig.Agent{Name: jig.CallAgent, Tools: []string{in.Tool}},
	}
	if err := a.acting(ctx, &session); err != nil {
		return protocol.ToolReading{}, err
	}
	data, err := a.readNow(ctx, session, tool, jig.Call{Tenant: in.Tenant, ID: jig.CallID(1, 1), Pass: 1, Ordinal: 1, Tool: tool.Name}, in.Input)
	if len(data) > pageBytes {
		return protocol.ToolReading{}, jig.Errorf(jig.CodeInvalidInput, "the answer has %d bytes; at most %d are allowed", len(data), pageBytes).
			WithHint("ask for fewer entities, fewer fields, or a field of the object")
	}
	return protocol.ToolReading{Data: data}, err
}

// readNow runs a tool that reads, outside the ledger, and returns its data. The call is checked like every other one: the principal and its agent
// may use the tool, the input fits, and the policies let it run without asking.
func (a *Activities) readNow(ctx context.Context, session jig.Session, tool jig.Tool, call jig.Call, input json.RawMessage) (json.RawMessage, error) {
	if refused := allowed(tool, session); refused != nil {
		return nil, refused
	}
	if refused := a.normalize(ctx, session, tool, input, &call); refused != nil {
		return nil, refused
	}
	ruling, err := a.policy.Rule(ctx, tool, call, session, a.now())
	if err != nil {
		return nil, err
	}
	if ruling.Held != "" || ruling.Verdict != jig.VerdictRun {
		return nil, jig.Errorf(jig.CodeNotPermitted, "the policies do not let %s run without asking", tool.Name).WithReason("policy").
			WithHint("a call of the tool waits for the approval, or says why policy denies it")
	}
	result := a.inCode(tool).run(ctx, call.Input, a.invocation(session, call, 0, nil))
	if !result.Success {
		return nil, result.Error
	}
	return result.Data, nil
}
