package entities

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

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
	}, func(context.Context, jig.Invocation, guarded.ExtractAllInput) (map[string]any, error) {
		e := jig.Errorf(jig.CodeInternal, "%s is answered by a workflow of its own, and was called as a function", ExtractAllTool).
			WithHint("run it through a workflow; this worker's program is at fault, not the input")
		e.NotExecuted = true
		return nil, e
	}, tools.AdjustInput(func(s *jsonschema.Schema) {
		s.Properties["input"].Type = "object"
		filterInput(s)
	}))
}
