package activities

import (
	"context"
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
)

// attempt is what the ledger's verdict on a failure depends on, beside the failure itself.
type attempt struct {
	tool jig.Tool
	// number counts the attempts of the call from 1.
	number int
	// doubt says that an earlier attempt may have taken effect.
	doubt bool
	// ended says what ended the attempt early.
	ended interruption
}

// interruption says what ended an attempt before its tool was done.
type interruption int

const (
	// notInterrupted: the tool came to its end.
	notInterrupted interruption = iota
	// canceled: nobody needs the call any more.
	canceled
	// takenOver: the worker stops, or lost touch with Temporal; another attempt goes on with the call.
	takenOver
	// overdue: the attempt ran out of time.
	overdue
)

func interruptionOf(ctx context.Context) interruption {
	switch {
	case ctx.Err() == nil:
		return notInterrupted
	case workerStopping(ctx) || lostTouch(ctx):
		return takenOver
	case errors.Is(ctx.Err(), context.Canceled):
		return canceled
	}
	return overdue
}

// lostTouch reports whether an activity was cancelled by its own worker because its heartbeats do not arrive.
func lostTouch(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return activity.IsActivity(ctx) && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) && !temporal.IsCanceledError(cause)
}

// verdict says what an outcome means for the ledger: succeeded, failed, canceled, unknown, or reserved for another attempt. doubt
// says of a call that is not over whether its effect may have happened.
//
// A failed call of a tool that writes is unknown unless the failure says that nothing happened, and no earlier attempt is in doubt.
func (a attempt) verdict(outcome jig.ToolResult) (status jig.CallStatus, doubt bool) {
	if outcome.Success {
		return jig.CallSucceeded, false
	}
	e := outcome.Cause()
	if !a.tool.Permission.Writes() {
		return a.verdictOnRead(e), false
	}
	doubt = a.doubt || !e.NoEffect()
	switch {
	case a.again(e):
		return jig.CallReserved, doubt
	case doubt:
		return jig.CallUnknown, true
	case a.ended == canceled:
		return jig.CallCanceled, false
	}
	return jig.CallFailed, false
}

// again reports whether a call that writes is given back for another attempt. An idempotent one is tried again whenever its effect is
// in doubt, because the repetition may settle that.
func (a attempt) again(e *jig.Error) bool {
	if a.ended == canceled || !a.tool.MayRetry(e) {
		return false
	}
	worth := worthRetrying(e.Code) || !e.NoEffect() && e.Code != jig.CodeOutcomeUnknown
	return a.ended == takenOver || worth && a.number < a.tool.MaxAttempts
}

// verdictOnRead is the verdict on a failed call that changes nothing, or drafts alone.
func (a attempt) verdictOnRead(e *jig.Error) jig.CallStatus {
	safe := a.tool.Idempotent || e.NotExecuted || e.Code == jig.CodeRateLimited
	switch {
	case a.ended == takenOver && safe:
		return jig.CallReserved
	case a.ended == canceled && safe:
		return jig.CallCanceled
	case !safe && (a.ended != notInterrupted || ambiguous(e.Code)):
		return jig.CallUnknown
	case safe && worthRetrying(e.Code) && a.number < a.tool.MaxAttempts:
		return jig.CallReserved
	}
	return jig.CallFailed
}

// ambiguous reports whether a failure leaves open if the effect happened.
func ambiguous(c jig.Code) bool {
	return c == jig.CodeTimeout || c == jig.CodeUnavailable || c == jig.CodeCanceled || c == jig.CodeOutcomeUnknown
}

// worthRetrying leaves out INTERNAL: a tool's own bug does not go away by itself.
func worthRetrying(c jig.Code) bool {
	return c == jig.CodeTimeout || c == jig.CodeUnavailable || c == jig.CodeRateLimited
}

func workerStopping(ctx context.Context) bool {
	if !activity.IsActivity(ctx) {
		return false
	}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}

// retryLater makes Temporal run the activity again; the ledger has the attempt back.
func retryLater(e *jig.Error) error {
	if e == nil {
		e = jig.Errorf(jig.CodeUnavailable, "the attempt was given back")
	}
	return temporal.NewApplicationErrorWithOptions(e.Message, string(e.Code), temporal.ApplicationErrorOptions{
		NextRetryDelay: e.RetryAfter, Details: []any{e},
	})
}

// endOf is where a call ends with the outcome of the workflow that answered it.
func endOf(outcome jig.ToolResult) jig.CallStatus {
	switch {
	case outcome.Success:
		return jig.CallSucceeded
	case outcome.Cause().Code == jig.CodeCanceled:
		return jig.CallCanceled
	}
	return jig.CallFailed
}

// maxCounts bounds the counts that stay with a result that is cut down, in bytes.
const maxCounts = 512

// cutDown keeps a large result out of the row: its whole goes aside, a preview stays.
func cutDown(c *jig.Completion) error {
	r := &c.Result
	if len(r.Data)+len(r.Markdown) <= jig.InlineBytes {
		return nil
	}
	whole, err := json.MarshalIndent(*r, "", "  ")
	if err != nil {
		return jig.Errorf(jig.CodeInternal, "encoding the result of call %s: %w", c.CallID, err)
	}
	c.Whole = whole
	if len(r.Data) > jig.InlineBytes/2 {
		preview := map[string]any{"truncated": true, "size": len(r.Data), "preview": jig.Cut(string(r.Data), 4096)}
		if named := namedIn(r.Data); len(named) > 0 { // once, while the whole is at hand
			preview[namedKey] = named
		}
		var of struct {
			Counts json.RawMessage `json:"counts"`
		}
		if json.Unmarshal(r.Data, &of) == nil && len(of.Counts) > 0 && len(of.Counts) <= maxCounts {
			preview["counts"] = of.Counts // an extraction's: how it ended
		}
		cutData, err := json.Marshal(preview)
		if err != nil {
			return jig.Errorf(jig.CodeInternal, "encoding the result of call %s: %w", c.CallID, err)
		}
		r.Data = cutData
	}
	r.Markdown = jig.Cut(r.Markdown, 8192)
	return nil
}
