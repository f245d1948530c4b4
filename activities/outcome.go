package activities

import (
	"context"
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
)

// verdictOn says what an outcome means for the ledger.
func verdictOn(ctx context.Context, tool jig.Tool, outcome jig.ToolResult, fence int) jig.CallStatus {
	if outcome.Success {
		return jig.CallSucceeded
	}
	e := outcome.Error
	if e == nil {
		return jig.CallFailed
	}
	safe := tool.Idempotent || e.NotExecuted || e.Code == jig.CodeRateLimited
	interrupted := ctx.Err() != nil
	switch {
	case interrupted && workerStopping(ctx):
		// The worker is going away: another one takes over when that is safe.
		if safe {
			return jig.CallReserved
		}
		return jig.CallUnknown
	case interrupted && errors.Is(ctx.Err(), context.Canceled) && safe:
		return jig.CallCanceled
	case !safe && (interrupted || ambiguous(e.Code)):
		return jig.CallUnknown
	case safe && worthRetrying(e.Code) && fence < tool.MaxAttempts:
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
