package activities

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
)

// OpenCallInput asks for the session of a single call.
type OpenCallInput struct {
	SessionRef
	Tool      string            `json:"tool"`
	Input     json.RawMessage   `json:"input,omitempty"`
	Pairs     map[string]string `json:"pairs,omitempty"`
	Principal jig.Principal     `json:"principal"`
}

// CallAgent is the agent named in the session of a single call.
const CallAgent = "call"

// OpenCall stores the session of a single call, with the call as its only turn. A tool that does not exist or input that
// does not fit is refused before there is a session.
func (a *Activities) OpenCall(ctx context.Context, in OpenCallInput) (Opened, error) {
	opened, err := a.openCall(ctx, in)
	return opened, temporalError(err)
}

func (a *Activities) openCall(ctx context.Context, in OpenCallInput) (Opened, error) {
	if err := jig.CheckTenant(in.Tenant); err != nil {
		return Opened{}, err
	}
	session := jig.Session{
		Tenant: in.Tenant, ID: in.SessionID, Principal: in.Principal, Status: jig.StatusWorking,
		Agent: jig.Agent{Name: CallAgent, Tools: []string{in.Tool}},
	}
	session.Principal.Claimed = true
	tool, ok := a.catalogue.Tool(in.Tool)
	if !ok {
		return Opened{}, a.catalogue.Validate(in.Tool, nil)
	}
	if err := allowed(tool, session); err != nil {
		return Opened{}, err
	}
	input, err := a.checkedInput(nil, in.Input, nil)
	if err != nil {
		return Opened{}, err
	}
	if len(in.Pairs) > 0 {
		converted, err := a.schemas.FromPairs(tool.InputSchema, in.Pairs)
		if err != nil {
			return Opened{}, err
		}
		if input, err = overlay(input, converted); err != nil {
			return Opened{}, err
		}
	}
	if err := a.catalogue.Validate(in.Tool, withDefaults(tool.InputSchema, input)); err != nil {
		return Opened{}, err
	}
	session.Input, session.Catalogue = input, map[string]string{tool.Name: tool.Version}
	if session, err = a.store.CreateSession(ctx, session); err != nil {
		return Opened{}, err
	}
	if _, _, err := a.store.BeginPass(ctx, in.Tenant, in.SessionID, 1); err != nil {
		return Opened{}, err
	}
	turn := jig.Turn{Stop: jig.StopCalls, Calls: []jig.ToolCall{{ProviderID: "call", Name: in.Tool, Input: input}}}
	if _, err := a.store.SaveTurn(ctx, in.Tenant, in.SessionID, 1, turn); err != nil {
		return Opened{}, err
	}
	return Opened{Agent: CallAgent, Limits: session.Agent.Limits.WithDefaults(), Pass: 1}, nil
}

// SettleCall ends the session of a single call as its call ended.
func (a *Activities) SettleCall(ctx context.Context, in PassRef) (Settled, error) {
	call, err := a.store.Call(ctx, in.Tenant, in.SessionID, jig.CallID(in.Pass, 1))
	if err != nil {
		return Settled{}, temporalError(err)
	}
	end := jig.End{Tenant: in.Tenant, SessionID: in.SessionID, Pass: in.Pass, Status: jig.StatusCompleted, Reason: jig.ReasonAnswered}
	if call.Result != nil {
		end.Answer = call.Result.Summary
	}
	if call.Status != jig.CallSucceeded {
		end.Status, end.Reason = jig.StatusFailed, string(call.Status)
		if call.Result != nil {
			end.Error = call.Result.Error
		}
	}
	end, err = a.store.EndPass(ctx, end)
	return settled(end), temporalError(err)
}

// CallState is where a call stands, with its result when it has one, cut to what a row holds.
type CallState struct {
	Status jig.CallStatus  `json:"status"`
	Result *jig.ToolResult `json:"result,omitempty"`
}

// CallState reads where a call stands.
func (a *Activities) CallState(ctx context.Context, in RunInput) (CallState, error) {
	call, err := a.store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return CallState{}, temporalError(err)
	}
	if call.Result != nil && call.ResultArtifact != "" {
		call.Result.Artifacts = append(call.Result.Artifacts, call.ResultArtifact)
	}
	return CallState{Status: call.Status, Result: call.Result}, nil
}
