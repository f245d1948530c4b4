package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/toolname"
)

// registerEntities adds the operations on entities. Those that read follow the permissions and the policies of the tools that read entities;
// those that write are calls of jig's own tools.
func (a *API) registerEntities() {
	add(a, operation{
		id: "list-entity-types", method: http.MethodGet, path: "/v1/entity-types", tag: tagEntities, scope: apikey.ScopeRead,
		does: "List the entity types that the principal may read",
	}, a.listEntityTypes)
	add(a, operation{
		id: "get-entity-type", method: http.MethodGet, path: "/v1/entity-types/{type}", tag: tagEntities, scope: apikey.ScopeRead,
		does: "Get an entity type with its fields and suggested filters", fails: []int{404},
	}, a.getEntityType)
	add(a, operation{
		id: "list-entities", method: http.MethodGet, path: "/v1/entities", tag: tagEntities, scope: apikey.ScopeRead,
		does: "List the entities of a type that match a filter", fails: []int{404},
	}, a.listEntities)
	add(a, operation{
		id: "search-entities", method: http.MethodGet, path: "/v1/entities:search", tag: tagEntities, scope: apikey.ScopeRead,
		does: "Find entities by words in their titles, contents and texts", fails: []int{404},
	}, a.searchEntities)
	add(a, operation{
		id: "get-entity", method: http.MethodGet, path: "/v1/entities/{entity}", tag: tagEntities, scope: apikey.ScopeRead,
		does:    "Get an entity: its fields with sizes, or the value of one field",
		details: "Short values are included. With field, the response has the value of that field, in parts if it is long.", fails: []int{404},
	}, a.getEntity)
	add(a, operation{
		id: "list-relations", method: http.MethodGet, path: "/v1/entities/{entity}/relations", tag: tagEntities, scope: apikey.ScopeRead,
		does: "List the entities that an entity points at, and those that point at it", fails: []int{404},
	}, a.listRelations)
	add(a, operation{
		id: "get-extraction", method: http.MethodGet, path: "/v1/entities/{entity}/extraction", tag: tagEntities, scope: apikey.ScopeRead,
		does: "Get the state of the latest extraction of an entity, with its tasks", fails: []int{404},
	}, a.getExtraction)
	add(a, operation{
		id: "get-text", method: http.MethodGet, path: "/v1/texts/{text}", tag: tagEntities, scope: apikey.ScopeRead,
		does: "Get a text of an entity, in parts", fails: []int{404},
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
func entityChangeOf(id, method, path, tool, does string) operation {
	return operation{
		id: id, method: method, path: "/v1/entities" + path, tag: tagEntities, scope: apikey.ScopeRun, record: recordCall, also: running(), does: does,
		details: "This is a call of the tool " + tool + ", under the same rules and approvals.", fails: []int{404, 409},
	}
}
