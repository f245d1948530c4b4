package tasks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

type undoIn struct {
	SessionID string   `json:"session_id"      jsonschema:"the session, which must have ended" minLength:"1" maxLength:"192"`
	Calls     []string `json:"calls,omitempty" jsonschema:"undo only these calls, e.g. 2.1, with the calls that were made inside them" maxItems:"100"`
}

// undoTimeout bounds the undoing of a session, including the time it waits for people.
const undoTimeout = 30 * 24 * time.Hour

// undoTool returns the contract of sessions.undo. A workflow answers its calls, as for tasks.run.
func undoTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: toolname.SessionsUndo,
		Description: "Undoes what a session has changed: calls the tool that each of its tools declares as its undo, one call after another, the newest first. " +
			"Each of these calls follows the rules and needs the approvals of any call. Returns which calls are undone, and which are not and why; it fails unless " +
			"all are. No call is ever undone twice.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: undoTimeout,
		Implementation: "undo", Tags: []string{"operator"}, Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}},
		OutputSchema: json.RawMessage(`{"type":"object","required":["undone","not_undone","undone_before"],"properties":{
			"undone":{"type":"array","items":{"type":"object"},"description":"{session_id, call, tool, by}: by is the call that undid it"},
			"not_undone":{"type":"array","items":{"type":"object"},"description":"{session_id, call, tool, error}"},
			"undone_before":{"type":"array","items":{"type":"object"},"description":"{session_id, call, tool, by}, by a call of an earlier session"}}}`),
	}, func(context.Context, jig.Invocation, undoIn) (map[string]any, error) {
		return nil, answeredByWorkflow(toolname.SessionsUndo)
	})
}
