package activities

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
)

// The waits between the requests for a turn, or of a call that asks a model, that fail: ModelBackoff at first, twice as long each time, at most
// MaxModelBackoff. A turn is requested at most ModelAttempts times.
const (
	ModelBackoff    = time.Second
	MaxModelBackoff = time.Minute
	ModelAttempts   = chat.MaxRequests
)

// modelFailed returns the error of a request for a turn that failed with err. If the model is asked again, it records when, and why; an answer
// that is broken again and again is final.
func (a *Activities) modelFailed(ctx context.Context, session jig.Session, pass int, err error) error {
	if err == nil || budget.Waits(err) || !jig.AsError(err).Code.Retryable() {
		return err
	}
	wait, e := a.modelRetry(ctx, session.Tenant, session.ID, ledger.ModelWait{Pass: pass}, jig.AsError(err))
	if e.Code.Retryable() && max(wait.Attempt, attemptOf(ctx)) < ModelAttempts {
		a.noteModelWait(ctx, session.Tenant, session.ID, wait)
	}
	return e
}

// modelRetry completes what is known of a wait before a model is asked again, because a request failed with err. It returns the error to fail
// with, whose RetryAfter is the length of the wait. An answer that is broken again and again is final.
func (a *Activities) modelRetry(ctx context.Context, tenant, id string, wait ledger.ModelWait, err *jig.Error) (ledger.ModelWait, *jig.Error) {
	wait.Code, wait.Reason, wait.Message, wait.Attempt, wait.Same = err.Code, err.Reason, err.Message, max(wait.Attempt, 1), 1
	last, failed := a.Store.ModelWait(ctx, tenant, id, wait.Call)
	if failed != nil {
		return wait, err // the database is down, so the retry will not come far
	}
	if last != nil && last.Pass == wait.Pass {
		wait.Attempt = max(wait.Attempt, last.Attempt+1)
		if last.Reason == err.Reason {
			wait.Same = last.Same + 1
		}
	}
	e := *chat.AskedAgain(err, wait.Same-1)
	if e.Code.Retryable() {
		e.RetryAfter = max(e.RetryAfter, min(ModelBackoff<<(wait.Attempt-1), MaxModelBackoff))
		wait.Next = a.Now().Add(e.RetryAfter).UTC()
	}
	return wait, &e
}

// noteModelWait records a wait, with an event, unless its end is not known.
func (a *Activities) noteModelWait(ctx context.Context, tenant, id string, wait ledger.ModelWait) {
	if wait.Next.IsZero() {
		return
	}
	if err := a.Store.NoteModelWait(ctx, tenant, id, wait); err != nil {
		a.Logger.WarnContext(ctx, "a wait for a model could not be recorded", slog.String("session_id", id), slog.Any("error", err))
	}
}

// callModelRetry returns the wait before a call asks a model again, because its provider failed; nil if the call failed for another reason. It
// puts the error to fail with into the outcome.
func (a *Activities) callModelRetry(ctx context.Context, r ledger.Reservation, outcome *jig.ToolResult) *ledger.ModelWait {
	if outcome.Success || !chat.FromProvider(outcome.Error) {
		return nil
	}
	wait, e := a.modelRetry(ctx, r.Call.Tenant, r.Call.SessionID, ledger.ModelWait{Pass: r.Call.Pass, Call: r.Call.ID, Attempt: r.Fence}, outcome.Error)
	outcome.Error = e
	return &wait
}

// attemptOf returns how often the activity has been tried. Outside an activity, it is the first attempt.
func attemptOf(ctx context.Context) int {
	if !activity.IsActivity(ctx) {
		return 1
	}
	return int(activity.GetInfo(ctx).Attempt)
}
