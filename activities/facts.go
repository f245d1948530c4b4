package activities

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
)

// maxFacts limits the size, in bytes, of the results that one move reads.
const maxFacts = 16 << 20

// facts gives a composition's interpreter access to the calls and values of the composition.
type facts struct {
	store Store
	ref   protocol.SessionRef
	root  string
	read  int64
	// private and untrusted say what the calls have read whose results were used.
	private, untrusted bool
	// brief reports whether only the summary of a tool's large results matters. If it is nil, all results are read completely.
	brief func(tool string) bool
	// engine determines which calls consist of other calls.
	engine *Activities
	// sources reads the sources that Sources returns. It is nil for a composition that fills no entity.
	sources func(ctx context.Context) (entity.Sources, error)
}

// Calls returns the calls with these paths, with their complete results.
func (f *facts) Calls(ctx context.Context, paths []string) (map[string]plan.StepCall, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	ids := make([]string, len(paths))
	for i, path := range paths {
		ids[i] = f.root + "/" + path
	}
	_, calls, err := f.store.CallsOf(ctx, f.ref.Tenant, f.ref.SessionID, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string]plan.StepCall, len(calls))
	for _, call := range calls {
		if call.Result != nil {
			f.private, f.untrusted = f.private || call.ReadsPrivate, f.untrusted || call.ReadsUntrusted
		}
		if call.ResultArtifact != "" && (f.brief == nil || !f.brief(call.Tool)) {
			whole, err := readArtifact(ctx, f.store, f.ref.Tenant, call.ResultArtifact, maxFacts-f.read)
			if err != nil {
				return nil, err
			}
			f.read += int64(len(whole))
			short := call.Result
			call.Result = &jig.ToolResult{}
			if err := json.Unmarshal(whole, call.Result); err != nil {
				return nil, jig.Errorf(jig.CodeInternal, "reading the result of call %s: %w", call.ID, err)
			}
			if call.Result.Error != nil && short != nil && short.Error != nil { // NotExecuted is not part of the JSON
				call.Result.Error.NotExecuted = short.Error.NotExecuted
			}
		}
		if call.Status.Final() && call.Fence > 0 && f.brief == nil { // extractions of many entities never repeat a call
			if err := f.markWrites(ctx, &call); err != nil {
				return nil, err
			}
		}
		found[strings.TrimPrefix(call.ID, f.root+"/")] = plan.StepCall{
			Status: call.Status, Result: call.Result, Tool: call.Tool, Writes: call.Write, Idempotent: call.Idempotent,
		}
	}
	return found, nil
}

// markWrites marks a call that consists of other calls as a non-idempotent write if any write has begun inside it. Repeating the call would
// write again, under other keys.
func (f *facts) markWrites(ctx context.Context, call *jig.Call) error {
	whole, err := f.engine.whole(ctx, *call)
	if err != nil || !whole {
		return err
	}
	wrote, err := f.engine.wrote(ctx, *call)
	if wrote {
		call.Write, call.Idempotent = true, false
	}
	return err
}

// Values returns the values that are stored under these paths.
func (f *facts) Values(ctx context.Context, paths []string) (map[string]json.RawMessage, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	return f.store.FrameValues(ctx, f.ref.Tenant, f.ref.SessionID, f.root, paths)
}

// Sources returns the sources that an entity's values may be based on.
func (f *facts) Sources(ctx context.Context) (entity.Sources, error) {
	if f.sources == nil {
		return entity.Sources{}, nil
	}
	return f.sources(ctx)
}

// situation returns what a composition's expressions can read besides the results of its calls.
func situation(session jig.Session, call jig.Call) (plan.Situation, error) {
	about, err := json.Marshal(map[string]any{
		"id": session.ID, "agent": session.Agent.Name, "task": session.Task, "input": orEmpty(session.Input),
	})
	if err != nil {
		return plan.Situation{}, jig.Errorf(jig.CodeInternal, "encoding the session: %w", err)
	}
	who, err := json.Marshal(map[string]any{
		"id": session.Principal.ID, "groups": orNone(session.Principal.Groups), "permissions": orNone(session.Principal.Permissions),
	})
	if err != nil {
		return plan.Situation{}, jig.Errorf(jig.CodeInternal, "encoding the principal: %w", err)
	}
	return plan.Situation{
		Input: json.RawMessage(call.Input), Tenant: session.Tenant, Session: about, Principal: who, Call: call.SessionID + "/" + call.ID,
	}, nil
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`{}`)
	}
	return raw
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

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
