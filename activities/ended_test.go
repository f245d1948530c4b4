package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// inbox is a store of sessions that wait for a person, together with Temporal's view of their workflows.
type inbox struct {
	activities.Store
	sessions map[string]*jig.Session
	// over lists the ids that have an ended run, and open the ids that have an open run.
	over, open []string
	// down is the error that Temporal returns when it is unavailable.
	down error
	// ending is how Temporal says that workflows were ended.
	ending ledger.Ending
	ends   []ledger.End
}

var lastChange = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newInbox(ids ...string) *inbox {
	box := &inbox{sessions: map[string]*jig.Session{}, open: ids}
	for _, id := range ids {
		box.sessions[id] = &jig.Session{Tenant: "acme", ID: id, Status: jig.StatusWorking, UpdatedAt: lastChange}
	}
	return box
}

// terminate ends the workflow of a session like `temporal workflow terminate`: the store is not told.
func (b *inbox) terminate(id string) {
	b.open = slices.DeleteFunc(slices.Clone(b.open), func(other string) bool { return other == id })
	b.over = append(b.over, id)
}

func (b *inbox) pending(id string) []jig.Pending {
	if b.sessions[id].Status.Final() {
		return nil
	}
	return []jig.Pending{{SessionID: id, Call: "1.1"}}
}

func (b *inbox) Session(_ context.Context, _, id string) (jig.Session, error) {
	return *b.sessions[id], nil
}

func (b *inbox) SessionView(_ context.Context, _, id string) (jig.SessionView, error) {
	s := b.sessions[id]
	view := jig.SessionView{SessionID: id, Status: s.Status, Reason: s.Reason, Pending: b.pending(id), UpdatedAt: s.UpdatedAt}
	if len(view.Pending) > 0 {
		view.Status = jig.StatusInputRequired
	}
	return view, nil
}

func (b *inbox) PendingApprovals(context.Context, string, string, int) (list []jig.Pending, next string, err error) {
	for _, id := range slices.Sorted(maps.Keys(b.sessions)) {
		list = append(list, b.pending(id)...)
	}
	return list, "", nil
}

func (b *inbox) ListPending(ctx context.Context, tenant string, _ jig.PendingFilter, cursor string, limit int) (list []jig.Pending, next string, err error) {
	return b.PendingApprovals(ctx, tenant, cursor, limit)
}

func (b *inbox) WaitEvents(context.Context, string, string, int64, int) ([]jig.Event, error) {
	return nil, nil
}

func (b *inbox) Events(_ context.Context, _, id string, _ int64, _ int) ([]jig.Event, error) {
	if b.sessions[id].Status.Final() {
		return []jig.Event{{Seq: 1, Type: jig.EventSessionFailed}}, nil
	}
	return nil, nil
}

func (b *inbox) CancelSession(_ context.Context, end ledger.End) error {
	b.ends = append(b.ends, end)
	b.sessions[end.SessionID].Status, b.sessions[end.SessionID].Reason = end.Status, end.Reason
	return nil
}

func (b *inbox) Open(_ context.Context, _, id string) (bool, error) {
	return slices.Contains(b.open, id), b.down
}

func (b *inbox) Ended(_ context.Context, ids []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(b.over, id) }), b.down
}

func (b *inbox) Ending(context.Context, string, string) (ledger.Ending, error) {
	return b.ending, b.down
}

func (b *inbox) ResetReason(context.Context, string, string) (string, error) { return "", b.down }

func (b *inbox) activities() *activities.Activities {
	return activities.New(activities.Deps{Policy: noPolicies{}, Store: b, Runs: b, Logger: slog.New(slog.DiscardHandler)})
}

func sessionsOf(list []jig.Pending) []string {
	ids := []string{}
	for _, p := range list {
		ids = append(ids, p.SessionID)
	}
	return ids
}

// A session whose workflow was terminated is not shown as waiting, even before the sweeper has closed it.
func TestStatus_TerminatedWorkflowIsFailed(t *testing.T) {
	t.Parallel()
	box := newInbox("ses_1")
	view, err := box.activities().Status(t.Context(), protocol.StatusRequest{Tenant: "acme", SessionID: "ses_1"})
	require.NoError(t, err)
	require.Equal(t, jig.StatusInputRequired, view.Status)

	box.terminate("ses_1")
	view, err = box.activities().Status(t.Context(), protocol.StatusRequest{Tenant: "acme", SessionID: "ses_1"})
	require.NoError(t, err)
	require.Equal(t, jig.StatusFailed, view.Status)
	require.Equal(t, jig.ReasonTerminated, view.Reason)
	require.Empty(t, view.Pending)
	require.Len(t, box.ends, 1)
	require.Equal(t, lastChange, box.ends[0].Since, "a session that continues in the meantime is left alone")
}

// A workflow that is canceled while a quick read kills its worker closes without recording that: the worker forgets what it had done since the
// last workflow task.
func TestStatus_CanceledWorkflowThatRecordedNothingIsCanceled(t *testing.T) {
	t.Parallel()
	box := newInbox("ses_1")
	box.terminate("ses_1")
	box.ending = ledger.Ending{How: ledger.EndedCanceled, Reason: protocol.CancelReason("ana", "not needed")}
	view, err := box.activities().Status(t.Context(), protocol.StatusRequest{Tenant: "acme", SessionID: "ses_1"})
	require.NoError(t, err)
	require.Equal(t, []any{jig.StatusCanceled, ""}, []any{view.Status, view.Reason})
	require.Nil(t, box.ends[0].Error)
	require.Equal(t, []any{audit.AuditCanceled, "ana"}, []any{box.ends[0].Audit.Kind, box.ends[0].Audit.By})
}

func TestApprovals_TerminatedWorkflowWaitsForNobody(t *testing.T) {
	t.Parallel()
	box := newInbox("ses_1", "ses_2", "ses_3")
	box.terminate("ses_2")
	box.over = append(box.over, "ses_3") // an earlier run of it ended; another is open
	page, err := box.activities().ListApprovals(t.Context(), protocol.ApprovalsRequest{Tenant: "acme"})
	require.NoError(t, err)
	require.Equal(t, []string{"ses_1", "ses_3"}, sessionsOf(page.Approvals))
	require.Len(t, box.ends, 1)

	box.terminate("ses_1")
	page, err = box.activities().ListPending(t.Context(), protocol.PendingRequest{Tenant: "acme"})
	require.NoError(t, err)
	require.Equal(t, []string{"ses_3"}, sessionsOf(page.Approvals))

	box.terminate("ses_3")
	page, err = box.activities().ListApprovals(t.Context(), protocol.ApprovalsRequest{Tenant: "acme", SessionID: "ses_3"})
	require.NoError(t, err)
	require.Empty(t, page.Approvals)
}

func TestEvents_TerminatedWorkflowEndsTheWait(t *testing.T) {
	t.Parallel()
	box := newInbox("ses_1")
	request := protocol.EventsRequest{Tenant: "acme", SessionID: "ses_1", Wait: time.Minute}
	page, err := box.activities().ListEvents(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, jig.StatusInputRequired, page.Status, "a call in it waits for a person")

	box.terminate("ses_1")
	page, err = box.activities().ListEvents(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, jig.StatusFailed, page.Status)
	require.Len(t, page.Events, 1)
}

func TestReads_WorkWhileTemporalIsUnavailable(t *testing.T) {
	t.Parallel()
	box := newInbox("ses_1")
	box.terminate("ses_1")
	box.down = errors.New("busy")
	view, err := box.activities().Status(t.Context(), protocol.StatusRequest{Tenant: "acme", SessionID: "ses_1"})
	require.NoError(t, err)
	require.Equal(t, jig.StatusInputRequired, view.Status)
	page, err := box.activities().ListApprovals(t.Context(), protocol.ApprovalsRequest{Tenant: "acme"})
	require.NoError(t, err)
	require.Len(t, page.Approvals, 1)
	require.Empty(t, box.ends)
}

// Settled implements activities.Runs. It does nothing.
func (b *inbox) Settled(context.Context, string, protocol.Settlement) error { return nil }
