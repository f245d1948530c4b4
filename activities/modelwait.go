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

// The waits between the requests for a turn that fail: ModelBackoff at first, twice as long each time, at most MaxModelBackoff. A turn is
// requested at most ModelAttempts times.
const (
	ModelBackoff    = time.Second
	MaxModelBackoff = time.Minute
	ModelAttempts   = 10
)

// unanswered returns the error of a request for a turn that failed with err. If the model is asked again, it records when, and why; an answer
// that is broken again and again is final.
func (a *Activities) unanswered(ctx context.Context, session jig.Session, pass int, err error) error {
	e := jig.AsError(err)
	if err == nil || budget.Waits(err) || !e.Code.Retryable() {
		return err
	}
	wait := ledger.ModelWait{Pass: pass, Code: e.Code, Reason: e.Reason, Message: e.Message, Attempt: 1, Same: 1}
	last, failed := a.store.ModelWait(ctx, session.Tenant, session.ID)
	if failed != nil {
		return err // the database is down, so the retry will not come far
	}
	if last != nil && last.Pass == pass {
		wait.Attempt = last.Attempt + 1
		if last.Reason == e.Reason {
			wait.Same = last.Same + 1
		}
	}
	if err = chat.AskedAgain(err, wait.Same-1); jig.CodeOf(err) != e.Code {
		return err
	}
	attempt, local := attemptOf(ctx)
	if attempt >= ModelAttempts {
		return err
	}
	delayed := *e
	if delayed.RetryAfter = max(e.RetryAfter, min(ModelBackoff<<(attempt-1), MaxModelBackoff)); local {
		delayed.RetryAfter = 0 // the workflow asks at once, in an activity
	}
	wait.Next = a.now().Add(delayed.RetryAfter).UTC()
	if failed = a.store.NoteModelWait(ctx, session.Tenant, session.ID, wait); failed != nil {
		a.logger.WarnContext(ctx, "a wait for a model could not be recorded", slog.String("session_id", session.ID), slog.Any("error", failed))
	}
	return &delayed
}

// attemptOf returns how often the activity has been tried, and whether it is a local one. Outside an activity, it is the first attempt.
func attemptOf(ctx context.Context) (attempt int, local bool) {
	if !activity.IsActivity(ctx) {
		return 1, false
	}
	info := activity.GetInfo(ctx)
	return int(info.Attempt), info.IsLocalActivity
}
