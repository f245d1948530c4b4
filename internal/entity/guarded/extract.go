package guarded

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/internal/toolname"
)

const (
	// connectedDepth is the maximum distance of entities that claims may cite. maxQuotable bounds the texts that are loaded for quotes, in
	// bytes.
	connectedDepth = 2
	maxQuotable    = 4 << 20
	// maxBatchInput bounds the input that the tasks of every entity read, in bytes: it is stored once for each entity.
	maxBatchInput = 16 << 10
)

// TaskInput is the input of tasks.run and tasks.start.
type TaskInput struct {
	Entity string          `json:"entity"           jsonschema:"the entity's id" minLength:"1"`
	Task   string          `json:"task"             jsonschema:"the id of a task of the entity's type" minLength:"1"`
	Values json.RawMessage `json:"values,omitempty" jsonschema:"what the tasks read as input"`
}

// Extraction returns the input for the extraction that a call of entities.extract starts. The principal must be permitted to read and write
// entities of the type.
func (g Entities) Extraction(ctx context.Context, inv jig.Invocation, input json.RawMessage) (entity.Extraction, error) {
	var in entity.ExtractInput
	if err := json.Unmarshal(input, &in); err != nil {
		return entity.Extraction{}, jig.Errorf(jig.CodeInvalidInput, "the input cannot be read: %w", err)
	}
	x, err := g.toFill(ctx, inv, "/id", in.ID)
	if err != nil {
		return entity.Extraction{}, err
	}
	if err := extractable(x.Type, "/id", in.Fields); err != nil {
		return entity.Extraction{}, err
	}
	x.Fields, x.Mode, x.Input = in.Fields, string(in.Mode), in.Input
	return x, nil
}

// TaskExtraction returns the input for the extraction that a call of tasks.run starts. The principal must be permitted to read and write
// entities of the type, and the type must have the task.
func (g Entities) TaskExtraction(ctx context.Context, inv jig.Invocation, input json.RawMessage) (entity.Extraction, error) {
	var in TaskInput
	if err := json.Unmarshal(input, &in); err != nil {
		return entity.Extraction{}, jig.Errorf(jig.CodeInvalidInput, "the input cannot be read: %w", err)
	}
	x, err := g.toFill(ctx, inv, "/entity", in.Entity)
	if err != nil {
		return entity.Extraction{}, err
	}
	ids := make([]string, len(x.Type.Tasks))
	for i, task := range x.Type.Tasks {
		ids[i] = task.ID
	}
	if !slices.Contains(ids, in.Task) {
		return entity.Extraction{}, jig.Errorf(jig.CodeInvalidInput, "the type %s has no task %q", jig.Known(x.Type.Name), jig.Cut(in.Task, 100)).WithField("/task").
			WithHint(cmp.Or(suggest.OrKnown(in.Task, ids), "give the id of an entity whose type has this task"))
	}
	x.Task, x.Input = in.Task, in.Values
	return x, nil
}

// toFill returns an entity whose fields the principal may fill, with its type and the outcomes of earlier tasks.
func (g Entities) toFill(ctx context.Context, inv jig.Invocation, at, id string) (entity.Extraction, error) {
	types, err := g.ReadableTypes(ctx, inv)
	if err != nil {
		return entity.Extraction{}, err
	}
	e, tasks, err := g.Store.EntityProgress(ctx, inv.Tenant, id)
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return entity.Extraction{}, err
	}
	t, readable := types[e.Type]
	if err != nil || !readable {
		return entity.Extraction{}, NotFound(at, id)
	}
	return entity.Extraction{Entity: e, Type: t, Tasks: tasks}, entity.Permit(inv.Principal, t.Name, entity.ActionWrite)
}

// CheckExtractAll checks whether the principal may read and write entities of the type that a call of entities.extractAll names, and whether
// there is anything to extract. The filter itself is checked when the first page is read.
func (g Entities) CheckExtractAll(ctx context.Context, inv jig.Invocation, input json.RawMessage) error {
	var in entity.ExtractAllInput
	if err := json.Unmarshal(input, &in); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "the input cannot be read: %w", err)
	}
	t, err := g.Type(ctx, inv, "/type", in.Type, entity.ActionWrite)
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
		return jig.Errorf(jig.CodeInvalidInput, "the type %s has no tasks: there is nothing to extract", jig.Known(t.Name)).WithField(at)
	}
	for i, name := range fields {
		place := fmt.Sprintf("/fields/%d", i)
		f, err := FieldAt(t, place, name)
		if err != nil {
			return err
		}
		if f.Task == "" {
			return jig.Errorf(jig.CodeInvalidInput, "no task fills the field %q", name).WithField(place).
				WithHint("leave it out, or set it with " + toolname.EntitiesUpdate)
		}
	}
	return nil
}

// Sources returns the texts of an entity, and the entities connected with it that the principal may read, with their texts. It loads the
// bodies of texts only if the type has a task that checks claims.
func (g Entities) Sources(ctx context.Context, inv jig.Invocation, t entity.Type, id string) (entity.Sources, error) {
	types, err := g.ReadableTypes(ctx, inv)
	if err != nil {
		return entity.Sources{}, err
	}
	ids, err := g.Store.Connected(ctx, inv.Tenant, id, connectedDepth, "")
	if err != nil {
		return entity.Sources{}, err
	}
	bytes := 0
	if slices.ContainsFunc(t.Tasks, func(t entity.Task) bool { return t.Kind == entity.TaskCitations }) {
		bytes = maxQuotable
	}
	all, err := g.Store.Sources(ctx, inv.Tenant, append([]string{id}, ids...), bytes)
	if err != nil {
		return entity.Sources{}, err
	}
	return all.Visible(types, id), nil
}
