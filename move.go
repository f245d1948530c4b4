package jig

import (
	"context"
	"encoding/json"
	"time"
)

// Facts is what working out a composition's next move may read. Paths are those of steps within the composition ("page",
// "sections[4]", "sections[4]/inner", "page~2" for a second attempt, "page.undo").
type Facts interface {
	// Calls returns the calls with these paths that exist, whatever their status.
	Calls(ctx context.Context, paths []string) (map[string]StepCall, error)
	// Values returns the values that were kept under these paths.
	Values(ctx context.Context, paths []string) (map[string]json.RawMessage, error)
}

// ExtractionFacts is what working out an extraction's next move may read.
type ExtractionFacts interface {
	Facts
	// Sources returns what values may rest on and claims may cite, as it is now: the own texts of the entity that is filled, the
	// entities that it is connected with, and their texts.
	Sources(ctx context.Context) (Sources, error)
}

// StepCall is where a step's call stands: final with its result, or open without.
type StepCall struct {
	Status CallStatus
	Result *ToolResult
	// Tool is the call's, Writes and Idempotent are from its contract.
	Tool               string
	Writes, Idempotent bool
}

// MayRetry reports whether a call that failed may be repeated without asking a person; see [Tool.MayRetry]. A repetition keeps the
// idempotency key and the input of the call.
func (c StepCall) MayRetry() bool { return mayRetry(c.Writes, c.Idempotent, c.Outcome().Error) }

// Outcome is the result of a call that is final: its own, or what its status says when it left none.
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

// Situation is what a run of a composition is in, beside its state.
type Situation struct {
	// Input is the composition's input, Session {id, agent, task, input}, Principal {id, groups, permissions} for expressions.
	Input     json.RawMessage
	Tenant    string
	Session   json.RawMessage
	Principal json.RawMessage
	// Now is read as now, and ends waits.
	Now time.Time
	// Events that the session was sent since the run began and that no wait has consumed, oldest first.
	Events []ReceivedEvent
	// Canceled is set once the run is cancelled: what is under way ends, and what was done is undone.
	Canceled bool
}

// Move is what a composition does next: the caller stores all of it in one transaction, or none.
type Move struct {
	// State goes into the working out of the next move; it is opaque and at most a few KiB for each step under way.
	State json.RawMessage
	// Calls are to be admitted, in this order, each once, under its path.
	Calls []Ask
	// Open are the paths of calls that were asked for earlier and are not final.
	Open []string
	// Cancel are paths of open calls that are of no use any more: their step timed out, or the run was cancelled.
	Cancel []string
	// Stop are paths of open calls that are to end as soon as they can, and whose outcome still matters: when nobody knows whether one
	// took effect, a person is asked.
	Stop []string
	// Values are to be kept under their paths, for Facts.Values.
	Values map[string]json.RawMessage
	// Events are to be written to the session's log: custom.<name>, and tool.undone with CallID set to the path of the call
	// that was undone.
	Events []Event
	// Entity is what is to be written to the entity that is being filled; nil for nothing.
	Entity *EntityChange
	// Consumed are the ids of events that a wait took.
	Consumed []int64
	// Wake is when to look again although nothing has happened; zero when there is no need.
	Wake time.Time
	// Steps are the paths of the steps under way, for people, at most 20.
	Steps []string
	// Progress is how far the run has come, for people; nil when it has no number of steps to tell of.
	Progress *Progress
	// Done says that the run is over with Result.
	Done   bool
	Result ToolResult
}

// Progress counts the tasks of an extraction, or the entities of one of many.
type Progress struct {
	// Done have a value, also one that was kept; of entities, their tasks have ended.
	Done    int `json:"done"`
	Running int `json:"running"`
	// Failed were denied, expired or canceled, too.
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Total of many entities grows page by page.
	Total int `json:"total"`
}

// Ask is a call of a composition's step that is to be admitted.
type Ask struct {
	Path string
	// Tool and Input of the call. A composition is a call of its name.
	Tool  string
	Input json.RawMessage
	// RetryOf is the path of the attempt that failed before; empty for a first attempt. The call has that one's idempotency key and
	// exactly its input, and none of its own.
	RetryOf string
	// Undoes is the path of a call whose effect this one takes back; empty of others. Without a Tool, it is the tool that the contract
	// of that call's tool names for it.
	Undoes string
	// Named says that the document names the agent that the call starts: no expression chose it.
	Named bool
}
