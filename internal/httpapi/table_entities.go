package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/toolname"
)

// registerEntities adds the operations on entities. Those that read follow the permissions and the policies of the tools that read entities;
// those that write are calls of jig's own tools.
func (a *API) registerEntities() {
	add(a, api.Operation{
		Name: "list-entity-types", Method: http.MethodGet, Path: "/v1/entity-types", Tag: api.Entities, Scope: credential.ScopeRead,
		Summary: "List the entity types that the principal may read",
	}, a.listEntityTypes)
	add(a, api.Operation{
		Name: "get-entity-type", Method: http.MethodGet, Path: "/v1/entity-types/{type}", Tag: api.Entities, Scope: credential.ScopeRead,
		Summary: "Get an entity type with its fields and suggested filters", Fails: []int{404},
	}, a.getEntityType)
	add(a, api.Operation{
		Name: "list-entities", Method: http.MethodGet, Path: "/v1/entities", Tag: api.Entities, Scope: credential.ScopeRead,
		Summary: "List the entities of a type that match a filter", Fails: []int{404},
	}, a.listEntities)
	add(a, api.Operation{
		Name: "search-entities", Method: http.MethodGet, Path: "/v1/entities:search", Tag: api.Entities, Scope: credential.ScopeRead,
		Summary: "Find entities by words in their titles, contents and texts", Fails: []int{404},
	}, a.searchEntities)
	add(a, api.Operation{
		Name: "get-entity", Method: http.MethodGet, Path: "/v1/entities/{entity}", Tag: api.Entities, Scope: credential.ScopeRead,
		Summary: "Get an entity: its fields with sizes, or the value of one field",
		Details: "Short values are included. With field, the response has the value of that field, in parts if it is long.", Fails: []int{404},
	}, a.getEntity)
	add(a, api.Operation{
		Name: "list-relations", Method: http.MethodGet, Path: "/v1/entities/{entity}/relations", Tag: api.Entities, Scope: credential.ScopeRead,
		Summary: "List the entities that an entity points at, and those that point at it", Fails: []int{404},
	}, a.listRelations)
	add(a, api.Operation{
		Name: "get-extraction", Method: http.MethodGet, Path: "/v1/entities/{entity}/extraction", Tag: api.Entities, Scope: credential.ScopeRead,
		Summary: "Get the state of the latest extraction of an entity, with its tasks", Fails: []int{404},
	}, a.getExtraction)
	add(a, api.Operation{
		Name: "get-text", Method: http.MethodGet, Path: "/v1/texts/{text}", Tag: api.Entities, Scope: credential.ScopeRead,
		Summary: "Get a text of an entity, in parts", Fails: []int{404},
	}, a.getText)
	a.registerEntityChanges()
}

// registerEntityChanges adds the operations that change entities.
func (a *API) registerEntityChanges() {
	add(a, entityChangeOf("create-entity", http.MethodPost, "", toolname.EntitiesCreate, "Create an entity"), a.createEntity)
	add(a, entityChangeOf("change-entity", http.MethodPatch, "/{entity}", toolname.EntitiesUpdate, "Change some fields of an entity"), a.changeEntity)
	add(a, entityChangeOf("delete-entity", http.MethodDelete, "/{entity}", toolname.EntitiesDelete, "Delete an entity with its texts and relations"), a.deleteEntity)
	add(a, entityChangeOf("create-relation", http.MethodPost, "/{entity}/relations", toolname.EntitiesCreateRelation, "Add a relation from an entity to another one"), a.createRelation)
	add(a, entityChangeOf("put-text", http.MethodPost, "/{entity}/texts", toolname.EntitiesPutText, "Add a text to an entity, or replace one"), a.putText)
	add(a, entityChangeOf("start-extraction", http.MethodPost, "/{entity}/extraction", toolname.EntitiesExtract, "Run the tasks that fill an entity's fields"), a.startExtraction)
}

// entityChangeOf returns an operation that is a call of a tool.
func entityChangeOf(id, method, path, tool, does string) api.Operation {
	return api.Operation{
		Name: id, Method: method, Path: "/v1/entities" + path, Tag: api.Entities, Scope: credential.ScopeRun, Record: api.RecordCall, Also: api.Running(), Summary: does,
		Details: "This is a call of the tool " + tool + ", under the same rules and approvals.", Fails: []int{404, 409},
	}
}
