package wire

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/extract"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/store"
	"github.com/jig-run/jig/tools/entities"
)

func entityOptions(db *store.DB) entities.Options {
	return entities.Options{Store: db, Types: newEntityTypes(db).of, Check: spec.CheckContent}
}

// extractor fills entities: what is read of them is what the tools over entities may read.
type extractor struct {
	entities entities.Options
	engine   *extract.Engine
}

func newExtractor(db *store.DB) extractor {
	check := newSchemas()
	return extractor{
		entities: entityOptions(db),
		engine: extract.NewEngine(spec.LoadEntityType, extract.Checks{
			Field:  checkField,
			Schema: func(schema, value json.RawMessage) error { return check.Validate(schema, value) },
		}),
	}
}

// Begin says what a call of a tool that fills entities runs.
func (x extractor) Begin(ctx context.Context, tool string, inv jig.Invocation, input json.RawMessage) (jig.Extraction, error) {
	if tool == entities.ExtractAllTool {
		return jig.Extraction{}, x.entities.CheckExtractAll(ctx, inv, input)
	}
	begun, err := x.entities.Extraction(ctx, inv, input)
	if err != nil {
		return jig.Extraction{}, err
	}
	raw, err := extract.InputOf(begun.Type, extract.Begin{
		Entity: begun.Entity, Fields: begun.Fields, Mode: extract.Mode(begun.Mode), Input: begun.Input, Tasks: begun.Tasks,
	})
	return jig.Extraction{Entity: begun.Entity.ID, Type: begun.Type.Name, Version: begun.Type.Version, Input: raw}, err
}

// Sources are what the values of an entity may rest on.
func (x extractor) Sources(ctx context.Context, inv jig.Invocation, body []byte, entity string) (jig.Sources, error) {
	t, err := x.engine.Type(body)
	if err != nil {
		return jig.Sources{}, err
	}
	return x.entities.Sources(ctx, inv, t, entity)
}

// Advance works out the next move. What fields of type relation have as values becomes relations, too.
func (x extractor) Advance(
	ctx context.Context, version string, body []byte, state json.RawMessage, facts jig.ExtractionFacts, at jig.Situation,
) (jig.Move, error) {
	if version == "" {
		return extract.AdvanceBatch(ctx, state, facts, at)
	}
	move, err := x.engine.Advance(ctx, version, body, state, facts, at)
	if err != nil || move.Entity == nil || len(move.Entity.Fields) == 0 {
		return move, err
	}
	t, err := x.engine.Type(body)
	if err != nil {
		return move, err
	}
	move.Entity.Relations = entities.Links(t, move.Entity.Fields)
	return move, nil
}

// checkField refuses a value that does not fit a field, or that no entity can hold.
func checkField(f jig.Field, value json.RawMessage) error {
	if len(value) > jig.MaxEntityBytes {
		return jig.Errorf(jig.CodeInvalidInput, "it takes %d KiB; an entity holds at most %d", len(value)>>10, jig.MaxEntityBytes>>10).
			WithHint("keep long texts as texts of the entity")
	}
	return spec.CheckField(f, value)
}
