package store_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
)

// The transaction that ends a session records who ended it. Several workers may find the end at the same time.
func TestCancelSession_AuditsTheEndOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit(t, asks(w.call(1)))
	end := ledger.End{
		Tenant: w.tenant, SessionID: w.session, Status: jig.StatusFailed, Reason: jig.ReasonTerminated,
		Audit: &audit.Entry{Kind: audit.AuditTerminated, Reason: "not needed"},
	}
	session, err := w.Session(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	stale := end
	stale.Since = session.UpdatedAt.Add(-1)
	require.NoError(t, w.CancelSession(t.Context(), stale))
	require.Empty(t, w.entries(t), "the session has changed, so it was not ended")

	var all sync.WaitGroup
	problems := make([]error, 4)
	for i := range problems {
		all.Go(func() { problems[i] = w.CancelSession(t.Context(), end) })
	}
	all.Wait()
	for _, err := range problems {
		require.NoError(t, err)
	}
	list := w.entries(t)
	require.Len(t, list, 2)
	require.Equal(t, audit.AuditTerminated, list[0].Kind)
	require.Equal(t, "not needed", list[0].Reason)
	require.Equal(t, audit.AuditWithdrawn, list[1].Kind)
}

func TestCancelSession_OfAnEndWithoutAnEntryIsNotAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session, Status: jig.StatusFailed}))
	require.Empty(t, w.entries(t))
	end, err := w.EndPass(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session, Pass: 1})
	require.NoError(t, err)
	require.Equal(t, jig.StatusFailed, end.Status)
}

func TestMoveFrame_AuditsTheEndOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 1)
	m := w.moving(f)
	m.Done, m.Result = true, &jig.ToolResult{Error: jig.Errorf(jig.CodeCanceled, "canceled")}
	m.Audit = &audit.Entry{Kind: audit.AuditCanceled, SessionID: w.session, Call: root.ID, By: "ana", Claimed: true}
	w.move(t, m)
	requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), m))
	list := w.entries(t)
	require.Len(t, list, 1)
	require.Equal(t, audit.AuditCanceled, list[0].Kind)
	require.Equal(t, root.ID, list[0].Call)
}

// Each activity of a run that came from a reset may record the reset.
func TestRecordOnce_WritesOneEntryForEachSubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := audit.Entry{Kind: audit.AuditReset, SessionID: w.session, Subject: "run-1", Reason: "a test"}
	second := first
	second.Subject = "run-2"
	var all sync.WaitGroup
	problems := make([]error, 8)
	for i := range problems {
		all.Go(func() { problems[i] = w.RecordOnce(t.Context(), w.tenant, []audit.Entry{first, second}[i%2]) })
	}
	all.Wait()
	for _, err := range problems {
		require.NoError(t, err)
	}
	list := w.entries(t)
	require.Len(t, list, 2)
	require.ElementsMatch(t, []string{"run-1", "run-2"}, []string{list[0].Subject, list[1].Subject})
	requireCode(t, jig.CodeInvalidInput, w.RecordOnce(t.Context(), "no.tenant", first))
}
