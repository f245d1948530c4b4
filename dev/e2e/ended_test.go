package e2e_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// shows reports whether Temporal lists a workflow with a session status.
func (d *testEnv) shows(id string, status jig.Status) bool {
	d.t.Helper()
	counted, err := shared.temporal.CountWorkflow(d.t.Context(), countRequest(`WorkflowId = "`+id+`" AND JigStatus = "`+string(status)+`"`))
	require.NoError(d.t, err)
	return counted.GetCount() > 0
}

// A single call that was canceled while it waited no longer matches the query for calls that wait for people.
func TestCancel_TakesACallOutOfTheOperatorsQuery(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	for name, id := range map[string]string{
		"tool":        d.waitingCall(r),
		"composition": d.compose(gatedSpec, map[string]any{"url": r.URL, "name": "w"}),
	} {
		d.waiting(id)
		require.True(t, eventually(t.Context(), patience, func() bool { return d.shows(id, jig.StatusInputRequired) }), name)
		require.NoError(t, d.Cancel(t.Context(), jig.DefaultTenant, id))
		d.finish(id)
		require.True(t, eventually(t.Context(), patience, func() bool { return d.shows(id, jig.StatusCanceled) }), name)
		require.False(t, d.shows(id, jig.StatusInputRequired), name)
	}
}

// imposed are the kinds of audit entries about what Temporal lets anybody do to a session: cancel, terminate and reset it.
var imposed = []audit.Kind{audit.AuditCanceled, audit.AuditTerminated, audit.AuditReset}

// imposed returns the audit entries of these kinds about a session.
func (d *testEnv) imposed(id string) (list []audit.Entry) {
	d.t.Helper()
	err := d.Audit(d.t.Context(), client.AuditRequest{Tenant: jig.DefaultTenant, AuditFilter: protocol.AuditFilter{SessionID: id}}, func(page client.AuditPage) error {
		for _, row := range page.Rows {
			var e audit.Entry
			require.NoError(d.t, json.Unmarshal([]byte(row.Entry), &e))
			if slices.Contains(imposed, e.Kind) {
				list = append(list, e)
			}
		}
		return nil
	})
	require.NoError(d.t, err)
	return list
}

// A canceled session leaves one audit entry, with the name that the request claims, or without a name if the request came from elsewhere.
func TestCancel_IsAudited(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	for name, start := range d.sessionsThatWait(r) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := start()
			require.NoError(t, d.CancelBecause(t.Context(), jig.DefaultTenant, id, "not needed", "ana"))
			require.Equal(t, jig.StatusCanceled, d.finish(id).Status)
			list := d.imposed(id)
			require.Len(t, list, 1)
			require.Equal(t, audit.AuditCanceled, list[0].Kind)
			require.Equal(t, "ana", list[0].By)
			require.True(t, list[0].Claimed)
			require.Equal(t, "not needed", list[0].Reason)
			require.Contains(t, list[0].Note, "the request came from ")

			id = start()
			require.NoError(t, shared.temporal.CancelWorkflow(t.Context(), id, ""))
			d.finish(id)
			list = d.imposed(id)
			require.Len(t, list, 1)
			require.Equal(t, audit.AuditCanceled, list[0].Kind)
			require.Empty(t, list[0].By)
			require.Contains(t, list[0].Note, "Temporal does not say who did it; ")
		})
	}
}

// sessionsThatWait returns functions that start a session of each kind, which waits for an approval, and return its id.
func (d *testEnv) sessionsThatWait(r *receiver) map[string]func() string {
	return map[string]func() string{
		"agent": func() string { return d.gated(r, "w") },
		"tool":  func() string { return d.waitingCall(r) },
		"composition": func() string {
			id := d.compose(gatedSpec, map[string]any{"url": r.URL, "name": "w"})
			d.waiting(id)
			return id
		},
	}
}

func (d *testEnv) waitingCall(r *receiver) string {
	d.t.Helper()
	result, err := d.Trigger(d.t.Context(), callInput("test.write", map[string]any{"url": r.URL, "name": "w"}), "")
	require.NoError(d.t, err)
	require.Equal(d.t, jig.CallWaiting, result.Status)
	return result.SessionID
}

// The next reader of a session whose workflow was terminated sees that it has ended, without waiting for the sweeper.
func TestTerminate_IsSeenByTheNextReader(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	for name, start := range d.sessionsThatWait(r) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terminated := func() string {
				id := start()
				require.NoError(t, shared.temporal.TerminateWorkflow(t.Context(), id, "", "not needed"))
				return id
			}
			id := terminated()
			view := d.stored(id)
			require.Equal(t, jig.StatusFailed, view.Status)
			require.Equal(t, jig.ReasonTerminated, view.Reason)
			require.Empty(t, view.Pending)
			list := d.imposed(id)
			require.Len(t, list, 1)
			require.Equal(t, audit.AuditTerminated, list[0].Kind)
			require.Equal(t, "not needed", list[0].Reason)

			waits, err := d.Approvals(t.Context(), jig.DefaultTenant, terminated())
			require.NoError(t, err)
			require.Empty(t, waits)

			id = terminated()
			filter := jig.PendingFilter{SessionID: id}
			require.True(t, eventually(t.Context(), patience, func() bool { // Temporal lists it as ended a moment later
				page, err := d.Pending(t.Context(), jig.DefaultTenant, filter, "", 10)
				return err == nil && len(page.Approvals) == 0
			}))

			began := time.Now().Add(-time.Minute)
			id = terminated()
			require.True(t, eventually(t.Context(), patience, func() bool { return d.listedAs(id, began) == jig.StatusFailed }), "the list of sessions")
		})
	}
}

// listedAs returns the status of a session in the list of the sessions that began after a time.
func (d *testEnv) listedAs(id string, after time.Time) jig.Status {
	d.t.Helper()
	for cursor := ""; ; {
		page, err := d.Sessions(d.t.Context(), jig.DefaultTenant, protocol.SessionFilter{After: after, Children: true}, cursor, 100)
		require.NoError(d.t, err)
		for _, item := range page.Sessions {
			if item.SessionID == id {
				return item.Status
			}
		}
		if cursor = page.Next; cursor == "" {
			return ""
		}
	}
}
