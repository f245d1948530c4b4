package plan

import (
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/entity"
)

// Frame is a running composition or extraction. A call runs in a frame when its tool is an execution spec or fills an entity.
type Frame struct {
	Tenant    string
	SessionID string
	// CallID is the id of the call whose result the composition produces. The calls of its steps are <call>/<path>.
	CallID string
	// Kind, Name and Version pin the document that the frame runs.
	Kind, Name, Version string
	// Untrusted reports that outsiders may have written the text of the document.
	Untrusted bool
	// Entity is the id of the entity that the frame fills; empty for a composition and for an extraction of many entities.
	Entity string
	// Fence is the fence of the attempt that holds the call.
	Fence int
	// State is the state of the run, opaque outside of packages composition and extraction; empty before the first move.
	State json.RawMessage
	// Revision counts the moves made so far.
	Revision int64
	// Done reports whether the run has ended. Result is then its result, with large data stored separately (see ResultArtifact).
	Done           bool
	Result         *jig.ToolResult
	ResultArtifact string
	// Received are the events that were sent to the session since the run began and that no wait has consumed, oldest first.
	Received []ReceivedEvent
}

// ReceivedEvent is an event that was sent to a session.
type ReceivedEvent struct {
	// ID increases within a session.
	ID   int64           `json:"id"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
	// By is who sent it. Claimed reports that nothing proves that.
	By      string `json:"by,omitempty"`
	Claimed bool   `json:"claimed,omitempty"`
}

// Extraction is the run of a call that fills one entity or many.
type Extraction struct {
	// Entity is the id of the entity; Type and Version identify its type. All are empty for a call that fills many entities.
	Entity        string
	Type, Version string
	// Input is available to every move.
	Input json.RawMessage
}

// FrameMove is one move of a composition. All of it is stored in one transaction.
type FrameMove struct {
	Tenant    string
	SessionID string
	CallID    string
	// Revision is the revision of the frame from which the move was computed. The stored frame must still have it.
	Revision int64
	State    json.RawMessage
	// Calls are admitted like the calls of a pass, each with Frame set. Approvals are opened for those whose verdict is ask.
	Calls     []jig.Call
	Approvals []jig.Pending
	// Cancel lists ids of calls of the frame. Those that wait or are reserved become canceled, with their event and their approval; those
	// whose outcome is unknown fail with OUTCOME_UNKNOWN; those that are executing are left alone.
	Cancel []string
	// Abandon is set if nothing of the frame runs anymore. Cancel then also covers executing calls, as ending the session would.
	Abandon bool
	// Audit says who ended the composition from outside, and how; nil if it continues or ended by itself.
	Audit *audit.Entry
	// Values are stored by path, so that later moves can read them.
	Values map[string]json.RawMessage
	// Events are appended to the session's log.
	Events []jig.Event
	// Entity is the change to write to an entity; nil if no entity changes.
	Entity *entity.Change
	// Consumed lists ids of received events that later waits of this frame no longer see.
	Consumed []int64
	// Waits are the steps that wait for events or times now.
	Waits []jig.Wait
	// Done ends the composition with Result.
	Done   bool
	Result *jig.ToolResult
	// Whole is the full result (JSON of a [jig.ToolResult]) when Result was shortened.
	Whole []byte
}
