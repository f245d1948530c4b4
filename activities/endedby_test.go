package activities_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// The end of a session that somebody canceled or terminated goes to the audit, with what Temporal knows about the request.
func TestEnd_SaysWhoAskedForIt(t *testing.T) {
	t.Parallel()
	const nobody = "Temporal does not say who did it"
	for name, row := range map[string]struct {
		ending ledger.Ending
		down   error
		want   *audit.Entry
	}{
		"canceled through jig": {
			ending: ledger.Ending{How: ledger.EndedCanceled, Reason: protocol.CancelReason("ana", "not needed"), Identity: "4711@desk"},
			want: &audit.Entry{
				Kind: audit.AuditCanceled, By: "ana", Claimed: true, Reason: "not needed", Note: `the request came from "4711@desk"`,
			},
		},
		"canceled at Temporal": {
			ending: ledger.Ending{How: ledger.EndedCanceled, Reason: "by hand", Identity: "4711@desk"},
			want:   &audit.Entry{Kind: audit.AuditCanceled, Reason: "by hand", Note: nobody + `; the request came from "4711@desk"`},
		},
		"terminated, with a name in the reason": {
			ending: ledger.Ending{How: ledger.EndedTerminated, Reason: "canceled by ana"},
			want:   &audit.Entry{Kind: audit.AuditTerminated, Reason: "canceled by ana", Note: nobody},
		},
		"timed out": {
			ending: ledger.Ending{How: ledger.EndedTimedOut},
			want:   &audit.Entry{Kind: audit.AuditTerminated, Reason: "the time that was set for the workflow was over"},
		},
		"deleted": {
			ending: ledger.Ending{How: ledger.EndedGone},
			want:   &audit.Entry{Kind: audit.AuditTerminated, Reason: "Temporal does not know the workflow", Note: nobody},
		},
		"not in the history": {want: &audit.Entry{Kind: audit.AuditCanceled, Note: nobody}},
		"by its parent":      {ending: ledger.Ending{How: ledger.EndedItself}},
		"no answer": {
			down: errors.New("busy"), want: &audit.Entry{Kind: audit.AuditCanceled, Note: "Temporal could not be asked who did it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := newInbox("ses_1")
			box.ending, box.down = row.ending, row.down
			in := activities.EndInput{Status: jig.StatusCanceled}
			in.Tenant, in.SessionID = "acme", "ses_1"
			require.NoError(t, box.activities().End(t.Context(), in))
			require.Len(t, box.ends, 1)
			require.Equal(t, row.want, box.ends[0].Audit)
		})
	}
}

func TestEnd_OfItselfNeedsNoAudit(t *testing.T) {
	t.Parallel()
	for _, in := range []activities.EndInput{
		{Status: jig.StatusFailed, Error: jig.Errorf(jig.CodeInternal, "broken")},
		{Status: jig.StatusFailed, Reason: jig.ReasonDeadline},
		{Status: jig.StatusCanceled, Reason: jig.ReasonExpired},
	} {
		box := newInbox("ses_1")
		box.ending = ledger.Ending{How: ledger.EndedCanceled}
		in.Tenant, in.SessionID = "acme", "ses_1"
		require.NoError(t, box.activities().End(t.Context(), in))
		require.Nil(t, box.ends[0].Audit)
	}
}

func TestStatus_OfATerminatedWorkflowAuditsItsEnd(t *testing.T) {
	t.Parallel()
	box := newInbox("ses_1")
	box.terminate("ses_1")
	box.ending = ledger.Ending{How: ledger.EndedTerminated, Reason: "not needed"}
	_, err := box.activities().Status(t.Context(), protocol.StatusRequest{Tenant: "acme", SessionID: "ses_1"})
	require.NoError(t, err)
	require.Equal(t, audit.AuditTerminated, box.ends[0].Audit.Kind)
	require.Equal(t, "not needed", box.ends[0].Audit.Reason)
}

// A message can continue a session before jig has noticed that its workflow was terminated. The audit shows that it was.
func TestOpen_AuditsAnEndThatNobodyNoticed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	start := time.Now()
	in := activities.OpenInput{SessionRef: o.ref(), Woken: &protocol.Woken{}}
	audited := func() int {
		rows, _, err := o.db.FindAudit(t.Context(), o.tenant, protocol.AuditFilter{SessionID: o.session}, 0, 0)
		require.NoError(t, err)
		return len(rows)
	}
	for _, row := range []struct {
		began time.Duration
		want  int
	}{{-time.Minute, 0}, {time.Minute, 1}, {time.Minute, 1}} {
		in.Began = start.Add(row.began)
		_, err := o.Open(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, row.want, audited())
	}
	_, err := o.db.EndPass(t.Context(), ledger.End{Tenant: o.tenant, SessionID: o.session, Pass: 1, Status: jig.StatusCompleted})
	require.NoError(t, err)
	in.Began = in.Began.Add(time.Minute)
	_, err = o.Open(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, 1, audited(), "the session has ended, and a message continues it")
}
