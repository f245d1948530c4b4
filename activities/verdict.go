package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/argument"
	"github.com/jig-run/jig/internal/protocol"
)

// Verdict rules on a call that nobody makes. It changes nothing. The input is not validated, but its paths and URLs must be acceptable.
func (a *Activities) Verdict(ctx context.Context, in protocol.VerdictRequest) (protocol.Verdict, error) {
	v, err := a.verdict(ctx, in)
	return v, temporalError(err)
}

func (a *Activities) verdict(ctx context.Context, in protocol.VerdictRequest) (protocol.Verdict, error) {
	simulator, err := a.simulator()
	if err != nil {
		return protocol.Verdict{}, err
	}
	tool, known, err := a.tool(ctx, in.Tenant, in.Tool, "")
	if err != nil {
		return protocol.Verdict{}, err
	}
	if !known {
		return protocol.Verdict{}, jig.Errorf(jig.CodeToolNotFound, "there is no tool %s", in.Tool).WithField("tool").WithHint("`jig catalog` lists the tools")
	}
	call := jig.Call{Tenant: in.Tenant, ID: jig.CallID(1, 1), Pass: 1, Ordinal: 1, Tool: tool.Name, Version: tool.Version, Input: in.Input}
	if len(call.Input) == 0 {
		call.Input = json.RawMessage("{}")
	}
	if call.Input, err = argument.Canonical(tool.InputSchema, withDefaults(tool.InputSchema, call.Input)); err != nil {
		return protocol.Verdict{}, err
	}
	session := jig.Session{
		Tenant: in.Tenant, Pass: 1, Principal: jig.Principal{ID: in.By},
		Agent: jig.Agent{Name: cmp.Or(in.Agent, jig.CallAgent), Registered: in.Agent != "" && !strings.HasPrefix(in.Agent, jig.DraftPrefix)},
	}
	if err := a.acting(ctx, &session); err != nil {
		return protocol.Verdict{}, err
	}
	return simulator.Simulate(ctx, in.Document, tool, call, session, a.Now())
}

// PolicyCases runs the cases of a policy document. It changes nothing.
func (a *Activities) PolicyCases(ctx context.Context, in protocol.CasesRequest) (protocol.CasesPage, error) {
	simulator, err := a.simulator()
	if err != nil {
		return protocol.CasesPage{}, temporalError(err)
	}
	var failed error
	page, err := simulator.Cases(ctx, in.Document, func(name string) (jig.Tool, bool) {
		tool, known, err := a.tool(ctx, in.Tenant, name, "")
		failed = cmp.Or(failed, err)
		return tool, known && err == nil
	})
	return page, temporalError(cmp.Or(err, failed))
}

func (a *Activities) simulator() (simulator, error) {
	if s, ok := a.Policy.(simulator); ok {
		return s, nil
	}
	return nil, jig.Errorf(jig.CodeUnavailable, "this worker's policy does not support simulations")
}
