package entities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// ExtractTool is the name of the tool that runs the tasks of an entity's type to fill its fields.
const ExtractTool = toolname.EntitiesExtract

// ExtractTimeout bounds an extraction, including the time it waits for people.
const ExtractTimeout = 24 * time.Hour

// extractTool returns the contract of entities.extract. A separate workflow answers its calls: the engine recognizes the tool by its
// implementation and never calls the handler.
func extractTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: ExtractTool,
		Description: "Fills the fields of an entity by running the tasks of its type, and returns the values and how each task ended. A failed task " +
			"does not stop the others: call again with mode retry for tasks without a value, or refresh after something changed. It may take " +
			"long, because tasks may wait for people.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: ExtractTimeout,
		Implementation: "extraction", Tags: []string{"entities"}, Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}},
		OutputSchema: json.RawMessage(`{"type":"object","required":["entity_id","values","provenance","tasks","counts"],"properties":{
			"entity_id":{"type":"string"},
			"values":{"type":"object","description":"by field"},
			"provenance":{"type":"object","description":"by field"},
			"tasks":{"type":"object","description":"how each task ended"},
			"counts":{"type":"object","description":"numbers of tasks"}}}`),
	}, func(context.Context, jig.Invocation, entity.ExtractInput) (map[string]any, error) {
		e := jig.Errorf(jig.CodeInternal, "%s is answered by a workflow of its own, and was called as a function", ExtractTool).
			WithHint("run it through a workflow; this worker's program is at fault, not the input")
		e.NotExecuted = true
		return nil, e
	}, tools.AdjustInput(func(s *jsonschema.Schema) { s.Properties["input"].Type = "object" }))
}

// ExtractAllTool is the name of the tool that runs the tasks of a type for many entities.
const ExtractAllTool = toolname.EntitiesExtractAll

// extractAllTool returns the contract of entities.extractAll. Like entities.extract, it is answered by a workflow.
func extractAllTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: ExtractAllTool,
		Description: "Fills the fields of all entities of a type that pass a filter, many at once, by running the tasks of the type. Returns how many " +
			"completed and which did not. An entity that fails does not stop the others. Use entities.extract for a single entity. It calls " +
			"entities.filter and entities.extract, which must also be allowed.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: 7 * ExtractTimeout,
		Implementation: "extraction", Tags: []string{"entities"}, Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}},
		OutputSchema: json.RawMessage(`{"type":"object","required":["type","matched","completed","partial","failed","denied","canceled","failures","pages"],"properties":{
			"type":{"type":"string"},
			"matched":{"type":"integer","description":"entities that the filter found"},
			"completed":{"type":"integer","description":"of these, those with no failed or canceled task"},
			"partial":{"type":"integer","description":"those with a failed or canceled task"},
			"failed":{"type":"integer","description":"those whose extraction gave no result"},
			"denied":{"type":"integer"},
			"canceled":{"type":"integer"},
			"failures":{"type":"array","description":"the first 100 that did not complete: {entity_id, outcome, error}","items":{"type":"object"}},
			"pages":{"type":"integer"}}}`),
	}, func(context.Context, jig.Invocation, entity.ExtractAllInput) (map[string]any, error) {
		e := jig.Errorf(jig.CodeInternal, "%s is answered by a workflow of its own, and was called as a function", ExtractAllTool).
			WithHint("run it through a workflow; this worker's program is at fault, not the input")
		e.NotExecuted = true
		return nil, e
	}, tools.AdjustInput(func(s *jsonschema.Schema) {
		s.Properties["input"].Type = "object"
		filterInput(s)
	}))
}
