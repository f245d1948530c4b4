// Package plan defines what compositions and extractions share. Its subpackages compute what runs of documents do next. It does no I/O.
//
//   - A [Frame] is the stored state of a run. The interpreter reads it together with [Facts]: the calls and values of the run.
//   - A [Move] is what the run does next. The caller stores it in one transaction ([FrameMove]) or not at all, so a run can be interrupted
//     anywhere and be computed again elsewhere, with the same result.
//   - A [Run] is the computation of one move: it caches facts, and collects calls, kept values, and what to wait for. Package composition
//     and package extraction embed it; the languages stay apart.
//   - A [Tool] is a document that can be called like any other tool.
//
// Begin with [Move]. Engine.Advance of composition and of extraction return one.
package plan

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
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

// Move describes what a composition or an extraction does next. The caller stores it in one transaction, as a whole or not at all.
type Move struct {
	// State is passed to the computation of the next move. It is opaque and at most a few KiB per running step.
	State json.RawMessage
	// Calls are the calls to admit, in this order, each once and under its path.
	Calls []Ask
	// Open lists the paths of calls that were requested earlier and are not final.
	Open []string
	// Cancel lists the paths of open calls that are no longer needed: their step timed out, or the run was canceled.
	Cancel []string
	// Stop lists the paths of open calls that should end as soon as possible but whose outcome still matters: if nobody knows whether such a
	// call took effect, a person is asked.
	Stop []string
	// Values are the values to store under their paths; [Facts].Values returns them later.
	Values map[string]json.RawMessage
	// Events are the events to write to the session's log: custom.<name>, tool.undone with CallID set to the path of the call that was
	// undone, and step.waiting with CallID set to the path of the step.
	Events []jig.Event
	// Entity is the change to write to the entity being filled; nil if it does not change.
	Entity *entity.Change
	// Consumed lists the ids of events that a wait consumed.
	Consumed []int64
	// Wake is the time at which the next move must be computed even if nothing happens until then; zero when there is no need.
	Wake time.Time
	// Waits lists the steps that wait for events or times, at most 20. Call is the path of the step.
	Waits []jig.Wait
	// Steps lists the paths of running steps, for people, at most 20.
	Steps []string
	// Progress tells people how far the run has come; nil when the number of steps is not known.
	Progress *protocol.Progress
	// Done reports whether the run has ended. Result is then its result.
	Done   bool
	Result jig.ToolResult
}

// Ask is a request to admit the call of a composition's step.
type Ask struct {
	Path string
	// Tool and Input are the call's tool and input. A nested composition is called by its name.
	Tool  string
	Input json.RawMessage
	// Rendered holds the texts of Input that templates of the document gave, with the values in them that are not the document's own words.
	Rendered map[string][]string
	// RetryOf is the path of the attempt that failed before; empty for a first attempt. The new call gets the idempotency key and exactly
	// the input of that attempt, so its own Input is ignored.
	RetryOf string
	// Undoes is the path of the call whose effect this one reverts; empty for other calls. If Tool is empty, the tool is the Undo tool in
	// the contract of that call's tool.
	Undoes string
	// Because says why the effect is reverted, if this call reverts one.
	Because string
	// Reverts is the call of another session whose effect this one reverts; nil for other calls. No two calls revert the same one.
	Reverts *ledger.CallName
	// Named reports whether the document names the agent that the call starts literally, not by an expression.
	Named bool
}

// Tool is an execution spec as a tool that can be called.
type Tool struct {
	// Contract is the tool's contract, with the version of the document.
	Contract jig.Tool
	// Run runs a call once, as an activity. It is nil for a spec whose calls run as workflows.
	Run func(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult
	// Preview describes what a call will change. It is nil for a spec without a preview.
	Preview Preview
}

// Preview describes what a call will change. read makes the one call that the document may ask for.
type Preview func(ctx context.Context, input []byte, inv jig.Invocation, read Read) (jig.Preview, error)

// Read calls a tool that only reads, with the rights of the previewed call, and returns the data of its result.
type Read func(ctx context.Context, tool string, input json.RawMessage) (json.RawMessage, error)

// UndoNote says how to undo a step that succeeded, or why it cannot be undone. A composition keeps its notes as values, in the order in which the steps
// ended; see [UndoNotePath].
type UndoNote struct {
	// Path is the step's path, and Call the path of the attempt that succeeded.
	Path string `json:"path"`
	Call string `json:"call"`
	// Tool undoes the step. If it is empty, the undo tool is the one that the contract of the call's tool names.
	Tool  string          `json:"tool,omitempty"`
	Named bool            `json:"named,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// Rendered is that of [Ask].
	Rendered expr.Rendered `json:"rendered,omitempty"`
	// Error says why the input of the undo could not be rendered.
	Error *jig.Error `json:"error,omitempty"`
}

// UndoNotePath returns the path under which a composition keeps its note with a number.
func UndoNotePath(number int) string { return "#" + strconv.Itoa(number) }
