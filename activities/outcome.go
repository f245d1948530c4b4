package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// attempt describes an attempt, as far as the verdict on its outcome depends on it.
type attempt struct {
	tool jig.Tool
	// number counts the attempts of the call, from 1; failures counts those that ended with a failure that may pass.
	number, failures int
	// now is when the attempt ended, and failedAt when the first such failure was; zero if this is the first. retryFor is how long after it an attempt
	// may begin.
	now, failedAt time.Time
	retryFor      time.Duration
	// doubt reports that an earlier attempt may have taken effect.
	doubt bool
	// ended says what ended the attempt early.
	ended interruption
}

// interruption says what ended an attempt before its tool had finished.
type interruption int

const (
	// notInterrupted means that the tool ran to its end.
	notInterrupted interruption = iota
	// canceled means that nobody needs the call any more.
	canceled
	// takenOver means that the worker is stopping, or has lost contact with Temporal. Another attempt continues the call.
	takenOver
	// overdue means that the attempt ran out of time.
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

// lostTouch reports whether an activity was canceled by its own worker because its heartbeats do not arrive.
func lostTouch(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return activity.IsActivity(ctx) && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) && !temporal.IsCanceledError(cause)
}

// verdict returns what an outcome means for the ledger: succeeded, failed, canceled, unknown, or reserved for another attempt. For
// a call that is not finished, doubt reports whether its effect may have happened.
//
// A failed call of a tool that writes is unknown unless the failure says that nothing happened and no earlier attempt can have taken
// effect.
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

// again reports whether a call that writes is released for another attempt. An idempotent call is retried whenever it is unclear whether
// its effect happened, because repeating it may settle that.
func (a attempt) again(e *jig.Error) bool {
	if a.ended == canceled || !ledger.MayRetry(a.tool.Permission.Writes(), a.tool.Idempotent, e) {
		return false
	}
	worth := worthRetrying(e.Code) || !e.NoEffect() && e.Code != jig.CodeOutcomeUnknown
	return a.ended == takenOver || worth && a.left(e)
}

// left reports whether another attempt may follow a failure. Failures that may pass are limited by time, others by their number.
func (a attempt) left(e *jig.Error) bool {
	limit := a.tool.MaxAttempts
	switch {
	case limit > 0 && a.number >= limit:
		return false
	case !worthRetrying(e.Code):
		return a.number-a.failures < max(limit, jig.DefaultMaxAttempts)
	case a.failedAt.IsZero():
		return e.RetryAfter <= a.retryFor
	}
	return !a.now.Add(e.RetryAfter).After(a.failedAt.Add(a.retryFor))
}

// failed returns the time of the failure with which an attempt ended, if it may pass.
func (a attempt) failed(outcome jig.ToolResult) time.Time {
	if outcome.Success || !worthRetrying(outcome.Cause().Code) {
		return time.Time{}
	}
	return a.now
}

// retryFor returns how long after the first failure of a call an attempt may begin.
func (a *Activities) retryFor(t jig.Tool) time.Duration { return cmp.Or(t.RetryFor, a.RetryFor) }

// verdictOnRead returns the verdict on a failed call of a tool that only reads or drafts.
func (a attempt) verdictOnRead(e *jig.Error) jig.CallStatus {
	safe := a.tool.Idempotent || e.NotExecuted || e.Code == jig.CodeRateLimited
	switch {
	case a.ended == takenOver && safe:
		return jig.CallReserved
	case a.ended == canceled && safe:
		return jig.CallCanceled
	case !safe && (a.ended != notInterrupted || ambiguous(e.Code)):
		return jig.CallUnknown
	case safe && worthRetrying(e.Code) && a.left(e):
		return jig.CallReserved
	}
	return jig.CallFailed
}

// ambiguous reports whether a failure leaves open whether the effect happened.
func ambiguous(c jig.Code) bool {
	return c == jig.CodeTimeout || c == jig.CodeUnavailable || c == jig.CodeCanceled || c == jig.CodeOutcomeUnknown
}

// worthRetrying reports whether a retry may help. It excludes INTERNAL, because a bug in a tool does not go away by itself.
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

// retryLater returns an error that makes Temporal run the activity again. The ledger has already released the attempt.
func retryLater(e *jig.Error) error {
	if e == nil {
		e = jig.Errorf(jig.CodeUnavailable, "the attempt was released for a retry")
	}
	return temporal.NewApplicationErrorWithOptions(e.Message, string(e.Code), temporal.ApplicationErrorOptions{
		NextRetryDelay: e.RetryAfter, Details: protocol.FailureDetails(e),
	})
}

// endOf returns the final status of a call from the outcome of the workflow that answered it.
func endOf(outcome jig.ToolResult) jig.CallStatus {
	switch {
	case outcome.Success:
		return jig.CallSucceeded
	case outcome.Cause().Code == jig.CodeCanceled:
		return jig.CallCanceled
	}
	return jig.CallFailed
}

// maxCounts is the maximum size, in bytes, of the counts that a preview keeps.
const maxCounts = 512

// unfilled has the members of an extraction's result that count what it left unfilled: of one entity in Counts, of many at the top.
type unfilled struct {
	Counts   json.RawMessage `json:"counts"`
	Partial  int             `json:"partial"`
	Failed   int             `json:"failed"`
	Denied   int             `json:"denied"`
	Canceled int             `json:"canceled"`
}

// keepCounts adds the counts of an extraction to the preview of its result, because they say how it ended.
func keepCounts(preview map[string]any, data []byte) {
	var of unfilled
	if json.Unmarshal(data, &of) != nil {
		return
	}
	if len(of.Counts) > 0 && len(of.Counts) <= maxCounts {
		preview["counts"] = of.Counts
	}
	for name, n := range map[string]int{"partial": of.Partial, "failed": of.Failed, "denied": of.Denied, "canceled": of.Canceled} {
		if n > 0 {
			preview[name] = n
		}
	}
}

// isPartial reports whether a successful extraction left something unfilled: a task of its entity, or one of its entities.
func isPartial(r *jig.ToolResult) bool {
	var all, of unfilled
	if r == nil || json.Unmarshal(r.Data, &all) != nil {
		return false
	}
	if len(all.Counts) > 0 && json.Unmarshal(all.Counts, &of) != nil {
		return false
	}
	return all.Partial+all.Failed+all.Denied+all.Canceled+of.Failed+of.Canceled > 0
}

// cutDown keeps a large result out of the row: it replaces the result with a preview and has the complete result stored separately.
func cutDown(c *ledger.Completion) error {
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
		if named := namedIn(r.Data); len(named) > 0 { // now, while the complete data is available
			preview[namedKey] = named
		}
		keepCounts(preview, r.Data)
		cutData, err := json.Marshal(preview)
		if err != nil {
			return jig.Errorf(jig.CodeInternal, "encoding the result of call %s: %w", c.CallID, err)
		}
		r.Data = cutData
	}
	r.Markdown = jig.Cut(r.Markdown, 8192)
	return nil
}

// progressTime limits how long writing one report may take.
const progressTime = 5 * time.Second

// progress returns the function with which a tool reports progress. It merges reports, so that a tool writes at most four events a second
// however often it reports. Reports are also written while the call is being canceled, because the last ones say how far the tool got.
// flush writes the reports that are left.
func (a *Activities) progress(ctx context.Context, call jig.Call) (report func(string), flush func()) {
	const every = 250 * time.Millisecond
	var (
		mu   sync.Mutex
		text string
		last time.Time
	)
	write := func(s string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), progressTime)
		defer cancel()
		data, err := json.Marshal(map[string]string{"text": jig.Cut(s, 4096)})
		if err == nil {
			err = a.Store.AppendEvents(ctx, call.Tenant, call.SessionID, jig.Event{
				Type: jig.EventToolOutput, Pass: call.Pass, CallID: call.ID, Tool: call.Tool, Data: data,
			})
		}
		if err != nil {
			a.Logger.WarnContext(ctx, "progress was not recorded", slog.String("call_id", call.ID), slog.String("error", err.Error()))
		}
	}
	report = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		text += s
		if a.Now().Sub(last) >= every {
			write(text)
			text, last = "", a.Now()
		}
	}
	flush = func() {
		mu.Lock()
		defer mu.Unlock()
		if text != "" {
			write(text)
			text = ""
		}
	}
	return report, flush
}
