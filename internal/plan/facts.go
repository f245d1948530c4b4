package plan

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
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
	Sources(ctx context.Context) (entity.Sources, error)
}

// StepCall is the state of a step's call. A final call usually has a result; an open one has none.
type StepCall struct {
	Status jig.CallStatus
	Result *jig.ToolResult
	// Tool is the tool of the call; Writes and Idempotent come from its contract.
	Tool               string
	Writes, Idempotent bool
}

// MayRetry reports whether a failed call may be repeated without asking a person; see [ledger.MayRetry]. The repeated call keeps the
// idempotency key and the input.
func (c StepCall) MayRetry() bool { return ledger.MayRetry(c.Writes, c.Idempotent, c.Outcome().Error) }

// Outcome returns the result of a final call, or one derived from its status if the call left no result.
func (c StepCall) Outcome() jig.ToolResult {
	if c.Result != nil {
		return *c.Result
	}
	code, word := jig.CodeInternal, "failed"
	switch c.Status {
	case jig.CallSucceeded:
		return jig.ToolResult{Success: true}
	case jig.CallDenied:
		code, word = jig.CodeDenied, "was denied"
	case jig.CallExpired:
		code, word = jig.CodeExpired, "expired"
	case jig.CallCanceled:
		code, word = jig.CodeCanceled, "was canceled"
	case jig.CallDuplicate:
		code, word = jig.CodeDuplicate, "is a duplicate"
	case jig.CallFailed, jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown:
	}
	return jig.Failure(jig.Errorf(code, "the call %s", word))
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
	// Call is the id under which the call that runs the plan is known outside of its session, <session>/<call>. It may be empty in tests.
	Call string
	// Canceled is set once the run has been canceled: running steps end, and completed ones are undone.
	Canceled bool
}
