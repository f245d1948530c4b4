package compose

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
)

// Facts is what Advance may read. Paths are those of steps within the composition ("page", "sections[4]",
// "sections[4]/inner", "page~2" for a second attempt, "page.undo").
type Facts interface {
	// Calls returns the calls with these paths that exist, whatever their status.
	Calls(ctx context.Context, paths []string) (map[string]Call, error)
	// Values returns the values that were kept under these paths.
	Values(ctx context.Context, paths []string) (map[string]json.RawMessage, error)
}

// Call is where a call stands: final with its result, or open without.
type Call struct {
	Status jig.CallStatus
	Result *jig.ToolResult
}

// Situation is what a run of a composition is in, beside its state.
type Situation struct {
	// Input is the composition's input, Session {id, agent, task, input}, Principal {id, groups, permissions} for expressions.
	Input     json.RawMessage
	Tenant    string
	Session   json.RawMessage
	Principal json.RawMessage
	// Now is read as now, and ends waits.
	Now time.Time
	// Events that the session was sent since the run began and that no wait has consumed, oldest first.
	Events []Event
	// Canceled is set once the run is cancelled: what is under way ends, and what was done is undone.
	Canceled bool
}

// Event is a signal `event` that the session was sent.
type Event struct {
	// ID counts up in a session.
	ID   int64           `json:"id"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Move is what comes of Advance: the caller stores all of it in one transaction, or none.
type Move struct {
	// State goes into the next Advance; it is opaque and at most a few KiB for each step under way.
	State json.RawMessage
	// Calls are to be admitted, in this order, each once, under its path.
	Calls []Ask
	// Open are the paths of calls that were asked for earlier and are not final.
	Open []string
	// Cancel are paths of open calls that are of no use any more: their step timed out, or the run was cancelled.
	Cancel []string
	// Values are to be kept under their paths, for Facts.Values.
	Values map[string]json.RawMessage
	// Events are to be written to the session's log: custom.<name>, and tool.undone with CallID set to the path of the call
	// that was undone.
	Events []jig.Event
	// Consumed are the ids of events that a wait took.
	Consumed []int64
	// Wake is when to look again although nothing has happened; zero when there is no need.
	Wake time.Time
	// Steps are the paths of the steps under way, for people, at most 20.
	Steps []string
	// Done says that the run is over with Result.
	Done   bool
	Result jig.ToolResult
}

// Ask is a call to be admitted.
type Ask struct {
	Path string
	// Tool and Input of the call. A prompt is a call of ToolPrompt, ToolSkill or ToolAgent, a composition one of its name, a
	// task one of ToolTask.
	Tool  string
	Input json.RawMessage
	// Undo says that the call takes another one's effect back.
	Undo bool
}

// The tools that steps other than `tool` call.
const (
	// ToolPrompt takes {model, system?, prompt, schema?, max_tokens?} and gives {text} or, with a schema, {output}.
	ToolPrompt = "prompt.direct"
	// ToolSkill takes {skill, model, system?, prompt, schema?, max_tokens?} and gives the same.
	ToolSkill = "prompt.skill"
	// ToolAgent takes {agent, task?, input?, model?} and gives {session_id, answer}; with a schema the answer is parsed.
	ToolAgent = "agent.run"
	// ToolTask takes {task, entity?, values?, wait}.
	ToolTask = "task.run"
)
