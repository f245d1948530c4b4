// Package extractor connects the interpreter of extractions with stored entities. It decides how an extraction begins, which sources its
// values may be based on, and what its moves write. It must not know how entities are stored or what executes the moves.
package extractor

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/loaded"
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
	var begun entity.Extraction
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
	raw, err := extraction.InputOf(begun)
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

// CheckClaims checks claims about texts, given by the ids of their entities, in the same way as the claims of extractions.
func CheckClaims(claims []entity.TextClaim, sources map[string]string) *jig.Error {
	connected := make(map[string]extraction.Source, len(sources))
	for id, text := range sources {
		connected[id] = extraction.Source{Text: &text}
	}
	return extraction.CheckClaims(claims, connected, nil)
}

// EntityStore reads documents and entities.
type EntityStore interface {
	bundle.Documents
	FilterEntities(ctx context.Context, tenant string, kind entity.Type, filter entity.Filter) (entity.Page, error)
}

// TypeInUse returns a function that finds the entity type that a tenant's entities were last checked against: the current version if there is
// one, otherwise the version of the most recently updated entity of that type.
func TypeInUse(store EntityStore, types *Types) func(ctx context.Context, tenant, name string) (entity.Type, bool, error) {
	return func(ctx context.Context, tenant, name string) (entity.Type, bool, error) {
		versions, err := store.CurrentDocuments(ctx, tenant, string(spec.KindEntityType))
		if err != nil {
			return entity.Type{}, false, err
		}
		i := slices.IndexFunc(versions, func(v bundle.DocumentVersion) bool { return v.Name == name })
		if i >= 0 {
			t, err := types.Read(ctx, tenant, versions[i])
			return t, err == nil, err
		}
		page, err := store.FilterEntities(ctx, tenant, entity.Type{Name: name}, entity.Filter{
			Limit: 1, Sort: []entity.FilterSort{{Field: entity.FilterUpdatedAt, Desc: true}},
		})
		if err != nil || len(page.Entities) == 0 {
			return entity.Type{}, false, err
		}
		t, err := types.Read(ctx, tenant, bundle.DocumentVersion{
			Kind: string(spec.KindEntityType), Name: name, Version: page.Entities[0].TypeVersion,
		})
		if jig.CodeOf(err) == jig.CodeNotFound {
			return entity.Type{}, false, nil
		}
		return t, err == nil, err
	}
}

// Types reads the entity types that tenants have registered and keeps each version. It is safe for concurrent use.
type Types struct {
	documents bundle.Documents
	loaded    *loaded.Documents
	known     *cache.Cache[typeKey, entity.Type]
}

// typeKey identifies a version of an entity type for a tenant.
type typeKey struct {
	tenant string
	bundle.DocumentVersion
}

// maxEntityTypes bounds the parsed versions that are cached.
const maxEntityTypes = 10_000

// NewTypes returns a reader of the entity types in documents. It parses them with loaded, which may be nil.
func NewTypes(documents bundle.Documents, loaded *loaded.Documents) *Types {
	return &Types{documents: documents, loaded: loaded, known: cache.New[typeKey, entity.Type](0, maxEntityTypes)}
}

// Of returns a tenant's entity types, sorted by name.
func (e *Types) Of(ctx context.Context, tenant string) ([]entity.Type, error) {
	versions, err := e.documents.CurrentDocuments(ctx, tenant, string(spec.KindEntityType))
	if err != nil {
		return nil, err
	}
	list := make([]entity.Type, 0, len(versions))
	for _, v := range versions {
		t, err := e.Read(ctx, tenant, v)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// Read returns the parsed version of an entity type, as a tenant sees it.
func (e *Types) Read(ctx context.Context, tenant string, v bundle.DocumentVersion) (entity.Type, error) {
	return e.known.Get(typeKey{tenant, v}, func(t entity.Type, _ bool) (entity.Type, error) {
		body, err := e.documents.DocumentAt(ctx, tenant, v.Kind, v.Name, v.Version)
		if err != nil {
			return t, err
		}
		doc, problems := e.loaded.Stored(v.Kind, v.Name, body)
		if err := problems.OrNil(); err != nil {
			return t, jig.Errorf(jig.CodeUnavailable, "the entity type %s (version %s) cannot be read: %w", v.Name, jig.ShortVersion(v.Version), err).
				WithHint("register one that this worker reads: jig validate FILE, then jig catalog add FILE")
		}
		return *doc.EntityType(), nil
	})
}
