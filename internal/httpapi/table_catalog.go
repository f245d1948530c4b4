package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/identity/apikey"
)

// registerCatalog adds the operations on tools, documents, bundles, entities and artifacts.
func (a *API) registerCatalog() {
	add(a, operation{
		id: "list-tools", method: http.MethodGet, path: "/v1/tools", tag: tagTools, scope: apikey.ScopeRead,
		does: "List the tools and the names of the registered documents",
	}, a.listTools)
	add(a, operation{
		id: "get-tool", method: http.MethodGet, path: "/v1/tools/{tool}", tag: tagTools, scope: apikey.ScopeRead, does: "Get the contract of a tool", fails: []int{404},
	}, a.getTool)
	a.registerToolTests()
	a.registerDocumentOperations()
	a.registerBundles()
	a.registerEntities()
	add(a, operation{
		id: "get-artifact", method: http.MethodGet, path: "/v1/artifacts/{artifact}", tag: tagCalls, scope: apikey.ScopeRead,
		does:    "Download a large value that is stored separately",
		details: "The response is always an attachment of type application/octet-stream, so that no browser shows it as a page of this server.",
		fails:   []int{404},
	}, a.getArtifact)
	describeDownload(a, "/v1/artifacts/{artifact}")
}

// registerToolTests adds the operations that test a tool.
func (a *API) registerToolTests() {
	const call = "A test is a real call of the tool, as the principal of the credential and under the same rules, previews and approvals as call-tool. " +
		"It also needs the scope run. "
	add(a, operation{
		id: "test-tool", method: http.MethodPost, path: "/v1/tools/{tool}/test", tag: tagTools, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does: "Test a tool by calling it",
		details: call + "The response comes when the call has its result or waits for a person, or after 60 seconds at the latest. The header " +
			"Prefer: wait=SECONDS shortens that time.",
		fails: []int{404, 409},
	}, a.testTool)
	add(a, operation{
		id: "stream-tool-test", method: http.MethodPost, path: "/v1/tools/{tool}/test/stream", tag: tagTools, scope: apikey.ScopeAuthor, record: recordCall,
		does: "Test a tool by calling it, and stream the events of the call",
		details: call + "The response is a stream of server-sent events. The first one, call, names the session and the call. The events tool.* of the " +
			"call follow as they are written, with their sequence numbers as ids. If the call has run, the last event, run, is the call as list-runs " +
			"returns it. After an interruption, continue with get-events of the session and the last id. A refused request gets a status and a problem instead.",
		fails: []int{404, 409},
	}, a.streamToolTest)
	describeSent(a, "/v1/tools/{tool}/test/stream",
		"Server-sent events: call with session_id, call and status; events tool.* as get-events returns them; run with a run as list-runs returns it.")
}

// registerDocumentOperations adds the operations on registered documents. Changes are calls of jig's own tools.
func (a *API) registerDocumentOperations() {
	add(a, operation{
		id: "list-documents", method: http.MethodGet, path: "/v1/documents", tag: tagDocuments, scope: apikey.ScopeRead,
		does: "List the current documents by kind and name",
	}, a.listDocuments)
	add(a, operation{
		id: "register-documents", method: http.MethodPost, path: "/v1/documents", tag: tagDocuments, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does: "Register documents or new versions of documents, all or nothing",
		details: "This is a call of the tool catalog.put, under the same rules and approvals. With replaces, the call fails if another version has become " +
			"current since.",
		fails: []int{409},
	}, a.registerDocuments)
	add(a, operation{
		id: "get-document", method: http.MethodGet, path: "/v1/documents/{kind}/{name}", tag: tagDocuments, scope: apikey.ScopeRead,
		does: "Get a document exactly as it was registered", fails: []int{404},
	}, a.getDocument)
	add(a, operation{
		id: "change-document", method: http.MethodPut, path: "/v1/documents/{kind}/{name}", tag: tagDocuments, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does: "Register a new version of a document, or a new document",
		details: "This is a call of the tool catalog.put, under the same rules and approvals. If the document exists, If-Match is required; the call fails if " +
			"another version becomes current before it runs.",
		fails: []int{409, 412, 428},
	}, a.changeDocument)
	add(a, operation{
		id: "remove-document", method: http.MethodDelete, path: "/v1/documents/{kind}/{name}", tag: tagDocuments, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does:    "Remove a document, so that it is no longer used",
		details: "This is a call of the tool catalog.remove, under the same rules and approvals. All versions are kept. If-Match is required.",
		fails:   []int{404, 409, 412, 428},
	}, a.removeDocument)
	add(a, operation{
		id: "list-versions", method: http.MethodGet, path: "/v1/documents/{kind}/{name}/versions", tag: tagDocuments, scope: apikey.ScopeRead,
		does:    "List the stored versions of a document, the latest first",
		details: "They include versions that were stored for a session but never became current.", fails: []int{404},
	}, a.listVersions)
	add(a, operation{
		id: "compare-versions", method: http.MethodGet, path: "/v1/documents/{kind}/{name}/difference", tag: tagDocuments, scope: apikey.ScopeRead,
		does: "Compare two versions of a document", fails: []int{404},
	}, a.compareDocuments)
	add(a, operation{
		id: "restore-document", method: http.MethodPost, path: "/v1/documents/{kind}/{name}/restore", tag: tagDocuments, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does:    "Make an earlier version of a document current again",
		details: "This registers the text of that version, by a call of the tool catalog.put, after the same checks as for a new document.",
		fails:   []int{404, 409, 412, 428},
	}, a.restoreDocument)
}

// registerBundles adds the operations on installed bundles.
func (a *API) registerBundles() {
	add(a, operation{
		id: "list-bundles", method: http.MethodGet, path: "/v1/bundles", tag: tagDocuments, scope: apikey.ScopeRead,
		does: "List the installed bundles by name",
	}, a.listBundles)
	add(a, operation{
		id: "get-bundle", method: http.MethodGet, path: "/v1/bundles/{bundle}", tag: tagDocuments, scope: apikey.ScopeRead,
		does:    "Get an installed bundle",
		details: "Its documents have the kinds, names and versions with which get-document returns their texts.",
		fails:   []int{404},
	}, a.getBundle)
}
