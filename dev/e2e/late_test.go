package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
)

// If a worker dies after it has settled a late call and before it tells the session, the next sweep wakes the session.
func TestSweep_WakesASessionWhoseCallWasSettledLate(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	id := newID(jig.DefaultTenant)
	_, err := d.StartCall(t.Context(), callInput("test.effect", map[string]any{"url": r.URL, "name": "late", "before": 600_000}), id)
	require.NoError(t, err)
	d.until(id, func(jig.SessionView) bool { return len(d.eventsSoFar(id, jig.EventToolStarted)) == 1 })
	d.kill()
	d.start()
	d.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 1 })

	db, err := store.Open(t.Context(), shared.stack.DatabaseURL(), store.Options{})
	require.NoError(t, err)
	defer db.Close()
	call, err := db.Call(t.Context(), jig.DefaultTenant, id, "1.1")
	require.NoError(t, err)
	done, err := db.Complete(t.Context(), ledger.Completion{
		Tenant: jig.DefaultTenant, SessionID: id, CallID: "1.1", Fence: call.Fence, Digest: call.Digest, Status: jig.CallSucceeded,
		Result: jig.ToolResult{Success: true, Summary: "done", Data: json.RawMessage(`{"status":204}`)},
	})
	require.NoError(t, err)
	require.True(t, done.Late)
	view, err := d.query(id)
	require.NoError(t, err)
	require.Len(t, view.Pending, 1, "the session does not know the late result yet")

	conn, err := pgx.Connect(t.Context(), shared.stack.OwnerURL())
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", jig.DefaultTenant)
	require.NoError(t, err)
	aged, err := conn.Exec(t.Context(), "update settled_calls set told_at = told_at - interval '2 minutes' where session_id = $1", id)
	require.NoError(t, err)
	require.EqualValues(t, 1, aged.RowsAffected())
	require.NoError(t, d.sweepNow())
	ended, err := d.WaitCall(t.Context(), jig.DefaultTenant, id)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, ended.Status)
	require.Zero(t, r.requests("late"))
}
