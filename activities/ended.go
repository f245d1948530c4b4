package activities

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// closeEnded closes the sessions whose workflow ended without a word to the store. One that cannot be closed does not keep others open.
func (a *Activities) closeEnded(ctx context.Context) (swept Swept, err error) {
	if a.runs == nil {
		return swept, nil
	}
	live, err := a.store.LiveSessions(ctx, maxSwept)
	if err != nil {
		return swept, err
	}
	var failed error
	for _, s := range live {
		open, err := a.runs.Open(ctx, s.Tenant, s.ID)
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
		case jig.CodeOf(err) == jig.CodeUnavailable || ctx.Err() != nil: // so it is for the others
			return swept, errors.Join(failed, err)
		default:
			failed = err
			a.logger.ErrorContext(ctx, "a session that was ended from outside cannot be closed",
				slog.String("tenant", s.Tenant), slog.String("session_id", s.ID), slog.String("error", err.Error()))
		}
	}
	return swept, failed
}

// endFromOutside closes a session whose workflow was terminated or timed out, unless it changed after since.
func (a *Activities) endFromOutside(ctx context.Context, tenant, id string, since time.Time) error {
	return a.store.CancelSession(ctx, jig.End{
		Tenant: tenant, SessionID: id, Status: jig.StatusFailed, Reason: jig.ReasonTerminated, Since: since,
		Error: jig.Errorf(jig.CodeCanceled, "the workflow was ended from outside").WithReason(jig.ReasonTerminated).
			WithHint("a message continues the session"),
	})
}

// sessionView reads a session. Where the store takes a session for live whose workflow has ended, the session is closed first: nobody
// reads of a session that it waits when nothing will ever come of that.
func (a *Activities) sessionView(ctx context.Context, tenant, id string) (jig.SessionView, error) {
	view, err := a.store.SessionView(ctx, tenant, id)
	if err != nil || !a.closeIfEnded(ctx, tenant, id, view.Status, view.UpdatedAt) {
		return view, err
	}
	return a.store.SessionView(ctx, tenant, id)
}

// closeIfEnded closes a session whose workflow has ended, and reports whether it did. What keeps it from finding out is logged: the
// sweeper will find out, too.
func (a *Activities) closeIfEnded(ctx context.Context, tenant, id string, status jig.Status, since time.Time) bool {
	if a.runs == nil || status.Final() {
		return false
	}
	open, err := a.runs.Open(ctx, tenant, id)
	if err == nil && !open {
		err = a.endFromOutside(ctx, tenant, id, since)
	}
	if err != nil {
		a.logger.WarnContext(ctx, "it is not known whether a session was ended from outside",
			slog.String("tenant", tenant), slog.String("session_id", id), slog.String("error", err.Error()))
		return false
	}
	return !open
}

// withoutEnded closes the sessions of a page of approvals whose workflows have ended, and takes their approvals off the page.
func (a *Activities) withoutEnded(ctx context.Context, tenant string, page []jig.Pending) []jig.Pending {
	if a.runs == nil || len(page) == 0 {
		return page
	}
	var ids []string
	for _, p := range page {
		ids = append(ids, p.SessionID)
	}
	slices.Sort(ids)
	ended, err := a.runs.Ended(ctx, slices.Compact(ids))
	if err != nil {
		a.logger.WarnContext(ctx, "it is not known which sessions were ended from outside", slog.String("tenant", tenant), slog.String("error", err.Error()))
		return page
	}
	for _, id := range ended {
		session, err := a.store.Session(ctx, tenant, id)
		if err == nil && (session.Status.Final() || a.closeIfEnded(ctx, tenant, id, session.Status, session.UpdatedAt)) {
			page = slices.DeleteFunc(page, func(p jig.Pending) bool { return p.SessionID == id })
		}
	}
	return page
}
