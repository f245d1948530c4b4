package activities

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
)

// maxDepth bounds sessions that start sessions.
const maxDepth = 5

// AgentInput is the input of a tool that runs an agent in a session of its own.
type AgentInput struct {
	Agent string          `json:"agent"`
	Task  string          `json:"task,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Model string          `json:"model,omitempty"`
}

// AgentOutput is what such a tool gives back.
type AgentOutput struct {
	SessionID string `json:"session_id"`
	Answer    string `json:"answer"`
}

// Child is a session to be started for a call.
type Child struct {
	SessionID string       `json:"session_id,omitempty"`
	Start     StartSession `json:"start,omitzero"`
	// Ended is set when there is nothing to start: the call has its result, waits for a person again, or is held back.
	Ended *Ran `json:"ended,omitempty"`
}

// BeginChild reserves a call of an agent and says what session answers it. It is idempotent.
func (a *Activities) BeginChild(ctx context.Context, in RunInput) (Child, error) {
	child, err := a.beginChild(ctx, in)
	return child, temporalError(err)
}

func (a *Activities) beginChild(ctx context.Context, in RunInput) (Child, error) {
	session, call, err := a.callOf(ctx, in.SessionRef, in.Call)
	if err != nil {
		return Child{}, err
	}
	tool, ok := a.catalogue.Tool(call.Tool)
	if !ok {
		return Child{}, jig.Errorf(jig.CodeUnavailable, "this worker has no tool %s", call.Tool)
	}
	reservation, ended, err := a.claimWhole(ctx, session, call, tool)
	if ended != nil || err != nil {
		return Child{Ended: ended}, err
	}
	var input AgentInput
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return Child{}, jig.Errorf(jig.CodeInternal, "reading the input of call %s: %w", in.Call, err)
	}
	if session.Depth >= maxDepth {
		ran, err := a.completeChild(ctx, call, reservation.Fence, jig.Failure(
			jig.Errorf(jig.CodeBudgetExhausted, "agents may start agents at most %d levels deep", maxDepth).WithField("agent")))
		return Child{Ended: &ran}, err
	}
	return Child{
		SessionID: jig.ChildSessionID(in.SessionID, in.Call),
		Start: StartSession{
			Agent: input.Agent, Task: input.Task, Input: input.Input, Model: input.Model,
			Principal: session.Principal, ParentID: session.ID, Depth: session.Depth + 1,
		},
	}, nil
}

// EndChildInput names the call and says how its session's workflow failed, when it did.
type EndChildInput struct {
	RunInput
	Error *jig.Error `json:"error,omitempty"`
}

// EndChild finalises a call of an agent with what its session ended with. It is idempotent.
func (a *Activities) EndChild(ctx context.Context, in EndChildInput) (Ran, error) {
	call, err := a.store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return Ran{}, temporalError(err)
	}
	if call.Status.Final() {
		return result(call), nil
	}
	id := jig.ChildSessionID(in.SessionID, in.Call)
	session, err := a.store.Session(ctx, in.Tenant, id)
	if err != nil && (jig.CodeOf(err) != jig.CodeNotFound || in.Error == nil) {
		return Ran{}, temporalError(err)
	}
	outcome, err := childResult(session, id, in.Error)
	if err != nil {
		return Ran{}, temporalError(err)
	}
	ran, err := a.completeChild(ctx, call, call.Fence, outcome)
	return ran, temporalError(err)
}

func childResult(session jig.Session, id string, failed *jig.Error) (jig.ToolResult, error) {
	if session.Status == jig.StatusCompleted {
		data, err := json.Marshal(AgentOutput{SessionID: id, Answer: session.Answer})
		if err != nil {
			return jig.ToolResult{}, jig.Errorf(jig.CodeInternal, "encoding the answer of session %s: %w", id, err)
		}
		return jig.ToolResult{Success: true, Data: data, Summary: jig.Cut(session.Answer, 200), Markdown: session.Answer}, nil
	}
	switch {
	case session.Error != nil:
		failed = session.Error
	case session.Status == jig.StatusCanceled:
		failed = jig.Errorf(jig.CodeCanceled, "session %s was canceled", id)
	case failed == nil:
		failed = jig.Errorf(jig.CodeInternal, "session %s ended as %s", id, session.Status)
	}
	outcome := jig.Failure(failed)
	outcome.Summary = "session " + id + ": " + outcome.Summary
	return outcome, nil
}

func (a *Activities) completeChild(ctx context.Context, call jig.Call, fence int, outcome jig.ToolResult) (Ran, error) {
	completion := jig.Completion{
		Tenant: call.Tenant, SessionID: call.SessionID, CallID: call.ID, Fence: fence, Status: endOf(outcome), Result: outcome,
	}
	if err := cutDown(&completion); err != nil {
		return Ran{}, err
	}
	stored, err := a.store.Complete(ctx, completion)
	return result(stored), err
}
