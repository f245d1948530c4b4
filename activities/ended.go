package activities

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
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

// withoutEnded closes the sessions on a page of approvals whose workflows have ended, and removes their approvals from the page.
func (a *Activities) withoutEnded(ctx context.Context, tenant string, page []jig.Pending) []jig.Pending {
	if a.Runs == nil || len(page) == 0 {
		return page
	}
	var ids []string
	for _, p := range page {
		ids = append(ids, p.SessionID)
	}
	slices.Sort(ids)
	ended, err := a.Runs.Ended(ctx, slices.Compact(ids))
	if err != nil {
		a.Logger.WarnContext(ctx, "it is not known which sessions were ended externally", slog.String("tenant", tenant), slog.String("error", err.Error()))
		return page
	}
	for _, id := range ended {
		session, err := a.Store.Session(ctx, tenant, id)
		if err == nil && (session.Status.Final() || a.closeIfEnded(ctx, tenant, id, session.Status, session.UpdatedAt)) {
			page = slices.DeleteFunc(page, func(p jig.Pending) bool { return p.SessionID == id })
		}
	}
	return page
}
