package activities

import (
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

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
