package jig

import "encoding/json"

// Frame is a composition, or an extraction, under way: what a call of an execution spec, or one that fills an entity, runs.
type Frame struct {
	Tenant    string
	SessionID string
	// CallID is the call that the composition answers; the calls of its steps are <call>/<path>.
	CallID string
	// Kind, Name and Version pin the document that it runs.
	Kind, Name, Version string
	// Entity is the id of the entity that it fills; empty for a composition, and for what fills many.
	Entity string
	// Fence of the attempt that holds the call.
	Fence int
	// State is where the composition stands, opaque to all but packages compose and extract; empty before the first move.
	State json.RawMessage
	// Revision counts the moves.
	Revision int64
	// Done says that the composition is over; Result is what it gave (large data aside, see ResultArtifact).
	Done           bool
	Result         *ToolResult
	ResultArtifact string
	// Received are the events that the session was sent since the composition began and that no wait of it has consumed,
	// oldest first, at most 1,000.
	Received []ReceivedEvent
}

// ReceivedEvent is a signal `event` that a session was sent.
type ReceivedEvent struct {
	// ID counts up in a session.
	ID   int64           `json:"id"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
	By   string          `json:"by,omitempty"`
}

// EntityChange is what a move of an extraction writes to the entity that it fills, whatever its revision. One that was deleted
// meanwhile stays as it is.
type EntityChange struct {
	ID string
	// Fields are new values by name, each with its provenance; null takes a field away.
	Fields     map[string]json.RawMessage
	Provenance map[string]Provenance
	// Relations replace those of the same names. What points at nothing is left out.
	Relations map[string][]string
	// Tasks says how tasks ended, by id, in a form of package extract's own: the next extraction of the entity reads it.
	Tasks map[string]json.RawMessage
}

// Extraction is what a call that fills an entity, or many, runs.
type Extraction struct {
	// Entity is the id of the entity, Type and Version are those of its type; all are empty for a call that fills many entities.
	Entity        string
	Type, Version string
	// Input goes into the working out of every move.
	Input json.RawMessage
}

// FrameMove is one move of a composition: all of it is stored in one transaction.
type FrameMove struct {
	Tenant    string
	SessionID string
	CallID    string
	// Revision is that of the frame the move was worked out from; the stored one must still have it.
	Revision int64
	State    json.RawMessage
	// Calls are admitted as those of a pass are, each with Frame set; Approvals are opened for those that ask.
	Calls     []Call
	Approvals []Pending
	// Cancel are ids of calls of the frame: those that wait or are reserved become canceled, with their event and their
	// approval; one whose outcome is unknown fails with OUTCOME_UNKNOWN; those that are executing are left alone.
	Cancel []string
	// Abandon says that nothing of the frame runs any more: then Cancel covers calls that are executing, too, as ending the
	// session would.
	Abandon bool
	// Values are kept by path.
	Values map[string]json.RawMessage
	// Events are appended to the session's log.
	Events []Event
	// Entity is written to an entity; nil for nothing.
	Entity *EntityChange
	// Consumed are ids of received events that no later wait of this frame sees.
	Consumed []int64
	// Done ends the composition with Result.
	Done   bool
	Result *ToolResult
	// Whole is the uncut result (JSON of a ToolResult) when Result was cut down.
	Whole []byte
}

// DocumentVersion names a version of a document.
type DocumentVersion struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}
