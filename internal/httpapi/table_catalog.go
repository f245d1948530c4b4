package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
)

// registerCatalog adds the operations on tools, documents, bundles, entities and artifacts.
func (a *API) registerCatalog() {
	add(a, api.Operation{
		Name: "list-tools", Method: http.MethodGet, Path: "/v1/tools", Tag: api.Tools, Scope: credential.ScopeRead,
		Summary: "List the tools and the names of the registered documents",
	}, a.listTools)
	add(a, api.Operation{
		Name: "get-tool", Method: http.MethodGet, Path: "/v1/tools/{tool}", Tag: api.Tools, Scope: credential.ScopeRead, Summary: "Get the contract of a tool", Fails: []int{404},
	}, a.getTool)
	a.registerToolTests()
	a.registerDocumentOperations()
	a.registerBundles()
	add(a, api.Operation{
		Name: "get-artifact", Method: http.MethodGet, Path: "/v1/artifacts/{artifact}", Tag: api.Calls, Scope: credential.ScopeRead,
		Summary: "Download a large value that is stored separately",
		Details: "The response is always an attachment of type application/octet-stream, so that no browser shows it as a page of this server.",
		Fails:   []int{404},
	}, a.getArtifact)
	describeDownload(a, "/v1/artifacts/{artifact}")
}

// registerToolTests adds the operations that test a tool.
func (a *API) registerToolTests() {
	const call = "A test is a real call of the tool, as the principal of the credential and under the same rules, previews and approvals as call-tool. " +
		"It also needs the scope run. "
	add(a, api.Operation{
		Name: "test-tool", Method: http.MethodPost, Path: "/v1/tools/{tool}/test", Tag: api.Tools, Scope: credential.ScopeAuthor, Record: api.RecordCall, Also: api.Running(),
		Summary: "Test a tool by calling it",
		Details: call + "The response comes when the call has its result or waits for a person, or after 60 seconds at the latest. The header " +
			"Prefer: wait=SECONDS shortens that time.",
		Fails: []int{404, 409},
	}, a.testTool)
	add(a, api.Operation{
		Name: "stream-tool-test", Method: http.MethodPost, Path: "/v1/tools/{tool}/test/stream", Tag: api.Tools, Scope: credential.ScopeAuthor, Record: api.RecordCall,
		Summary: "Test a tool by calling it, and stream the events of the call",
		Details: call + "The response is a stream of server-sent events. The first one, call, names the session and the call. The events tool.* of the " +
			"call follow as they are written, with their sequence numbers as ids. If the call has run, the last event, run, is the call as list-runs " +
			"returns it. After an interruption, continue with get-events of the session and the last id. A refused request gets a status and a problem instead.",
		Fails: []int{404, 409},
	}, a.streamToolTest)
	describeSent(a, "/v1/tools/{tool}/test/stream",
		"Server-sent events: call with session_id, call and status; events tool.* as get-events returns them; run with a run as list-runs returns it.")
}

// registerDocumentOperations adds the operations on registered documents. Changes are calls of jig's own tools.
func (a *API) registerDocumentOperations() {
	add(a, api.Operation{
		Name: "list-documents", Method: http.MethodGet, Path: "/v1/documents", Tag: api.Documents, Scope: credential.ScopeRead,
		Summary: "List the current documents by kind and name",
	}, a.listDocuments)
	add(a, api.Operation{
		Name: "register-documents", Method: http.MethodPost, Path: "/v1/documents", Tag: api.Documents, Scope: credential.ScopeAuthor, Record: api.RecordCall, Also: api.Running(),
		Summary: "Register documents or new versions of documents, all or nothing",
		Details: "This is a call of the tool catalog.put, under the same rules and approvals. With replaces, the call fails if another version has become " +
			"current since.",
		Fails: []int{409},
	}, a.registerDocuments)
	add(a, api.Operation{
		Name: "get-document", Method: http.MethodGet, Path: "/v1/documents/{kind}/{name}", Tag: api.Documents, Scope: credential.ScopeRead,
		Summary: "Get a document exactly as it was registered", Fails: []int{404},
	}, a.getDocument)
	add(a, api.Operation{
		Name: "change-document", Method: http.MethodPut, Path: "/v1/documents/{kind}/{name}", Tag: api.Documents, Scope: credential.ScopeAuthor, Record: api.RecordCall, Also: api.Running(),
		Summary: "Register a new version of a document, or a new document",
		Details: "This is a call of the tool catalog.put, under the same rules and approvals. If the document exists, If-Match is required; the call fails if " +
			"another version becomes current before it runs.",
		Fails: []int{409, 412, 428},
	}, a.changeDocument)
	add(a, api.Operation{
		Name: "remove-document", Method: http.MethodDelete, Path: "/v1/documents/{kind}/{name}", Tag: api.Documents, Scope: credential.ScopeAuthor, Record: api.RecordCall, Also: api.Running(),
		Summary: "Remove a document, so that it is no longer used",
		Details: "This is a call of the tool catalog.remove, under the same rules and approvals. All versions are kept. If-Match is required.",
		Fails:   []int{404, 409, 412, 428},
	}, a.removeDocument)
	add(a, api.Operation{
		Name: "list-versions", Method: http.MethodGet, Path: "/v1/documents/{kind}/{name}/versions", Tag: api.Documents, Scope: credential.ScopeRead,
		Summary: "List the stored versions of a document, the latest first",
		Details: "They include versions that were stored for a session but never became current.", Fails: []int{404},
	}, a.listVersions)
	add(a, api.Operation{
		Name: "compare-versions", Method: http.MethodGet, Path: "/v1/documents/{kind}/{name}/difference", Tag: api.Documents, Scope: credential.ScopeRead,
		Summary: "Compare two versions of a document", Fails: []int{404},
	}, a.compareDocuments)
	add(a, api.Operation{
		Name: "restore-document", Method: http.MethodPost, Path: "/v1/documents/{kind}/{name}/restore", Tag: api.Documents, Scope: credential.ScopeAuthor, Record: api.RecordCall, Also: api.Running(),
		Summary: "Make an earlier version of a document current again",
		Details: "This registers the text of that version, by a call of the tool catalog.put, after the same checks as for a new document.",
		Fails:   []int{404, 409, 412, 428},
	}, a.restoreDocument)
}

// registerBundles adds the operations on installed bundles.
func (a *API) registerBundles() {
	add(a, api.Operation{
		Name: "list-bundles", Method: http.MethodGet, Path: "/v1/bundles", Tag: api.Documents, Scope: credential.ScopeRead,
		Summary: "List the installed bundles by name",
	}, a.listBundles)
	add(a, api.Operation{
		Name: "get-bundle", Method: http.MethodGet, Path: "/v1/bundles/{bundle}", Tag: api.Documents, Scope: credential.ScopeRead,
		Summary: "Get an installed bundle",
		Details: "Its documents have the kinds, names and versions with which get-document returns their texts.",
		Fails:   []int{404},
	}, a.getBundle)
}
