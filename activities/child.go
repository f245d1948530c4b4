package activities

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// agentInput is the input of a tool that runs an agent in a session of its own.
type agentInput struct {
	Agent string          `json:"agent"`
	Task  string          `json:"task,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Model string          `json:"model,omitempty"`
}

// agentOutput is the output of a tool that runs an agent.
type agentOutput struct {
	SessionID string `json:"session_id"`
	Answer    string `json:"answer"`
}

// Child is a session to start for a call.
type Child struct {
	SessionID string                `json:"session_id,omitempty"`
	Start     protocol.StartSession `json:"start,omitzero"`
	// Ended is set if no session has to be started: the call has its result, waits for a person again, or is held back.
	Ended *Ran `json:"ended,omitempty"`
}

// answeredBy returns the id of the session that answers a call. It is empty if no session answers the call, or if the session would
// exceed the maximum depth.
func answeredBy(session jig.Session, call jig.Call, tool jig.Tool) string {
	if childOf(tool) != ChildAgent || session.Depth >= protocol.MaxDepth {
		return ""
	}
	return jig.ChildSessionID(call.SessionID, call.ID)
}

// mayStart returns an error if a call starts an agent that the caller's document does not list. named reports whether the document of a
// composition or an entity type names the agent, in which case the caller need not list it.
func mayStart(session jig.Session, tool jig.Tool, call jig.Call, named bool) *jig.Error {
	if named || childOf(tool) != ChildAgent {
		return nil
	}
	if session.Agent.Name == jig.CallAgent && call.Frame == "" {
		return nil // a person or a program starts it, and could do so without the call
	}
	var input agentInput
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return jig.Errorf(jig.CodeInternal, "reading the input of call %s: %w", call.ID, err)
	}
	if slices.Contains(session.Agent.Agents, input.Agent) {
		return nil
	}
	e := jig.Errorf(jig.CodeNotPermitted, "%s may not start agent %s", caller(session), input.Agent).WithField("/agent")
	if session.Agent.Name == jig.CallAgent {
		return e.WithHint("name the agent in the composition itself; an expression must not choose it")
	}
	return e.WithHint("add it to `agents` in the document of agent " + strings.TrimPrefix(session.Agent.Name, jig.DraftPrefix))
}

// startsSame reports whether an edited call starts the same agent as before.
func startsSame(call, edited jig.Call) bool {
	var before, after agentInput
	return json.Unmarshal(call.Input, &before) == nil && json.Unmarshal(edited.Input, &after) == nil && before.Agent == after.Agent
}

func caller(session jig.Session) string {
	if session.Agent.Name == jig.CallAgent {
		return "this composition"
	}
	return "agent " + session.Agent.Name
}

// BeginChild reserves a call of an agent and returns the session that answers it. It is idempotent.
func (a *Activities) BeginChild(ctx context.Context, in RunInput) (Child, error) {
	child, err := a.beginChild(ctx, in)
	return child, temporalError(err)
}

func (a *Activities) beginChild(ctx context.Context, in RunInput) (Child, error) {
	session, call, err := a.callOf(ctx, in.SessionRef, in.Call)
	if err != nil {
		return Child{}, err
	}
	tool, ok := a.Catalog.Tool(call.Tool)
	if !ok {
		return Child{}, jig.Errorf(jig.CodeUnavailable, "this worker has no tool %s", call.Tool)
	}
	reservation, ended, err := a.claimWhole(ctx, session, call, tool)
	if ended != nil || err != nil {
		return Child{Ended: ended}, err
	}
	var input agentInput
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return Child{}, jig.Errorf(jig.CodeInternal, "reading the input of call %s: %w", in.Call, err)
	}
	if reservation.Call.Child == "" {
		tooDeep := jig.Errorf(jig.CodeBudgetExhausted, "agents may start agents at most %d levels deep", protocol.MaxDepth).WithField("agent")
		tooDeep.NotExecuted = true
		ran, err := a.completeChild(ctx, call, reservation.Fence, jig.Failure(tooDeep), approval.Reads{})
		return Child{Ended: &ran}, err
	}
	return Child{
		SessionID: reservation.Call.Child,
		Start: protocol.StartSession{
			Agent: input.Agent, Task: input.Task, Input: input.Input, Model: input.Model, ParentID: session.ID, ParentCall: call.ID,
		},
	}, nil
}

// EndChildInput names the call and, if its session's workflow failed, the error.
type EndChildInput struct {
	RunInput
	Error *jig.Error `json:"error,omitempty"`
}

// EndChild finalizes a call of an agent with the outcome of its session. It is idempotent.
func (a *Activities) EndChild(ctx context.Context, in EndChildInput) (Ran, error) {
	call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return Ran{}, temporalError(err)
	}
	if call.Status.Final() {
		return result(call), nil
	}
	session, err := a.Store.Session(ctx, in.Tenant, call.Child)
	if err != nil && (jig.CodeOf(err) != jig.CodeNotFound || in.Error == nil) {
		return Ran{}, temporalError(err)
	}
	outcome, err := childResult(session, call.Child, in.Error)
	if err != nil {
		return Ran{}, temporalError(err)
	}
	reads := approval.Reads{Private: session.ReadPrivate, Untrusted: session.ReadUntrusted}
	ran, err := a.completeChild(ctx, call, call.Fence, outcome, reads)
	return ran, temporalError(err)
}

func childResult(session jig.Session, id string, failed *jig.Error) (jig.ToolResult, error) {
	if session.Status == jig.StatusCompleted {
		data, err := json.Marshal(agentOutput{SessionID: id, Answer: session.Answer})
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

func (a *Activities) completeChild(ctx context.Context, call jig.Call, fence int, outcome jig.ToolResult, reads approval.Reads) (Ran, error) {
	completion := ledger.Completion{
		Tenant: call.Tenant, SessionID: call.SessionID, CallID: call.ID, Fence: fence, Status: endOf(outcome), Result: outcome,
		Reads: reads,
	}
	if err := cutDown(&completion); err != nil {
		return Ran{}, err
	}
	stored, err := a.Store.Complete(ctx, completion)
	return result(stored.Call), err
}
