package activities

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

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
