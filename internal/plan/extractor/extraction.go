// Package extractor connects the interpreter of extractions with stored entities. It decides how an extraction begins, which sources its
// values may be based on, and what its moves write. It must not know how entities are stored or what executes the moves.
package extractor

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// Extractor fills entities, within the permissions of the principals. It is safe for concurrent use.
type Extractor struct {
	entities guarded.Entities
	engine   *extraction.Engine
}

// New returns an Extractor. check validates a value against the JSON Schema of a task's output.
func New(entities guarded.Entities, check func(schema json.RawMessage, value []byte) error) Extractor {
	return Extractor{entities: entities, engine: extraction.NewEngine(spec.LoadEntityType, extraction.Checks{
		Field: checkField, Schema: func(schema, value json.RawMessage) error { return check(schema, value) },
	})}
}

// Begin checks a call of a tool that fills entities and returns the extraction to run.
func (x Extractor) Begin(ctx context.Context, tool string, inv jig.Invocation, input json.RawMessage) (plan.Extraction, error) {
	var begun guarded.Extraction
	var err error
	switch tool {
	case toolname.EntitiesExtractAll:
		return plan.Extraction{}, x.entities.CheckExtractAll(ctx, inv, input)
	case toolname.TasksRun:
		begun, err = x.entities.TaskExtraction(ctx, inv, input)
	default:
		begun, err = x.entities.Extraction(ctx, inv, input)
	}
	if err != nil {
		return plan.Extraction{}, err
	}
	raw, err := extraction.InputOf(begun.Type, extraction.Begin{
		Entity: begun.Entity, Fields: begun.Fields, Mode: extraction.Mode(begun.Mode), Task: begun.Task, Input: begun.Input, Tasks: begun.Tasks,
	})
	return plan.Extraction{Entity: begun.Entity.ID, Type: begun.Type.Name, Version: begun.Type.Version, Input: raw}, err
}

// Sources returns the sources that the values of an entity may be based on.
func (x Extractor) Sources(ctx context.Context, inv jig.Invocation, body []byte, id string) (entity.Sources, error) {
	t, err := x.engine.Type(body)
	if err != nil {
		return entity.Sources{}, err
	}
	return x.entities.Sources(ctx, inv, t, id)
}

// Advance computes the next move. The values of fields of type relation also become relations of the entity.
func (x Extractor) Advance(
	ctx context.Context, version string, body []byte, state json.RawMessage, facts plan.ExtractionFacts, at plan.Situation,
) (plan.Move, error) {
	if version == "" {
		return extraction.AdvanceBatch(ctx, state, facts, at)
	}
	move, err := x.engine.Advance(ctx, version, body, state, facts, at)
	if err != nil || move.Entity == nil || len(move.Entity.Fields) == 0 {
		return move, err
	}
	t, err := x.engine.Type(body)
	if err != nil {
		return move, err
	}
	move.Entity.Relations = guarded.Links(t, move.Entity.Fields)
	return move, nil
}

// checkField returns an error for a value that does not fit its field or is too large for any entity.
func checkField(f entity.Field, value json.RawMessage) error {
	if len(value) > entity.MaxBytes {
		return jig.Errorf(jig.CodeInvalidInput, "it takes %d KiB; an entity can store at most %d", len(value)>>10, entity.MaxBytes>>10).
			WithHint("store long texts as texts of the entity")
	}
	return spec.CheckField(f, value)
}
