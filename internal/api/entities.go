package api

import (
	"encoding/json"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/toolname"
)

// entities lists the operations on entities. Those that read follow the permissions and the policies of the tools that read entities; their
// requests have the arguments of the tool as JSON. Those that write are calls of jig's own tools.
func entities() []Any {
	return []Any{
		ListEntityTypes, GetEntityType, ListEntities, SearchEntities, GetEntity, ListRelations, GetExtraction, GetText,
		CreateEntity, ChangeEntity, DeleteEntity, CreateRelation, PutText, StartExtraction,
	}
}

// entityCall returns an operation that is a call of a tool.
func entityCall[Request any](name, method, path, tool, summary string) Op[Request, CalledCall] {
	return Op[Request, CalledCall]{Operation: Operation{
		Name: name, Method: method, Path: "/v1/entities" + path, Tag: Entities, Scope: credential.ScopeRun, Record: RecordCall, Also: Running(), Summary: summary,
		Details: "This is a call of the tool " + tool + ", under the same rules and approvals.", Fails: []int{404, 409},
	}}
}

// ListEntityTypes lists the entity types that the principal may read.
var ListEntityTypes = reading[struct{}, entity.TypeList](Entities, "list-entity-types", "/v1/entity-types", "List the entity types that the principal may read")

// EntityTypePath names an entity type in the path.
type EntityTypePath struct {
	Type string `path:"type" json:"type" names:"entity_type" maxLength:"200" doc:"The name of the entity type"`
}

// GetEntityType gets an entity type.
var GetEntityType = reading[EntityTypePath, entity.TypeInfo](
	Entities, "get-entity-type", "/v1/entity-types/{type}", "Get an entity type with its fields and suggested filters", http.StatusNotFound,
)

// ListEntitiesRequest asks for the entities of a type that match a filter.
type ListEntitiesRequest struct {
	Type      string   `query:"type" names:"entity_type" required:"true" maxLength:"200" doc:"The name of the entity type"`
	Where     string   `query:"where" maxLength:"8000" doc:"Conditions as JSON, as the tool entities.filter takes them, e.g. [{\"field\":\"risk\",\"op\":\"eq\",\"value\":\"high\"}]"`
	Match     string   `query:"match" enum:"all,any" doc:"Whether all conditions must hold, or any. Default: all"`
	Sort      []string `query:"sort" maxItems:"5" doc:"Fields to sort by, with a leading - for descending order, e.g. -age,name. Default: $created_at"`
	Fields    []string `query:"fields" maxItems:"20" doc:"Fields to return with each entity, with dots for fields of objects"`
	Workspace string   `query:"workspace" names:"workspace" maxLength:"128" doc:"Only entities of this workspace"`
	Cursor    string   `query:"cursor" maxLength:"4000" doc:"next_cursor of the previous page, with the same filter"`
	Limit     int      `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"The maximum number of entities on a page"`
}

// EntityFilter says which entities a list has.
type EntityFilter struct {
	Type      string              `json:"type"`
	Where     json.RawMessage     `json:"where,omitempty"`
	Match     string              `json:"match,omitempty"`
	Sort      []entity.FilterSort `json:"sort,omitempty"`
	Workspace string              `json:"workspace,omitempty"`
}

// ListedEntity is an entity in a list.
type ListedEntity struct{ entity.Row }

// EntityList is a page of entities.
type EntityList struct {
	Entities []ListedEntity `json:"entities"`
	Filter   EntityFilter   `json:"filter" doc:"The filter that was applied"`
	Total    *int64         `json:"total,omitempty" doc:"The number of entities on all pages. Only the first page has it, and only if it is cheap to compute"`
	Next     string         `json:"next_cursor,omitempty"`
}

// ListEntities lists entities of a type.
var ListEntities = reading[ListEntitiesRequest, EntityList](
	Entities, "list-entities", "/v1/entities", "List the entities of a type that match a filter", http.StatusNotFound,
)

// SearchEntitiesRequest asks for entities by words.
type SearchEntitiesRequest struct {
	Query     string   `query:"q" json:"query" required:"true" minLength:"1" maxLength:"1000" doc:"Search words, as in a web search"`
	Types     []string `query:"types" json:"types,omitempty" names:"entity_type" maxItems:"50" doc:"Only entities of these types"`
	Workspace string   `query:"workspace" json:"workspace,omitempty" names:"workspace" maxLength:"128" doc:"Only entities of this workspace"`
	Limit     int      `query:"limit" json:"limit" minimum:"1" maximum:"100" default:"20" doc:"The maximum number of entities"`
}

// SearchEntities finds entities by words.
var SearchEntities = reading[SearchEntitiesRequest, entity.HitList](
	Entities, "search-entities", "/v1/entities:search", "Find entities by words in their titles, contents and texts", http.StatusNotFound,
)

// EntityPath names an entity in the path.
type EntityPath struct {
	Entity string `path:"entity" json:"id" names:"entity" minLength:"1" maxLength:"200" doc:"The id of the entity"`
}

// GetEntityRequest asks for an entity, or for one of its fields.
type GetEntityRequest struct {
	EntityPath
	Field  string `query:"field" json:"field,omitempty" maxLength:"500" doc:"A field to read as a whole or in parts, with dots for fields of objects"`
	Offset int    `query:"offset" json:"offset,omitempty" minimum:"0" doc:"With field: next of the previous part"`
}

// Entity is an entity, or one of its fields.
type Entity struct{ entity.Reading }

// GetEntity gets an entity.
var GetEntity = Op[GetEntityRequest, Entity]{Operation: Operation{
	Name: "get-entity", Method: http.MethodGet, Path: "/v1/entities/{entity}", Tag: Entities, Scope: credential.ScopeRead,
	Summary: "Get an entity: its fields with sizes, or the value of one field",
	Details: "Short values are included. With field, the response has the value of that field, in parts if it is long.", Fails: []int{404},
}}

// ListRelations lists the relations of an entity.
var ListRelations = reading[EntityPath, entity.RelationList](
	Entities, "list-relations", "/v1/entities/{entity}/relations", "List the entities that an entity points at, and those that point at it", http.StatusNotFound,
)

// GetExtraction gets the state of the latest extraction of an entity.
var GetExtraction = reading[EntityPath, jig.EntityStatus](
	Entities, "get-extraction", "/v1/entities/{entity}/extraction", "Get the state of the latest extraction of an entity, with its tasks", http.StatusNotFound,
)

// GetTextRequest asks for a part of a text.
type GetTextRequest struct {
	Text   string `path:"text" json:"document_id" names:"text" minLength:"1" maxLength:"200" doc:"The id of the text"`
	Offset int    `query:"offset" json:"offset,omitempty" minimum:"0" doc:"next of the previous part"`
}

// GetText gets a part of a text.
var GetText = reading[GetTextRequest, entity.TextPart](Entities, "get-text", "/v1/texts/{text}", "Get a text of an entity, in parts", http.StatusNotFound)

// CreateEntityRequest creates an entity.
type CreateEntityRequest struct {
	CallHeaders
	Body struct {
		Type      string                     `json:"type" names:"entity_type" minLength:"1" maxLength:"200" doc:"The name of the entity type"`
		Title     string                     `json:"title,omitempty" maxLength:"500"`
		Content   map[string]json.RawMessage `json:"content" doc:"The fields and their values"`
		Workspace string                     `json:"workspace,omitempty" names:"workspace" maxLength:"128" doc:"A workspace to put it in"`
	} `nameHint:"CreateEntity"`
}

// CreateEntity creates an entity.
var CreateEntity = entityCall[CreateEntityRequest]("create-entity", http.MethodPost, "", toolname.EntitiesCreate, "Create an entity")

// ChangeEntityRequest changes an entity.
type ChangeEntityRequest struct {
	EntityPath
	CallHeaders
	Body EntityChange
}

// EntityChange changes some fields of an entity.
type EntityChange struct {
	Revision int64                      `json:"revision" minimum:"1" doc:"The revision that the client has seen"`
	Title    *string                    `json:"title,omitempty" maxLength:"500"`
	Set      map[string]json.RawMessage `json:"set,omitempty" doc:"Fields and their new values; null removes a field"`
}

// ChangeEntity changes an entity.
var ChangeEntity = entityCall[ChangeEntityRequest]("change-entity", http.MethodPatch, "/{entity}", toolname.EntitiesUpdate, "Change some fields of an entity")

// DeleteEntityRequest deletes an entity.
type DeleteEntityRequest struct {
	EntityPath
	CallHeaders
	Revision int64 `query:"revision" minimum:"1" doc:"The revision that the client has seen. Default: any"`
}

// DeleteEntity deletes an entity.
var DeleteEntity = entityCall[DeleteEntityRequest](
	"delete-entity", http.MethodDelete, "/{entity}", toolname.EntitiesDelete, "Delete an entity with its texts and relations",
)

// CreateRelationRequest adds a relation.
type CreateRelationRequest struct {
	EntityPath
	CallHeaders
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"64" doc:"The name of the relation, e.g. depends_on"`
		To   string `json:"to" names:"entity" minLength:"1" maxLength:"200" doc:"The id of the entity that it points at"`
	} `nameHint:"CreateRelation"`
}

// CreateRelation adds a relation.
var CreateRelation = entityCall[CreateRelationRequest](
	"create-relation", http.MethodPost, "/{entity}/relations", toolname.EntitiesCreateRelation, "Add a relation from an entity to another one",
)

// PutTextRequest adds a text to an entity, or replaces one of its texts.
type PutTextRequest struct {
	EntityPath
	CallHeaders
	Body NewText
}

// NewText is a text that is added to an entity, or takes the place of one of its texts.
type NewText struct {
	Text      string `json:"body" minLength:"1"`
	Title     string `json:"title,omitempty" maxLength:"500"`
	MediaType string `json:"media_type,omitempty" maxLength:"100" doc:"Default: text/plain"`
	Replaces  string `json:"document_id,omitempty" names:"text" maxLength:"200" doc:"The id of the entity's text to replace"`
}

// PutText adds a text to an entity, or replaces one.
var PutText = entityCall[PutTextRequest]("put-text", http.MethodPost, "/{entity}/texts", toolname.EntitiesPutText, "Add a text to an entity, or replace one")

// ExtractRequest runs tasks of an entity.
type ExtractRequest struct {
	EntityPath
	CallHeaders
	Body Extraction
}

// Extraction says which tasks of an entity run.
type Extraction struct {
	Fields []string        `json:"fields,omitempty" doc:"Only these fields, and the tasks that they depend on"`
	Mode   string          `json:"mode,omitempty" enum:"run,retry,refresh" doc:"run: every task; retry: tasks without a value; refresh: tasks whose inputs or sources changed. Default: run"`
	Input  json.RawMessage `json:"input,omitempty" doc:"An object that the tasks read as input"`
}

// StartExtraction runs the tasks that fill an entity's fields.
var StartExtraction = entityCall[ExtractRequest](
	"start-extraction", http.MethodPost, "/{entity}/extraction", toolname.EntitiesExtract, "Run the tasks that fill an entity's fields",
)
