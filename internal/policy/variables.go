package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// variables returns the variables that rules read, in the form that spec.PolicyShapes describes. If a variable cannot be converted, such as an
// input that is not JSON, the rules that read it fail.
func variables(tool jig.Tool, call jig.Call, session jig.Session, now time.Time) map[string]any {
	var flow jig.DataFlow // as of the call's admission, so that a later evaluation sees the same
	if call.Flow != nil {
		flow = *call.Flow
	}
	vars := map[string]any{
		"tool": map[string]any{
			"name": tool.Name, "version": tool.Version, "description": tool.Description, "category": tool.Category,
			"permission": string(tool.Permission), "risk": string(tool.Risk), "approval": string(tool.Approval),
			"idempotent": tool.Idempotent, "execution": string(tool.Execution), "tags": list(tool.Tags),
			"reads": reads(tool), "sends": tool.Sends(),
			"required_permission": tool.RequiredPermission, "confirm": tool.Confirm, "undo": tool.Undo, "implementation": tool.Implementation,
		},
		"input": object(call.Input),
		"call": map[string]any{
			"id": call.ID, "tool": call.Tool, "input": object(call.Input), "pass": call.Pass,
			"untrusted_arguments": list(flow.UntrustedArguments), "unknown_destinations": list(flow.UnknownDestinations),
			"computed_arguments": list(flow.ComputedArguments),
		},
		"agent": map[string]any{"name": session.Agent.Name, "registered": session.Agent.Registered, "version": session.Agent.Version},
		"principal": map[string]any{
			"id": session.Principal.ID, "groups": list(session.Principal.Groups), "permissions": list(session.Principal.Permissions),
			"proof": string(cmp.Or(session.Principal.Proof, jig.ProofClaimed)),
		},
		"tenant": session.Tenant,
		"session": map[string]any{
			"id": session.ID, "task": session.Task, "input": object(session.Input), "pass": session.Pass, "writes": session.Writes,
			"root_agent": cmp.Or(session.RootAgent, session.Agent.Name), "parent_agent": session.ParentAgent, "depth": session.Depth,
			"source": string(cmp.Or(session.Source, jig.SourceAPI)), "read_private": flow.ReadPrivate, "read_untrusted": flow.ReadUntrusted,
		},
		"now": now.UTC(),
	}
	for name, v := range vars {
		if ready, err := expr.From(v); err == nil { // convert once for all rules
			vars[name] = ready
		}
	}
	return vars
}

// reads returns what a tool reads by its labels.
func reads(tool jig.Tool) []string {
	kinds := []string{}
	for _, kind := range []string{jig.ReadsPrivate, jig.ReadsUntrusted} {
		if tool.Reads(kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// list returns texts, or an empty list if texts is nil.
func list(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

// object returns raw, or an empty object if raw is blank.
func object(raw []byte) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage(`{}`)
	}
	return raw
}
