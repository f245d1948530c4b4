package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// OpenCallInput asks to open the session of a single call.
type OpenCallInput struct {
	protocol.SessionRef
	Call protocol.CallInput `json:"call"`
	// Began is when Temporal recorded the start; see [OpenInput].
	Began time.Time `json:"began,omitzero"`
}

// OpenCall stores the session of a single call, with the call as its only turn. A tool that does not exist and input that does not
// fit are refused before the session is stored.
func (a *Activities) OpenCall(ctx context.Context, in OpenCallInput) (Opened, error) {
	opened, err := a.openCall(ctx, in)
	if err != nil {
		err = a.refuseStart(ctx, in.SessionRef, in.Call.Principal, err)
	}
	return opened, temporalError(err)
}

func (a *Activities) openCall(ctx context.Context, in OpenCallInput) (Opened, error) {
	session, called, err := a.draftCall(ctx, in)
	if err != nil {
		return Opened{}, err
	}
	if len(called.body) > 0 {
		if err := a.Store.KeepDocument(ctx, in.Tenant, DocumentSpec, called.tool.Name, called.tool.Version, called.body); err != nil {
			return Opened{}, err
		}
	}
	turn := chat.Turn{Stop: chat.StopCalls, Calls: []jig.ToolCall{{ProviderID: "call", Name: called.tool.Name, Input: session.Input}}}
	if session, err = a.Store.CreateCall(ctx, session, turn); err != nil {
		return Opened{}, err
	}
	a.Tracing.SessionStarted(ctx, session, in.Began)
	return Opened{Agent: jig.CallAgent, Limits: session.Agent.Limits.WithDefaults(), Pass: 1}, nil
}

// draftCall returns the session of a single call, with its tool, without storing anything.
func (a *Activities) draftCall(ctx context.Context, in OpenCallInput) (session jig.Session, called callee, err error) {
	if err := errors.Join(jig.CheckTenant(in.Tenant), jig.CheckOwner(in.Tenant, in.SessionID)); err != nil {
		return session, called, err
	}
	digest, err := a.callRequestOf(ctx, in)
	if err != nil {
		return session, called, err
	}
	from := origin{
		parent: in.Call.Parent, principal: in.Call.Principal, source: in.Call.Source, proof: in.Call.Proof, request: digest, began: in.Began,
		mandate: in.Call.Mandate, triggered: in.Call.Triggered,
	}
	who, source, err := a.starter(ctx, in.SessionRef, from)
	if err != nil {
		return session, called, err
	}
	triggered, err := a.triggeredBy(ctx, in.SessionRef, from)
	if err != nil {
		return session, called, err
	}
	if called, err = a.calleeOf(ctx, in); err != nil {
		return session, called, err
	}
	tool := called.tool
	session = jig.Session{
		Tenant: in.Tenant, ID: in.SessionID, Principal: who, Source: source, Status: jig.StatusWorking, TriggeredBy: triggered,
		Agent: jig.Agent{Name: jig.CallAgent, Tools: []string{tool.Name}, Version: tool.Version, Registered: called.registered},
	}
	parent, by, err := a.place(ctx, in.Call.Parent, in.Call.ParentCall, in.Began, &session)
	if err == nil {
		session.RequestDigest, err = a.asRequested(ctx, in, digest)
	}
	if err != nil {
		return session, called, err
	}
	session.Catalog = map[string]string{tool.Name: tool.Version}
	if runsSteps(tool) {
		session.Agent.Tools = a.stepTools(parent, by, tool)
		if session.Catalog, err = a.pin(ctx, session); err != nil {
			return session, called, err
		}
		session.Catalog[tool.Name] = tool.Version
	}
	if err := a.permitted(ctx, tool, session); err != nil {
		return session, called, err
	}
	if session.Input, err = a.callInput(ctx, in, tool); err != nil {
		return session, called, err
	}
	return session, called, nil
}

// asRequested returns the digest of a call that no session started, under which its session is found again. For a call that a session started,
// it returns an error unless the row of that session's call names this request.
func (a *Activities) asRequested(ctx context.Context, in OpenCallInput, digest string) (string, error) {
	if in.Call.Parent == "" {
		return digest, nil
	}
	named, err := a.Store.Request(ctx, in.Tenant, in.Call.Parent, in.Call.ParentCall)
	if err != nil || named == digest {
		return "", err
	}
	return "", jig.Errorf(jig.CodeNotPermitted, "call %s makes another call than the request describes", in.Call.ParentCall).WithField("parent_call").
		WithHint("leave out the parent")
}

// stepTools returns the whitelist of a session whose call makes calls. These may use every tool that the principal may use. An extraction
// that a call starts for its caller may use only what the caller may use, as if it had waited for the extraction.
func (a *Activities) stepTools(parent jig.Session, by jig.Call, tool jig.Tool) []string {
	if starter, ok := a.Catalog.Tool(by.Tool); ok && starter.Implementation == startsExtraction {
		return append(slices.Clone(parent.Agent.Tools), tool.Name)
	}
	return []string{"*"}
}

// permitted returns an error if a session may not use a tool, by the permissions that the tenant gives its principal now.
func (a *Activities) permitted(ctx context.Context, tool jig.Tool, session jig.Session) error {
	if err := a.acting(ctx, &session); err != nil {
		return err
	}
	if refused := allowed(tool, session); refused != nil {
		return refused
	}
	return nil
}

// callee is the tool that a single call calls.
type callee struct {
	tool jig.Tool
	// registered reports that the tool is registered in exactly this form.
	registered bool
	// body is the execution spec that came with the request. It is kept under its version, so that it does not change while the call runs;
	// that does not register it.
	body []byte
}

// calleeOf finds the tool to call.
func (a *Activities) calleeOf(ctx context.Context, in OpenCallInput) (callee, error) {
	body := []byte(in.Call.Document)
	var err error
	if in.Call.DocumentArtifact != "" {
		if body, err = a.readWhole(ctx, in.Tenant, in.Call.DocumentArtifact); err != nil {
			return callee{}, err
		}
	}
	if len(body) == 0 {
		tool, err := a.named(ctx, in.Tenant, in.Call.Tool)
		return callee{tool: tool, registered: err == nil}, err
	}
	loaded, err := a.Composer.Load(in.Call.DocumentName, body)
	if err != nil {
		return callee{}, err
	}
	tool := loaded.Contract
	if loaded.Run != nil { // only registration checks what it does
		return callee{}, jig.Errorf(jig.CodeNotPermitted, "the thin tool %s must be registered before it is called", tool.Name).WithField("document").
			WithHint("register it with `jig catalog add FILE` or `jig bundle install FOLDER`, then call it by its name")
	}
	if _, taken, err := a.goTool(ctx, in.Tenant, tool.Name); err != nil {
		return callee{}, err
	} else if taken {
		return callee{}, jig.Errorf(jig.CodeConflict, "a tool %s already exists", tool.Name).WithField("name").
			WithHint("rename the document")
	}
	current, err := a.Store.Document(ctx, in.Tenant, DocumentSpec, tool.Name)
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return callee{}, err
	}
	return callee{tool: tool, registered: err == nil && bytes.Equal(current, body), body: body}, nil
}

// named finds a Go tool or a registered execution spec by name.
func (a *Activities) named(ctx context.Context, tenant, name string) (jig.Tool, error) {
	if tool, ok, err := a.goTool(ctx, tenant, name); ok || err != nil {
		return tool, err
	}
	specs, err := a.specs(ctx, tenant)
	if err != nil {
		return jig.Tool{}, err
	}
	for _, tool := range specs {
		if tool.Name == name {
			return tool, nil
		}
	}
	return jig.Tool{}, a.noTool(ctx, tenant, name)
}

// callInput assembles the input of a single call and checks it before the session is created.
func (a *Activities) callInput(ctx context.Context, in OpenCallInput, tool jig.Tool) (json.RawMessage, error) {
	input := in.Call.Input
	if in.Call.InputArtifact != "" {
		whole, err := a.readWhole(ctx, in.Tenant, in.Call.InputArtifact)
		if err != nil {
			return nil, err
		}
		input = whole
	}
	input, err := a.checkedInput(nil, input, nil)
	if err != nil {
		return nil, err
	}
	if len(in.Call.Pairs) > 0 {
		converted, err := a.Schemas.FromPairs(tool.InputSchema, in.Call.Pairs)
		if err != nil {
			return nil, err
		}
		if input, err = overlay(input, converted); err != nil {
			return nil, err
		}
	}
	_, err = a.completed(tool, input)
	return input, err
}

// CallSettled says how the session of a single call ended. It includes the state of the call.
type CallSettled struct {
	Settled
	Call CallState `json:"call"`
}

// SettleCall ends the session of a single call with the outcome of the call. It is idempotent: a second run returns the same result as the
// first.
func (a *Activities) SettleCall(ctx context.Context, in PassRef) (CallSettled, error) {
	call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, jig.CallID(in.Pass, 1))
	if err != nil {
		return CallSettled{}, temporalError(err)
	}
	end := ledger.End{Tenant: in.Tenant, SessionID: in.SessionID, Pass: in.Pass, Status: jig.StatusCompleted, Reason: jig.ReasonAnswered}
	if call.Result != nil {
		end.Answer = call.Result.Summary
	}
	switch {
	case call.Status == jig.CallSucceeded && a.isExtraction(call.Tool) && isPartial(call.Result):
		end.Reason = jig.ReasonPartial
	case call.Status != jig.CallSucceeded:
		end.Status, end.Reason = jig.StatusFailed, string(call.Status)
		if call.Result != nil {
			end.Error = call.Result.Error
		}
	}
	if end, err = a.Store.EndPass(ctx, end); err != nil {
		return CallSettled{}, temporalError(err)
	}
	a.Tracing.SessionEnded(ctx, end)
	return CallSettled{Settled: settled(end), Call: callState(call)}, nil
}

// CallState holds the status of a call and, once the call has finished, its result as the call's row stores it. If the result is large,
// it is a preview whose Artifacts include the id of the complete result.
type CallState struct {
	Status jig.CallStatus  `json:"status"`
	Result *jig.ToolResult `json:"result,omitempty"`
}

// CallState reads the state of a call.
func (a *Activities) CallState(ctx context.Context, in RunInput) (CallState, error) {
	call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return CallState{}, temporalError(err)
	}
	return callState(call), nil
}

func callState(call jig.Call) CallState {
	if call.Result != nil && call.ResultArtifact != "" {
		call.Result.Artifacts = append(call.Result.Artifacts, call.ResultArtifact)
	}
	return CallState{Status: call.Status, Result: call.Result}
}
