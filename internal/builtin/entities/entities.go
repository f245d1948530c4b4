// Package entities contains the tools for a tenant's entities: listing types, search, filter, reading in two steps, create, update, relate,
// delete, extraction, and research. Each tool first checks the principal's permissions; entities that the principal may not read appear not
// to exist. The tenant is always the call's tenant, never an argument. The package must not know how entities are stored, nor how contents
// are checked.
//
// Permissions and the rules for contents are in package guarded, which other parts of the engine use, too. The tools that extract have only a
// contract here: the engine runs their calls step by step (internal/plan/extraction). Research asks a model about the texts of connected
// entities, and passes on only claims whose quotations occur in these texts.
//
// Begin with [Tools], which lists the tools. Each of the other files has the tools of one subject, with their inputs and outputs, which the API
// returns as they are.
package entities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// Store stores entities and their texts, grouped by subject. Those of other tenants are NOT_FOUND, like entities that do not exist.
type Store struct {
	Records
	Texts
	Finder
}

// Records keeps entities and their relations.
type Records interface {
	EntityTypeOf(ctx context.Context, tenant, id string) (string, error)
	CreateEntity(ctx context.Context, n entity.NewEntity) (e entity.Entity, created bool, err error)
	UpdateEntity(ctx context.Context, tenant, id string, revision int64, patch entity.Patch) (entity.Entity, error)
	DeleteEntity(ctx context.Context, tenant, id string, revision int64) error
	Relate(ctx context.Context, tenant string, r entity.Relation) error
	// RelationsOf lists the relations of an entity with entities of the given types.
	RelationsOf(ctx context.Context, tenant, id string, types []string, limit int) ([]entity.RelatedEntity, error)
}

// Texts keeps texts, which may belong to an entity.
type Texts interface {
	// Text returns a text, PutText stores one, and TextInfos lists the texts of an entity without their bodies.
	Text(ctx context.Context, tenant, id string) (entity.Text, error)
	PutText(ctx context.Context, t entity.Text) (entity.Text, error)
	TextInfos(ctx context.Context, tenant, entityID string, limit int) ([]entity.TextInfo, error)
}

// Finder finds entities and passages of texts.
type Finder interface {
	EntityCounts(ctx context.Context, tenant string) ([]entity.Count, error)
	SearchEntities(ctx context.Context, tenant string, types []string, query, workspace string, limit int) ([]entity.Hit, error)
	FilterEntities(ctx context.Context, tenant string, t entity.Type, f entity.Filter) (entity.Page, error)
	// SearchText finds chunks in the texts of the given entities, the best first.
	SearchText(ctx context.Context, tenant, query string, entityIDs []string, limit int) ([]entity.TextHit, error)
}

// Options are the settings of the tools. Entities and Store are required.
type Options struct {
	// Entities decides what the tools may read and write for a principal.
	guarded.Entities
	Store Store
	// Model answers questions in natural language; DefaultModel (provider/model) is used if a call names no model. Without a Model,
	// entities.extractFilters fails, and research answers with sentences from the texts.
	Model        Model
	DefaultModel string
	// CheckClaims returns what is wrong with claims, or nil if they hold. sources are the texts that claims may be based on, by the ids
	// that claims use. Without it, research returns no claims from a model.
	CheckClaims func(claims []entity.TextClaim, sources map[string]string) *jig.Error
}

// The names of the tools.
const (
	ListTypesTool      = toolname.EntitiesListTypes
	StatsTool          = "entities.stats"
	SearchTool         = toolname.EntitiesSearch
	FilterTool         = toolname.EntitiesFilter
	GetTool            = toolname.EntitiesGet
	CreateTool         = toolname.EntitiesCreate
	UpdateTool         = toolname.EntitiesUpdate
	ListRelationsTool  = toolname.EntitiesListRelations
	CreateRelationTool = toolname.EntitiesCreateRelation
	DeleteTool         = toolname.EntitiesDelete
	GetTextTool        = toolname.EntitiesGetText
	PutTextTool        = toolname.EntitiesPutText
)

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	read := func(name, description string) jig.Tool {
		return jig.Tool{
			Name: name, Description: description, Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true,
			Timeout: 30 * time.Second, Tags: []string{"entities"}, Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}},
		}
	}
	write := func(name, description string) jig.Tool {
		t := read(name, description)
		t.Permission, t.Risk = jig.PermissionWrite, jig.RiskModerate
		return t
	}
	// Changes of one entity run in order. Key is the input that names the entity.
	change := func(key, name, description string) jig.Tool {
		t := write(name, description)
		t.ConcurrencyKey = "'entity ' + input." + key
		return t
	}
	remove := change("id", DeleteTool, "Deletes an entity together with its texts and relations. Returns its id. "+
		"To remove only a field, use entities.update.")
	remove.Permission, remove.Risk = jig.PermissionDestructive, jig.RiskHigh
	create := write(CreateTool, "Creates an entity of a type from its fields (see entities.listTypes). Returns its id and revision.")
	create.Undo, create.UndoInput = DeleteTool, "{'id': result.entity_id, 'revision': result.revision}"
	return []tools.Tool{
		tools.New(read(ListTypesTool, "Lists the entity types that you may read. With type, returns that one with its fields; use it before you "+
			"filter, create or update."), o.listTypes),
		tools.New(read(StatsTool, "Returns how many entities of each type there are, and when one of them changed last."), o.stats),
		tools.New(read(SearchTool, "Finds entities by words in their title, their content or their texts, the best first. All words must be there; "+
			`"a phrase", or, and -not work. Returns ids, titles and snippets. Use entities.filter to compare fields.`), o.search),
		tools.New(read(FilterTool, "Lists the entities of a type whose fields compare as asked, sorted, page by page. Operators: eq, neq, in for single "+
			"values (eq null finds what is missing); gt, lt, gte, lte for texts, numbers and dates; contains for a part of a text, an item of a list, parts of an object. "+
			"Returns ids, titles, the fields that were asked for, and the cursor of the next page."), o.filter, tools.AdjustInput(filterInput)),
		tools.New(read(GetTool, "Reads an entity in two steps. Without field, returns its fields with sizes: short values whole, the beginning of long ones. "+
			"With field, returns the value of that field, in parts by offset if it is long. It also lists the entity's texts."), o.get),
		tools.New(create, o.create, tools.WithPreview(o.previewCreate)),
		tools.New(change("id", UpdateTool, "Changes some fields of an entity; null removes a field, and the other fields stay. Give the revision that you read: "+
			"if the entity changed since, the call fails with CONFLICT. Returns the new revision."), o.update, tools.WithPreview(o.previewUpdate)),
		tools.New(read(GetTextTool, "Reads a text of an entity in parts by offset; entities.get names the texts. Returns its title and body."), o.getText),
		tools.New(change("id", PutTextTool, "Adds a text to an entity, or replaces one of its texts: a document that can be searched and quoted. Use a field for "+
			"short values. Returns the text's id."), o.putText, tools.WithPreview(o.previewText)),
		tools.New(read(ListRelationsTool, "Lists the entities that an entity points at, and those that point at it, with the name of each relation."), o.listRelations),
		tools.New(change("from", CreateRelationTool, "Makes an entity point at another, by a name of your choice. Use entities.update for fields of type relation. "+
			"Returns the relation."), o.createRelation, tools.WithPreview(o.previewRelation)),
		tools.New(remove, o.delete, tools.WithPreview(o.previewDelete)),
		extractTool(),
		o.extractFiltersTool(),
		o.researchTool(),
		extractAllTool(),
	}
}

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
