package activities

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// closeEnded closes the sessions whose workflow ended without updating the store. If one session cannot be closed, the others still are.
func (a *Activities) closeEnded(ctx context.Context) (swept Swept, err error) {
	if a.Runs == nil {
		return swept, nil
	}
	live, err := a.Store.LiveSessions(ctx, maxSwept)
	if err != nil {
		return swept, err
	}
	var failed error
	for _, s := range live {
		open, err := a.Runs.Open(ctx, s.Tenant, s.ID)
		if err != nil {
			return swept, errors.Join(failed, err)
		}
		if open {
			continue
		}
		err = a.endFromOutside(ctx, s.Tenant, s.ID, s.UpdatedAt)
		switch {
		case err == nil:
			swept.Closed++
		case jig.CodeOf(err) == jig.CodeUnavailable || ctx.Err() != nil: // the others would fail too
			return swept, errors.Join(failed, err)
		default:
			failed = err
			a.Logger.ErrorContext(ctx, "a session that was ended externally cannot be closed",
				slog.String("tenant", s.Tenant), slog.String("session_id", s.ID), slog.String("error", err.Error()))
		}
	}
	return swept, failed
}

// endFromOutside closes a session whose workflow ended without recording it: it was terminated, it timed out, or it was canceled in a run that
// lost what it had done because its worker died. It does nothing if the session has changed later than since.
func (a *Activities) endFromOutside(ctx context.Context, tenant, id string, since time.Time) error {
	end := ledger.End{Tenant: tenant, SessionID: id, Status: jig.StatusCanceled, Since: since, Audit: a.endedBy(ctx, tenant, id, audit.AuditTerminated)}
	if end.Audit == nil || end.Audit.Kind != audit.AuditCanceled {
		end.Status, end.Reason = jig.StatusFailed, jig.ReasonTerminated
		end.Error = jig.Errorf(jig.CodeCanceled, "the workflow was ended externally").WithReason(jig.ReasonTerminated).
			WithHint("send a message to continue the session")
	}
	return a.Store.CancelSession(ctx, end)
}

// sessionView reads a session. If its workflow has ended but the store still considers it live, the session is closed first, so that
// nobody sees a waiting session that can never continue.
func (a *Activities) sessionView(ctx context.Context, tenant, id string) (jig.SessionView, error) {
	view, err := a.Store.SessionView(ctx, tenant, id)
	if err != nil || !a.closeIfEnded(ctx, tenant, id, view.Status, view.UpdatedAt) {
		return view, err
	}
	return a.Store.SessionView(ctx, tenant, id)
}

// closeIfEnded closes a session whose workflow has ended, and reports whether it did. Errors are only logged, because the sweeper
// will try again.
func (a *Activities) closeIfEnded(ctx context.Context, tenant, id string, status jig.Status, since time.Time) bool {
	if a.Runs == nil || status.Final() {
		return false
	}
	open, err := a.Runs.Open(ctx, tenant, id)
	if err == nil && !open {
		err = a.endFromOutside(ctx, tenant, id, since)
	}
	if err != nil {
		a.Logger.WarnContext(ctx, "it is not known whether a session was ended externally",
			slog.String("tenant", tenant), slog.String("session_id", id), slog.String("error", err.Error()))
		return false
	}
	return !open
}

// endedAmong returns the sessions whose workflows have an ended run. If Temporal cannot be asked, it logs that and returns none.
func (a *Activities) endedAmong(ctx context.Context, tenant string, ids []string) []string {
	if a.Runs == nil || len(ids) == 0 {
		return nil
	}
	ended, err := a.Runs.Ended(ctx, ids)
	if err != nil {
		a.Logger.WarnContext(ctx, "it is not known which sessions were ended externally", slog.String("tenant", tenant), slog.String("error", err.Error()))
	}
	return ended
}

// withoutEnded closes the sessions on a page of approvals whose workflows have ended, and removes their approvals from the page.
func (a *Activities) withoutEnded(ctx context.Context, tenant string, page []jig.Pending) []jig.Pending {
	var ids []string
	for _, p := range page {
		ids = append(ids, p.SessionID)
	}
	slices.Sort(ids)
	for _, id := range a.endedAmong(ctx, tenant, slices.Compact(ids)) {
		session, err := a.Store.Session(ctx, tenant, id)
		if err == nil && (session.Status.Final() || a.closeIfEnded(ctx, tenant, id, session.Status, session.UpdatedAt)) {
			page = slices.DeleteFunc(page, func(p jig.Pending) bool { return p.SessionID == id })
		}
	}
	return page
}

// nobody is the note of an entry for which Temporal has no name.
const nobody = "Temporal does not say who did it"

// askTimeout limits how long an end waits for Temporal to say who asked for it.
const askTimeout = 5 * time.Second

// endedBy returns the audit entry which says how a workflow was ended from outside, and by whom as far as Temporal knows. It is nil if the
// workflow ended by itself, or was canceled by its parent, and without [Deps].Runs. If Temporal does not say how it ended, the entry has the given kind. If Temporal does
// not answer, the entry says so: an end that somebody asked for must not fail because nobody knows who it was.
func (a *Activities) endedBy(ctx context.Context, tenant, workflowID string, kind audit.Kind) *audit.Entry {
	if a.Runs == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ending, err := a.Runs.Ending(ctx, tenant, workflowID)
	if err != nil {
		a.Logger.WarnContext(ctx, "it is not known who ended a workflow",
			slog.String("tenant", tenant), slog.String("workflow_id", workflowID), slog.String("error", err.Error()))
		return &audit.Entry{Kind: kind, Note: "Temporal could not be asked who did it"}
	}
	return endedEntry(ending, kind)
}

// recordUnnoticed records that the workflow of a session was ended from outside, if a message started another run before jig noticed the end.
// Nothing has changed the session since then. If something has, it is this run, whose worker died.
func (a *Activities) recordUnnoticed(ctx context.Context, in OpenInput, session jig.Session) error {
	if in.Began.IsZero() || !session.UpdatedAt.Before(in.Began) {
		return nil
	}
	return a.Store.RecordOnce(ctx, in.Tenant, audit.Entry{
		Kind: audit.AuditTerminated, SessionID: in.SessionID, Subject: in.Began.UTC().Format(time.RFC3339Nano),
		Reason: "its workflow had ended, and a message continued the session", Note: nobody,
	})
}

// endedEntry translates what Temporal says about the end of a workflow. A reason that names somebody is a claim, because anybody can send one.
func endedEntry(ending ledger.Ending, kind audit.Kind) *audit.Entry {
	e := audit.Entry{Kind: kind, Reason: ending.Reason, Note: nobody}
	switch ending.How {
	case ledger.EndedItself:
		return nil
	case ledger.EndedSomehow:
	case ledger.EndedTerminated:
		e.Kind = audit.AuditTerminated
	case ledger.EndedTimedOut:
		e.Kind, e.Reason, e.Note = audit.AuditTerminated, "the time that was set for the workflow was over", ""
	case ledger.EndedGone:
		e.Kind, e.Reason = audit.AuditTerminated, "Temporal does not know the workflow"
	case ledger.EndedCanceled:
		e.Kind = audit.AuditCanceled
		if e.By, e.Reason = protocol.CanceledBy(ending.Reason); e.By != "" {
			e.Claimed, e.Note = true, ""
		}
	}
	if ending.Identity != "" {
		from := "the request came from " + strconv.Quote(ending.Identity)
		if e.Note != "" {
			from = e.Note + "; " + from
		}
		e.Note = from
	}
	return &e
}

// maxResets is how many runs a worker remembers whose resets it has recorded. A forgotten one is looked for in the audit again.
const maxResets = 1000

// RecordResets returns an interceptor for the worker that runs the activities. Before the first activity of a run that came from a reset, it
// records the reset. If that fails, the activity fails and is tried again, so no reset is lost whose run does anything.
func RecordResets(a *Activities) interceptor.WorkerInterceptor {
	return &resetInterceptor{activities: a}
}

type resetInterceptor struct {
	interceptor.WorkerInterceptorBase
	activities *Activities
}

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (i *resetInterceptor) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &resetRecorder{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, activities: i.activities}
}

type resetRecorder struct {
	interceptor.ActivityInboundInterceptorBase
	activities *Activities
}

// ExecuteActivity implements [interceptor.ActivityInboundInterceptor].
func (r *resetRecorder) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	for _, arg := range in.Args {
		if from, ok := arg.(interface{ Ref() protocol.SessionRef }); ok && from.Ref().Reset {
			if err := r.activities.recordReset(ctx, from.Ref()); err != nil {
				return nil, temporalError(err)
			}
		}
	}
	return r.Next.ExecuteActivity(ctx, in) //nolint:wrapcheck // the error is the activity's
}

// recordReset records in the audit that the workflow run of this activity came from a reset, once for each run.
func (a *Activities) recordReset(ctx context.Context, ref protocol.SessionRef) error {
	run := activity.GetInfo(ctx).WorkflowExecution
	if run.ID != ref.SessionID && !strings.HasPrefix(run.ID, jig.QualifiedCallID(ref.SessionID, "")) {
		return nil // not a workflow of the session, whatever it says
	}
	_, err := a.resets.Get(run.RunID, func(struct{}, bool) (struct{}, error) {
		e := audit.Entry{Kind: audit.AuditReset, SessionID: ref.SessionID, Subject: run.RunID, Note: nobody}
		e.Call, _ = strings.CutPrefix(strings.TrimPrefix(run.ID, ref.SessionID), "/")
		if a.Runs != nil {
			asking, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			var err error
			if e.Reason, err = a.Runs.ResetReason(asking, run.ID, run.RunID); err != nil {
				a.Logger.WarnContext(ctx, "it is not known why a workflow was reset", slog.String("workflow_id", run.ID), slog.String("error", err.Error()))
			}
		}
		return struct{}{}, a.Store.RecordOnce(ctx, ref.Tenant, e)
	})
	return err
}
