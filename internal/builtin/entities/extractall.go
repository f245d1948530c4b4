package entities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/tools"
)

// ExtractAllTool is the name of the tool that runs the tasks of a type for many entities.
const ExtractAllTool = "entities.extractAll"

// maxBatchInput bounds the input that the tasks of every entity read, in bytes: it is stored once for each entity.
const maxBatchInput = 16 << 10

type extractAllIn struct {
	Type        string                `json:"type"                   jsonschema:"the entity type's name" minLength:"1"`
	Where       []entity.FilterClause `json:"where,omitempty"        jsonschema:"which of them, as for entities.filter; all when it is left out" maxItems:"50"`
	Match       entity.FilterMatch    `json:"match,omitempty"        jsonschema:"whether all of where must hold, or any" enum:"all,any" default:"all"`
	Workspace   string                `json:"workspace,omitempty"    jsonschema:"only entities of this workspace"`
	Mode        string                `json:"mode,omitempty"         jsonschema:"as for entities.extract" enum:"run,retry,refresh" default:"run"`
	Fields      []string              `json:"fields,omitempty"       jsonschema:"the only fields to fill, with what they depend on; all when it is left out"`
	Input       json.RawMessage       `json:"input,omitempty"        jsonschema:"what the tasks of every entity read as input, at most 16 KiB"`
	MaxParallel int                   `json:"max_parallel,omitempty" jsonschema:"how many entities are filled at once" default:"20" minimum:"1" maximum:"100"`
	Limit       int                   `json:"limit,omitempty"        jsonschema:"stop after this many entities; no limit when it is left out" minimum:"1"`
}

// extractAllTool returns the contract of entities.extractAll. Like entities.extract, it is answered by a workflow.
func extractAllTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: ExtractAllTool,
		Description: "Fills the fields of all entities of a type that pass a filter, many at once, by running the tasks of the type. Returns how many " +
			"completed and which did not. An entity that fails does not stop the others. Use entities.extract for a single entity. It calls " +
			"entities.filter and entities.extract, which must also be allowed.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: 7 * ExtractTimeout,
		Implementation: "extraction", Tags: []string{"entities"},
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
	}, func(context.Context, jig.Invocation, extractAllIn) (map[string]any, error) {
		e := jig.Errorf(jig.CodeInternal, "%s is answered by a workflow of its own, and was called as a function", ExtractAllTool).
			WithHint("run it through a workflow; this worker's program is at fault, not the input")
		e.NotExecuted = true
		return nil, e
	}, tools.AdjustInput(func(s *jsonschema.Schema) {
		s.Properties["input"].Type = "object"
		filterInput(s)
	}))
}

// CheckExtractAll checks whether the principal may read and write entities of the type that a call of ExtractAllTool names, and whether
// there is anything to extract. The filter itself is checked when the first page is read.
func (o Options) CheckExtractAll(ctx context.Context, inv jig.Invocation, input json.RawMessage) error {
	var in extractAllIn
	if err := json.Unmarshal(input, &in); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "the input cannot be read: %w", err)
	}
	t, err := o.typeFor(ctx, inv, "/type", in.Type, entity.ActionWrite)
	if err != nil {
		return err
	}
	if len(in.Input) > maxBatchInput {
		return jig.Errorf(jig.CodeInvalidInput, "the input of the tasks takes %d KiB; at most %d are allowed", len(in.Input)>>10, maxBatchInput>>10).
			WithField("/input").WithHint("store large values separately and pass their ids")
	}
	return extractable(t, "/type", in.Fields)
}

// extractable returns an error for a type without tasks, and for fields that no task fills.
func extractable(t entity.Type, at string, fields []string) error {
	if len(t.Tasks) == 0 {
		return jig.Errorf(jig.CodeInvalidInput, "the type %s has no tasks: there is nothing to extract", t.Name).WithField(at)
	}
	for i, name := range fields {
		place := fmt.Sprintf("/fields/%d", i)
		f, err := fieldAt(t, place, name)
		if err != nil {
			return err
		}
		if f.Task == "" {
			return jig.Errorf(jig.CodeInvalidInput, "no task fills the field %q", name).WithField(place).
				WithHint("leave it out, or set it with " + UpdateTool)
		}
	}
	return nil
}
