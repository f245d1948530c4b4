package api

import (
	"net/http"

	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// documents lists the operations on registered documents and on installed bundles. Those that change documents are calls of jig's own tools.
func documents() []Any {
	return []Any{
		ListDocuments, RegisterDocuments, GetDocument, ChangeDocument, RemoveDocument, ListVersions, CompareVersions, RestoreDocument,
		ListBundles, GetBundle,
	}
}

// ListDocumentsRequest asks for the current documents.
type ListDocumentsRequest struct {
	Kind string `query:"kind" enum:"agent,skill,entity_type,composition,policy,tenant,budget,rate_limit" doc:"Only documents of this kind; composition is any composition, prompt, task or thin tool"`
}

// DocumentList lists documents.
type DocumentList struct {
	Documents []protocol.DocumentState `json:"documents"`
}

// ListDocuments lists the current documents by kind and name.
var ListDocuments = reading[ListDocumentsRequest, DocumentList](Documents, "list-documents", "/v1/documents", "List the current documents by kind and name")

// RegisterDocumentsRequest registers documents.
type RegisterDocumentsRequest struct {
	CallHeaders
	Body struct {
		Documents []DocumentFile `json:"documents" minItems:"1" maxItems:"100"`
	} `nameHint:"RegisterDocuments"`
}

// DocumentFile is a document in a call of catalog.put.
type DocumentFile struct {
	Path     string     `json:"path" minLength:"1" maxLength:"512" doc:"The file's name, for messages; agents end in .md"`
	Body     string     `json:"body" minLength:"1" doc:"The whole text of the document"`
	Replaces *NamedFile `json:"replaces,omitempty" doc:"The document and version that this one replaces; without a version, the document must be new"`
}

// NamedFile is a registered document in a call of catalog.put or catalog.remove.
type NamedFile struct {
	Kind    string `json:"kind" enum:"agent,skill,entity_type,composition,policy,tenant,budget,rate_limit"`
	Name    string `json:"name" names:"{kind}" minLength:"1" maxLength:"512"`
	Version string `json:"version,omitempty" names:"version" maxLength:"128"`
}

// RegisterDocuments registers documents or new versions of documents.
var RegisterDocuments = Op[RegisterDocumentsRequest, CalledCall]{Operation: Operation{
	Name: "register-documents", Method: http.MethodPost, Path: "/v1/documents", Tag: Documents, Scope: credential.ScopeAuthor, Record: RecordCall, Also: Running(),
	Summary: "Register documents or new versions of documents, all or nothing",
	Details: "This is a call of the tool catalog.put, under the same rules and approvals. With replaces, the call fails if another version has become " +
		"current since.",
	Fails: []int{409},
}}

// DocumentPath names a document in the path.
type DocumentPath struct {
	Kind string `path:"kind" enum:"agent,skill,entity_type,composition,policy,tenant,budget,rate_limit" doc:"composition is any composition, prompt, task or thin tool"`
	Name string `path:"name" names:"{kind}" maxLength:"512"`
}

// GetDocumentRequest asks for a version of a document.
type GetDocumentRequest struct {
	DocumentPath
	Version string `query:"version" names:"version" maxLength:"128" doc:"A stored version. Default: the current one"`
}

// Document is a version of a document with its text.
type Document struct {
	protocol.DocumentState
	Text string `json:"text" doc:"The document as it was registered; a skill is JSON with all of its files"`
}

// GetDocument gets a document exactly as it was registered.
var GetDocument = reading[GetDocumentRequest, Document](
	Documents, "get-document", "/v1/documents/{kind}/{name}", "Get a document exactly as it was registered", http.StatusNotFound,
)

// DocumentChange names the document that a request changes, and the version that the client has seen.
type DocumentChange struct {
	DocumentPath
	CallHeaders
	Match string `header:"If-Match" names:"version" maxLength:"500" doc:"The ETag of the document that the client has seen, or * for any"`
}

// ChangeDocumentRequest registers a new version of a document.
type ChangeDocumentRequest struct {
	DocumentChange
	Body struct {
		Text string `json:"text" minLength:"1" doc:"The whole text of the document"`
	} `nameHint:"ChangeDocument"`
}

// ChangeDocument registers a new version of a document, or a new document.
var ChangeDocument = Op[ChangeDocumentRequest, CalledCall]{Operation: Operation{
	Name: "change-document", Method: http.MethodPut, Path: "/v1/documents/{kind}/{name}", Tag: Documents, Scope: credential.ScopeAuthor, Record: RecordCall, Also: Running(),
	Summary: "Register a new version of a document, or a new document",
	Details: "This is a call of the tool catalog.put, under the same rules and approvals. If the document exists, If-Match is required; the call fails if " +
		"another version becomes current before it runs.",
	Fails: []int{409, 412, 428},
}}

// RemoveDocument removes a document.
var RemoveDocument = Op[DocumentChange, CalledCall]{Operation: Operation{
	Name: "remove-document", Method: http.MethodDelete, Path: "/v1/documents/{kind}/{name}", Tag: Documents, Scope: credential.ScopeAuthor, Record: RecordCall, Also: Running(),
	Summary: "Remove a document, so that it is no longer used",
	Details: "This is a call of the tool catalog.remove, under the same rules and approvals. All versions are kept. If-Match is required.",
	Fails:   []int{404, 409, 412, 428},
}}

// VersionList lists versions of a document.
type VersionList struct {
	Versions []protocol.DocumentState `json:"versions" doc:"At most 200 versions, newest first: the current one and the latest others"`
}

// ListVersions lists the stored versions of a document.
var ListVersions = Op[DocumentPath, VersionList]{Operation: Operation{
	Name: "list-versions", Method: http.MethodGet, Path: "/v1/documents/{kind}/{name}/versions", Tag: Documents, Scope: credential.ScopeRead,
	Summary: "List the stored versions of a document, the latest first",
	Details: "They include versions that were stored for a session but never became current.", Fails: []int{404},
}}

// CompareVersionsRequest asks for the difference of two versions.
type CompareVersionsRequest struct {
	DocumentPath
	From string `query:"from" names:"version" required:"true" minLength:"1" maxLength:"128" doc:"The earlier version"`
	To   string `query:"to" names:"version" maxLength:"128" doc:"The later version. Default: the current one"`
}

// Difference is the difference of two versions.
type Difference struct {
	From       protocol.DocumentState `json:"from"`
	To         protocol.DocumentState `json:"to"`
	Difference string                 `json:"difference" doc:"A unified diff; empty if the texts are equal"`
}

// CompareVersions compares two versions of a document.
var CompareVersions = reading[CompareVersionsRequest, Difference](
	Documents, "compare-versions", "/v1/documents/{kind}/{name}/difference", "Compare two versions of a document", http.StatusNotFound,
)

// RestoreDocumentRequest makes an earlier version current again.
type RestoreDocumentRequest struct {
	DocumentChange
	Body struct {
		Version string `json:"version" names:"version" minLength:"1" maxLength:"128" doc:"The version that becomes current again"`
	} `nameHint:"RestoreDocument"`
}

// RestoreDocument makes an earlier version of a document current again.
var RestoreDocument = Op[RestoreDocumentRequest, CalledCall]{Operation: Operation{
	Name: "restore-document", Method: http.MethodPost, Path: "/v1/documents/{kind}/{name}/restore", Tag: Documents, Scope: credential.ScopeAuthor, Record: RecordCall, Also: Running(),
	Summary: "Make an earlier version of a document current again",
	Details: "This registers the text of that version, by a call of the tool catalog.put, after the same checks as for a new document.",
	Fails:   []int{404, 409, 412, 428},
}}

// BundleList lists installed bundles.
type BundleList struct {
	Bundles []bundle.Bundle `json:"bundles"`
}

// ListBundles lists the installed bundles by name.
var ListBundles = reading[struct{}, BundleList](Documents, "list-bundles", "/v1/bundles", "List the installed bundles by name")

// BundlePath names a bundle in the path.
type BundlePath struct {
	Bundle string `path:"bundle" names:"bundle" maxLength:"64" doc:"The name of the bundle"`
}

// GetBundle gets an installed bundle.
var GetBundle = Op[BundlePath, bundle.Bundle]{Operation: Operation{
	Name: "get-bundle", Method: http.MethodGet, Path: "/v1/bundles/{bundle}", Tag: Documents, Scope: credential.ScopeRead,
	Summary: "Get an installed bundle",
	Details: "Its documents have the kinds, names and versions with which get-document returns their texts.",
	Fails:   []int{404},
}}
