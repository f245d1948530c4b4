package tasks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// runTimeout bounds the run of a task, including the time it waits for people.
const runTimeout = 24 * time.Hour

// runTool returns the contract of tasks.run. An extraction, which is a workflow, answers its calls: the engine recognizes the tool by its
// implementation and never calls the handler.
func runTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: toolname.TasksRun,
		Description: "Runs one task of an entity and returns its value. Tasks that it depends on run first if they have no value yet. If a field " +
			"belongs to the task, the value is written to it. It may take long, because tasks may wait for people; tasks.start does not wait.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: runTimeout,
		Implementation: "extraction", Tags: []string{"entities"}, Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}},
		OutputSchema: json.RawMessage(`{"type":"object","required":["entity_id","task","status","value"],"properties":{
			"entity_id":{"type":"string"},
			"task":{"type":"string"},
			"status":{"enum":["completed","skipped"]},
			"because":{"type":"string","description":"why it was skipped: condition, or a task that has no value"},
			"fields":{"type":"array","items":{"type":"string"},"description":"the fields that it fills"},
			"value":{"description":"null if it was skipped"},
			"provenance":{"type":"object"}}}`),
	}, func(context.Context, jig.Invocation, guarded.TaskInput) (map[string]any, error) {
		e := jig.Errorf(jig.CodeInternal, "%s is answered by a workflow of its own, and was called as a function", toolname.TasksRun).
			WithHint("run it through a workflow; this worker's program is at fault, not the input")
		e.NotExecuted = true
		return nil, e
	}, tools.AdjustInput(objectValues))
}

func objectValues(s *jsonschema.Schema) { s.Properties["values"].Type = "object" }

// startTool returns tasks.start, which has a task run in a separate session. The engine recognizes it by its implementation and limits that
// session to what the caller may use.
func (o Options) startTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: toolname.TasksStart,
		Description: "Starts one task of an entity in a separate session and returns that session's id at once. Tasks that it depends on run first if " +
			"they have no value yet. Use tasks.getStatus to follow it, or tasks.run to wait for the value.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: 30 * time.Second,
		Implementation: "extraction_start", Tags: []string{"entities"}, Labels: &jig.Labels{},
	}, o.start, tools.AdjustInput(objectValues))
}

// Started is the output of tasks.start.
type Started struct {
	EntityID string `json:"entity_id"`
	Task     string `json:"task"`
	// SessionID is the session that runs the task.
	SessionID string `json:"session_id"`
}

// Summary implements tools.Summarizer.
func (s Started) Summary() string { return "task " + s.Task + " runs in session " + s.SessionID }

// start begins the session of a task. Its id is derived from the call, so that it is started only once.
func (o Options) start(ctx context.Context, inv jig.Invocation, in guarded.TaskInput) (Started, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return Started{}, jig.Errorf(jig.CodeInternal, "encoding the input of the task: %w", err)
	}
	if err := o.CheckTask(ctx, inv, input); err != nil {
		return Started{}, err
	}
	id := jig.ChildSessionID(inv.SessionID, inv.CallID)
	return Started{EntityID: in.Entity, Task: in.Task, SessionID: id}, o.Starter.StartCall(ctx, inv.Tenant, id, Start{
		Tool: toolname.TasksRun, Input: input, Parent: inv.SessionID, ParentCall: inv.CallID,
	})
}
