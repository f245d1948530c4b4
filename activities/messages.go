package activities

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
)

// StartSession describes a new session. If Document or Input is large, the client can upload it first and pass a reference instead.
type StartSession struct {
	// Agent names a registered agent. It is empty if a document is given.
	Agent string `json:"agent,omitempty"`
	// Document is an agent document (Markdown with front matter), and DocumentArtifact the id of one that was uploaded.
	// DocumentName is its file name, for error messages.
	Document         string          `json:"document,omitempty"`
	DocumentArtifact string          `json:"document_artifact,omitempty"`
	DocumentName     string          `json:"document_name,omitempty"`
	Task             string          `json:"task,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	InputArtifact    string          `json:"input_artifact,omitempty"`
	// Pairs are key=value inputs. They are converted according to the agent's input schema.
	Pairs map[string]string `json:"pairs,omitempty"`
	// Model replaces the agent's own model. A start with a parent may only name a model that the agent's document lists.
	Model     string        `json:"model,omitempty"`
	Principal jig.Principal `json:"principal"`
	// ParentID and ParentCall name the call that starts the session. Both are empty if a person or a program starts it. With a
	// parent, the principal is the parent's.
	ParentID   string `json:"parent_id,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Source says how a session without a parent was started. Empty means api.
	Source jig.Source `json:"source,omitempty"`
}

// Decisions is the payload of the signals approve and deny and of the update decide: one decision or several. For a signal, the
// signal's name is the answer. In the update, each decision carries its own answer (default: approve).
type Decisions struct {
	jig.Decision
	Decisions []jig.Decision `json:"decisions,omitempty"`
}

// All returns the decisions as a list. Each of several decisions inherits by, answer, note and reason from the outer object unless
// it sets its own.
func (d Decisions) All() []jig.Decision {
	if len(d.Decisions) == 0 {
		return []jig.Decision{d.Decision}
	}
	list := make([]jig.Decision, len(d.Decisions))
	for i, one := range d.Decisions {
		one.By, one.Answer = cmp.Or(one.By, d.By), cmp.Or(one.Answer, d.Answer)
		one.Note, one.Reason = cmp.Or(one.Note, d.Note), cmp.Or(one.Reason, d.Reason)
		list[i] = one
	}
	return list
}

// misplaced names a member of the outer object that only makes sense inside one of several decisions. It returns "" if there is none.
func misplaced(d Decisions) string {
	if len(d.Decisions) == 0 {
		return ""
	}
	switch {
	case d.Call != "":
		return "call"
	case d.Digest != "":
		return "digest"
	case len(d.Input) > 0:
		return "input"
	case d.To != "":
		return "to"
	case d.Grant != nil:
		return "grant"
	case d.Token != "":
		return "token"
	}
	return ""
}

// DecideResult is the answer of the updates decide, answer and reconcile.
type DecideResult struct {
	SessionID string      `json:"session_id"`
	Decisions []jig.Ruled `json:"decisions"`
}

// Message is the payload of the signal message.
type Message struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	// ID is chosen by the sender. A session accepts only one message per ID. At most 256 bytes.
	ID string `json:"id,omitempty"`
}

// StatusRequest asks for a session's status.
type StatusRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
}

// ApprovalsRequest asks for a page of the calls in a tenant that wait for a person. SessionID limits it to one session.
type ApprovalsRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id,omitempty"`
	Cursor    string `json:"cursor,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// ApprovalsPage is a page of calls that wait for a person.
type ApprovalsPage struct {
	Approvals []jig.Pending `json:"approvals"`
	Next      string        `json:"next,omitempty"`
}

// EventsRequest asks for the events after a sequence number. It waits up to Wait for the first one.
type EventsRequest struct {
	Tenant    string        `json:"tenant"`
	SessionID string        `json:"session_id"`
	After     int64         `json:"after"`
	Limit     int           `json:"limit,omitempty"`
	Wait      time.Duration `json:"wait,omitempty"`
}

// EventsPage is a page of events, at most 128 KiB.
type EventsPage struct {
	Events []jig.Event `json:"events"`
	// Status is the status of the session, so that a follower knows when to stop.
	Status jig.Status `json:"status"`
}

// CatalogRequest asks for a page of the tools that a tenant sees. After is the last name of the previous page. If Kind is set, it asks
// for a piece of the current version of one registered document instead.
type CatalogRequest struct {
	Tenant string `json:"tenant"`
	After  string `json:"after,omitempty"`
	// Kind is agent, skill, entity_type, or spec for any execution spec.
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Offset int    `json:"offset,omitempty"`
}

// CatalogPage is a page of tools, sorted by name. The first page also has the names of the registered documents, sorted. An older
// worker may omit a list that it does not know.
type CatalogPage struct {
	Tools  []jig.Tool `json:"tools"`
	Agents []string   `json:"agents,omitzero"`
	Skills []string   `json:"skills,omitzero"`
	// EntityTypes are the names of entity types.
	EntityTypes []string `json:"entity_types,omitzero"`
	// Specs are the execution specs that only compositions and people can run, because their names are not valid tool names. The
	// other specs are among the tools.
	Specs    []string       `json:"specs,omitzero"`
	More     bool           `json:"more,omitempty"`
	Document *DocumentChunk `json:"document,omitempty"`
}

// DocumentChunk is a piece of a document, at most 128 KiB. Pieces belong together if their Hash (the SHA-256 of the complete
// document, in hex) is the same.
type DocumentChunk struct {
	Hash string `json:"hash"`
	Data []byte `json:"data"`
	Size int    `json:"size"`
}

// ArtifactRequest asks for a piece of an artifact.
type ArtifactRequest struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Offset int64  `json:"offset"`
}

// ArtifactChunk is a piece of an artifact, at most 128 KiB.
type ArtifactChunk struct {
	Data []byte `json:"data"`
	Size int64  `json:"size"`
}

// UploadRequest writes a piece (at most 128 KiB) of an artifact. The client chooses the artifact's id.
type UploadRequest struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}
