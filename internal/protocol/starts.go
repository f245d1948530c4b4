package protocol

import (
	"encoding/json"

	"github.com/jig-run/jig"
)

// MaxDepth limits how deeply sessions can nest: a session at this depth starts no further sessions.
const MaxDepth = 5

// StartSession describes a new session. If Document or Input is large, the client can upload it first and pass a reference instead.
type StartSession struct {
	// Agent names a registered agent. It is empty if a document is given.
	Agent string `json:"agent,omitempty"`
	// Document is an agent document (Markdown with front matter), and DocumentArtifact is the id of an uploaded one. DocumentName is its file
	// name, for error messages.
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
	// Proof is a statement, signed by a jig server, about who starts the session. A worker refuses a proof that it cannot check, so that
	// an unchecked one never counts. Empty means that the principal is only claimed.
	Proof string `json:"proof,omitempty"`
	// Mandate is that of a schedule, as the statement says or, without one, as the schedule's creator claims. Triggered says who started the session
	// outside of the schedule's times.
	Mandate   *Mandate   `json:"mandate,omitempty"`
	Triggered *Triggered `json:"triggered,omitempty"`
}

// Event is the payload of the signal event.
type Event struct {
	Name string `json:"name"`
	// Data is any JSON; empty means null. At most 32 KiB.
	Data json.RawMessage `json:"data,omitempty"`
	By   string          `json:"by,omitempty"`
	// ID is chosen by the sender. A session accepts only one event per ID. At most 256 bytes.
	ID string `json:"id,omitempty"`
	// Proof says who sends the event; see [StartSession.Proof].
	Proof string `json:"proof,omitempty"`
}

// maxEventName and maxEventID are the maximum sizes of an event's name and id, in bytes.
const (
	maxEventName = 128
	maxEventID   = 256
)

// Check returns an INVALID_INPUT error if the event is not complete or too large.
func (e Event) Check() error {
	switch {
	case e.Name == "":
		return jig.Errorf(jig.CodeInvalidInput, "`name` is missing: name the event").WithField("name")
	case len(e.Name) > maxEventName:
		return jig.Errorf(jig.CodeInvalidInput, "`name` has %d bytes; at most %d are allowed", len(e.Name), maxEventName).WithField("name")
	case len(e.ID) > maxEventID:
		return jig.Errorf(jig.CodeInvalidInput, "`id` has %d bytes; at most %d are allowed", len(e.ID), maxEventID).WithField("id")
	case len(e.Data) > jig.InlineBytes:
		return jig.Errorf(jig.CodeInvalidInput, "`data` has %d bytes; at most %d are allowed", len(e.Data), jig.InlineBytes).WithField("data")
	case len(e.Data) > 0 && !json.Valid(e.Data):
		return jig.Errorf(jig.CodeInvalidInput, "`data` is not JSON").WithField("data")
	}
	return nil
}

// Message is the payload of the signal message.
type Message struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	// ID is chosen by the sender. A session accepts only one message per ID. At most 256 bytes.
	ID string `json:"id,omitempty"`
	// Parent and ParentCall name the call of a session that sends the message. Both are empty if a person or a program sends it.
	Parent     string `json:"parent,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Proof says who sends the message; see [StartSession.Proof].
	Proof string `json:"proof,omitempty"`
}
