package plan

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/protocol"
)

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
	// Named reports whether the document names the agent that the call starts literally, not by an expression.
	Named bool
}
