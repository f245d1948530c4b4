package entities

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// ExtractTool is the name of the tool that runs the tasks of an entity's type to fill its fields.
const ExtractTool = toolname.EntitiesExtract

const (
	// ExtractTimeout bounds an extraction, including the time it waits for people.
	ExtractTimeout = 24 * time.Hour
	// connectedDepth is the maximum distance of entities that claims may cite. maxQuotable bounds the texts that are loaded for quotes, in
	// bytes.
	connectedDepth = 2
	maxQuotable    = 4 << 20
)

type extractIn struct {
	ID     string          `json:"id"               jsonschema:"the entity's id" minLength:"1"`
	Fields []string        `json:"fields,omitempty" jsonschema:"the only fields to fill, with what they depend on; all when it is left out"`
	Input  json.RawMessage `json:"input,omitempty" jsonschema:"what the tasks read as input"`
	Mode   string          `json:"mode,omitempty"   jsonschema:"run: every task; retry: those without a value; refresh: those whose sources or inputs changed" enum:"run,retry,refresh" default:"run"`
}

// extractTool returns the contract of entities.extract. A separate workflow answers its calls: the engine recognizes the tool by its
// implementation and never calls the handler.
func extractTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: ExtractTool,
		Description: "Fills the fields of an entity by running the tasks of its type, and returns the values and how each task ended. A failed task " +
			"does not stop the others: call again with mode retry for tasks without a value, or refresh after something changed. It may take " +
			"long, because tasks may wait for people.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: ExtractTimeout,
		Implementation: "extraction", Tags: []string{"entities"},
		OutputSchema: json.RawMessage(`{"type":"object","required":["entity_id","values","provenance","tasks","counts"],"properties":{
			"entity_id":{"type":"string"},
			"values":{"type":"object","description":"by field"},
			"provenance":{"type":"object","description":"by field"},
			"tasks":{"type":"object","description":"how each task ended"},
			"counts":{"type":"object","description":"numbers of tasks"}}}`),
	}, func(context.Context, jig.Invocation, extractIn) (map[string]any, error) {
		e := jig.Errorf(jig.CodeInternal, "%s is answered by a workflow of its own, and was called as a function", ExtractTool).
			WithHint("run it through a workflow; this worker's program is at fault, not the input")
		e.NotExecuted = true
		return nil, e
	}, tools.AdjustInput(func(s *jsonschema.Schema) { s.Properties["input"].Type = "object" }))
}

// Extraction is the input for starting an extraction of an entity.
type Extraction struct {
	Entity entity.Entity
	Type   entity.Type
	Fields []string
	Mode   string
	Input  json.RawMessage
	// Tasks says how tasks ended in earlier extractions, by id.
	Tasks map[string]json.RawMessage
}

// Extraction returns the input for the extraction that a call of ExtractTool starts. The principal must be permitted to read and write
// entities of the type.
func (o Options) Extraction(ctx context.Context, inv jig.Invocation, input json.RawMessage) (Extraction, error) {
	var in extractIn
	if err := json.Unmarshal(input, &in); err != nil {
		return Extraction{}, jig.Errorf(jig.CodeInvalidInput, "the input cannot be read: %w", err)
	}
	types, err := o.readable(ctx, inv)
	if err != nil {
		return Extraction{}, err
	}
	e, tasks, err := o.Store.EntityProgress(ctx, inv.Tenant, in.ID)
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return Extraction{}, err
	}
	t, readable := types[e.Type]
	if err != nil || !readable {
		return Extraction{}, notFound("/id", in.ID)
	}
	if err := entity.Permit(inv.Principal, t.Name, entity.ActionWrite); err != nil {
		return Extraction{}, err
	}
	if err := extractable(t, "/id", in.Fields); err != nil {
		return Extraction{}, err
	}
	return Extraction{Entity: e, Type: t, Fields: in.Fields, Mode: in.Mode, Input: in.Input, Tasks: tasks}, nil
}

// Sources returns the texts of an entity, and the entities connected with it that the principal may read, with their texts. It loads the
// bodies of texts only if the type has a task that checks claims.
func (o Options) Sources(ctx context.Context, inv jig.Invocation, t entity.Type, id string) (entity.Sources, error) {
	types, err := o.readable(ctx, inv)
	if err != nil {
		return entity.Sources{}, err
	}
	ids, err := o.Store.Connected(ctx, inv.Tenant, id, connectedDepth, "")
	if err != nil {
		return entity.Sources{}, err
	}
	bytes := 0
	if slices.ContainsFunc(t.Tasks, func(t entity.Task) bool { return t.Kind == entity.TaskCitations }) {
		bytes = maxQuotable
	}
	all, err := o.Store.Sources(ctx, inv.Tenant, append([]string{id}, ids...), bytes)
	if err != nil {
		return entity.Sources{}, err
	}
	return all.Visible(types, id), nil
}

// Links returns the targets of the relation fields among the values, by the dotted names of those fields.
func Links(t entity.Type, values map[string]json.RawMessage) map[string][]string {
	return linksOf(t, values).ends
}

func linksOf(t entity.Type, values map[string]json.RawMessage) links {
	found := links{ends: map[string][]string{}, target: map[string]string{}}
	for i := range t.Fields {
		if v, ok := values[t.Fields[i].Name]; ok {
			found.collect(&t.Fields[i], t.Fields[i].Name, v)
		}
	}
	return found
}
