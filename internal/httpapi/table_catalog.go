package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/identity/apikey"
)

// registerCatalog adds the operations on tools, documents, entities and artifacts.
func (a *API) registerCatalog() {
	add(a, operation{
		id: "list-tools", method: http.MethodGet, path: "/v1/tools", tag: tagTools, scope: apikey.ScopeRead,
		does: "List the tools and the names of the registered documents",
	}, a.listTools)
	add(a, operation{
		id: "get-tool", method: http.MethodGet, path: "/v1/tools/{tool}", tag: tagTools, scope: apikey.ScopeRead, does: "Get the contract of a tool", fails: []int{404},
	}, a.getTool)
	add(a, operation{
		id: "get-document", method: http.MethodGet, path: "/v1/documents/{kind}/{name}", tag: tagDocuments, scope: apikey.ScopeRead,
		does: "Get a registered document exactly as it was registered", fails: []int{404},
	}, a.getDocument)
	add(a, operation{
		id: "get-extraction", method: http.MethodGet, path: "/v1/entities/{entity}/extraction", tag: tagEntities, scope: apikey.ScopeRead,
		does: "Get the state of the latest extraction of an entity, with its tasks", fails: []int{404},
	}, a.getExtraction)
	add(a, operation{
		id: "get-artifact", method: http.MethodGet, path: "/v1/artifacts/{artifact}", tag: tagCalls, scope: apikey.ScopeRead,
		does:    "Download a large value that is stored separately",
		details: "The answer is an attachment of the type application/octet-stream, whatever it contains, so that no browser shows it as a page of this server.",
		fails:   []int{404},
	}, a.getArtifact)
	describeDownload(a, "/v1/artifacts/{artifact}")
}
