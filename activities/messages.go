package activities

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
)

// StartSession is what a session is started with. Document and Input may be kept aside first, when they are large.
type StartSession struct {
	// Agent names a registered agent; empty when Document is given.
	Agent string `json:"agent,omitempty"`
	// Document is an agent document (Markdown with front matter), DocumentArtifact one that was uploaded; DocumentName is
	// its file name, for error messages.
	Document         string          `json:"document,omitempty"`
	DocumentArtifact string          `json:"document_artifact,omitempty"`
	DocumentName     string          `json:"document_name,omitempty"`
	Task             string          `json:"task,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	InputArtifact    string          `json:"input_artifact,omitempty"`
	// Pairs are key=value inputs, converted by the agent's input schema.
	Pairs map[string]string `json:"pairs,omitempty"`
	// Model replaces the agent's own. A start with a parent may name one that the agent's document lists.
	Model     string        `json:"model,omitempty"`
	Principal jig.Principal `json:"principal"`
	// ParentID and ParentCall name the call that starts the session; both are empty for a start by a person or a program. With a
	// parent, the principal is the parent's.
	ParentID   string `json:"parent_id,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Source says how a session without a parent is started; api when empty.
	Source jig.Source `json:"source,omitempty"`
}

// Decisions is the payload of the signals approve and deny and of the update decide: one decision, or several. In a
// signal the answer is the signal's name; in the update each decision carries its own (default approve).
type Decisions struct {
	jig.Decision
	Decisions []jig.Decision `json:"decisions,omitempty"`
}

// All returns the decisions as a list. Of several, each has the by, answer, note and reason that stand beside them, unless it has
// its own.
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

// misplaced names a member that stands beside several decisions and can only be meant for one of them; "" when there is none.
func (d Decisions) misplaced() string {
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
	// ID is of the sender's choice: with the same one, a session takes a message once. At most 256 bytes.
	ID string `json:"id,omitempty"`
}

// StatusRequest asks for a session's status.
type StatusRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
}

// ApprovalsRequest asks for a page of what waits in a tenant; SessionID narrows it.
type ApprovalsRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id,omitempty"`
	Cursor    string `json:"cursor,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// ApprovalsPage is a page of what waits.
type ApprovalsPage struct {
	Approvals []jig.Pending `json:"approvals"`
	Next      string        `json:"next,omitempty"`
}

// EventsRequest asks for the events after a sequence number, waiting up to Wait for the first.
type EventsRequest struct {
	Tenant    string        `json:"tenant"`
	SessionID string        `json:"session_id"`
	After     int64         `json:"after"`
	Limit     int           `json:"limit,omitempty"`
	Wait      time.Duration `json:"wait,omitempty"`
}

// EventsPage is a page of events, at most 128 KiB of them.
type EventsPage struct {
	Events []jig.Event `json:"events"`
	// Status is the session's, so that a follower knows when to stop.
	Status jig.Status `json:"status"`
}

// CatalogRequest asks for the tools that a tenant sees, a page at a time (After is the last name of the page before). With a
// Kind it asks for a piece of the current version of one registered document, and for nothing else.
type CatalogRequest struct {
	Tenant string `json:"tenant"`
	After  string `json:"after,omitempty"`
	// Kind is agent, skill, entity_type, or spec for all execution specs.
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Offset int    `json:"offset,omitempty"`
}

// CatalogPage is a page of tools sorted by name. The first one names the documents that are registered too, sorted; a worker
// that is too old to tell leaves a list out.
type CatalogPage struct {
	Tools  []jig.Tool `json:"tools"`
	Agents []string   `json:"agents,omitzero"`
	Skills []string   `json:"skills,omitzero"`
	// EntityTypes are names.
	EntityTypes []string `json:"entity_types,omitzero"`
	// Specs are the execution specs that only compositions and people can run: their names are no tool's. The others are
	// among the tools.
	Specs    []string       `json:"specs,omitzero"`
	More     bool           `json:"more,omitempty"`
	Document *DocumentChunk `json:"document,omitempty"`
}

// DocumentChunk is a piece of a document, at most 128 KiB. Pieces belong together when their Hash (of the whole document's
// SHA-256, in hex) is the same.
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

// UploadRequest writes a piece (at most 128 KiB) of an artifact whose id the client made.
type UploadRequest struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}
