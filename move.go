package jig

import (
	"context"
	"encoding/json"
	"time"
)

// Facts provides the data from which a composition's next move is computed. A path names a step within the composition, e.g. "page",
// "sections[4]", "sections[4]/inner", "page~2" (a second attempt) or "page.undo".
type Facts interface {
	// Calls returns the calls with these paths that exist, in any status.
	Calls(ctx context.Context, paths []string) (map[string]StepCall, error)
	// Values returns the values that were stored under these paths.
	Values(ctx context.Context, paths []string) (map[string]json.RawMessage, error)
}

// ExtractionFacts provides the data from which an extraction's next move is computed.
type ExtractionFacts interface {
	Facts
	// Sources returns the current sources that values may be based on and claims may cite: the texts of the entity being filled, the
	// entities connected with it, and their texts.
	Sources(ctx context.Context) (Sources, error)
}

// StepCall is the state of a step's call. A final call usually has a result; an open one has none.
type StepCall struct {
	Status CallStatus
	Result *ToolResult
	// Tool is the tool of the call; Writes and Idempotent come from its contract.
	Tool               string
	Writes, Idempotent bool
}

// MayRetry reports whether a failed call may be repeated without asking a person; see [MayRetry]. The repeated call keeps the
// idempotency key and the input.
func (c StepCall) MayRetry() bool { return MayRetry(c.Writes, c.Idempotent, c.Outcome().Error) }

// Outcome returns the result of a final call, or one derived from its status if the call left no result.
func (c StepCall) Outcome() ToolResult {
	if c.Result != nil {
		return *c.Result
	}
	code, word := CodeInternal, "failed"
	switch c.Status {
	case CallSucceeded:
		return ToolResult{Success: true}
	case CallDenied:
		code, word = CodeDenied, "was denied"
	case CallExpired:
		code, word = CodeExpired, "expired"
	case CallCanceled:
		code, word = CodeCanceled, "was cancelled"
	case CallDuplicate:
		code, word = CodeDuplicate, "is a duplicate"
	case CallFailed, CallWaiting, CallReserved, CallExecuting, CallUnknown:
	}
	return Failure(Errorf(code, "the call %s", word))
}

// Situation is the context of a composition's run, apart from its state.
type Situation struct {
	// Input is the composition's input. Session {id, agent, task, input} and Principal {id, groups, permissions} are available to
	// expressions.
	Input     json.RawMessage
	Tenant    string
	Session   json.RawMessage
	Principal json.RawMessage
	// Now is the value of now in expressions; it also decides which waits are over.
	Now time.Time
	// Events are the events sent to the session since the run began that no wait has consumed, oldest first.
	Events []ReceivedEvent
	// Canceled is set once the run has been canceled: running steps end, and completed ones are undone.
	Canceled bool
}

// Move describes what a composition does next. The caller stores it in one transaction, as a whole or not at all.
type Move struct {
	// State is passed to the computation of the next move. It is opaque and at most a few KiB per running step.
	State json.RawMessage
	// Calls are the calls to admit, in this order, each once and under its path.
	Calls []Ask
	// Open lists the paths of calls that were requested earlier and are not final.
	Open []string
	// Cancel lists the paths of open calls that are no longer needed: their step timed out, or the run was canceled.
	Cancel []string
	// Stop lists the paths of open calls that should end as soon as possible but whose outcome still matters: if nobody knows whether one
	// took effect, a person is asked.
	Stop []string
	// Values are the values to store under their paths; [Facts].Values returns them later.
	Values map[string]json.RawMessage
	// Events are the events to write to the session's log: custom.<name>, and tool.undone with CallID set to the path of the call that was
	// undone.
	Events []Event
	// Entity is the change to write to the entity being filled; nil for none.
	Entity *EntityChange
	// Consumed lists the ids of events that a wait consumed.
	Consumed []int64
	// Wake is the time at which the next move must be computed even if nothing happens until then; zero when there is no need.
	Wake time.Time
	// Steps lists the paths of running steps, for people, at most 20.
	Steps []string
	// Progress tells people how far the run has come; nil when the number of steps is not known.
	Progress *Progress
	// Done reports that the run is over with Result.
	Done   bool
	Result ToolResult
}

// Progress counts the tasks of an extraction, or the entities of an extraction of many.
type Progress struct {
	// Done counts tasks that have a value, including one that was kept; for entities, those whose
	// extraction ended as completed or partial.
	Done    int `json:"done"`
	Running int `json:"running"`
	// Failed also counts tasks, or entities, that were denied, expired or canceled.
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Total grows page by page when many entities are filled.
	Total int `json:"total"`
}

// Ask is a request to admit the call of a composition's step.
type Ask struct {
	Path string
	// Tool and Input are the call's tool and input. A nested composition is called by its name.
	Tool  string
	Input json.RawMessage
	// RetryOf is the path of the attempt that failed before; empty for a first attempt. The new call gets the idempotency key and exactly
	// the input of that attempt, so its own Input is ignored.
	RetryOf string
	// Undoes is the path of the call whose effect this one reverts; empty for other calls. If Tool is empty, the tool is the Undo tool in
	// the contract of that call's tool.
	Undoes string
	// Named reports that the document contains the literal name of the agent that the call starts, not an expression for it.
	Named bool
}
