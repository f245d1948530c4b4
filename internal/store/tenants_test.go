package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestExportTenant_UntilItIsErased(t *testing.T) {
	t.Parallel()
	w, _, _ := owned(t)
	kinds := map[string]int{}
	for line := range strings.Lines(w.dump(t)) {
		var row struct {
			Kind string
			Row  map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		require.Equal(t, w.tenant, row.Row["tenant_id"])
		kinds[row.Kind]++
	}
	require.Equal(t, map[string]int{
		"session": 1, "message": 2, "turn": 1, "pass_end": 1, "call": 5, "approval": 3, "decision": 1, "event": len(w.log(t)),
		"artifact": 1, "artifact_chunk": 1, "asker": 1, "document": 3, "bundle": 1, "frame": 1, "frame_value": 1, "received": 1, "received_consumed": 1,
		"notice": 3, "notice_delivery": 1, "audit": 6, "grant": 1, "pause": 1, "used_token": 1,
		"budget_counter": 1, "budget_reservation": 1, "usage_record": 1, "rate_bucket": 1, "rate_call": 1,
	}, kinds)
	require.NoError(t, w.EraseTenant(t.Context(), w.tenant))
	left := w.dump(t)
	require.Equal(t, 2, strings.Count(left, "\n"))
	require.Contains(t, left, `"kind":"retired_session"`)
	require.Contains(t, left, `"kind":"used_token"`)
	require.NotContains(t, left, w.session, "only hashes stay")
	require.NoError(t, w.EraseTenant(t.Context(), w.tenant))
	storetest.Session(t, w.DB, w.tenant) // the erased tenant may be used again
}

func TestPruneTenant_TakesEndedSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	live := w.session
	ended := storetest.Session(t, w.DB, w.tenant).ID
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: ended}))
	_, err := w.PutArtifact(t.Context(), w.tenant, ended, "", []byte("x"))
	require.NoError(t, err)
	kept, err := w.PutArtifact(t.Context(), w.tenant, live, "", []byte("x"))
	require.NoError(t, err)
	n, err := w.PruneTenant(t.Context(), w.tenant, time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.Zero(t, n)
	for _, want := range []int64{1, 0} {
		n, err = w.PruneTenant(t.Context(), w.tenant, time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.NotContains(t, w.dump(t), ended)
	require.Equal(t, []string{live}, w.column(t, "select session_id from sessions"))
	require.Equal(t, []string{kept}, w.column(t, "select artifact_id from artifacts"))
}

func TestLiveSessions_AreThoseWithoutChanges(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	quiet := map[string]bool{}
	for _, tenant := range []string{"one", "two"} {
		quiet[storetest.Session(t, db, tenant).ID] = true
		ended := storetest.Session(t, db, tenant).ID
		require.NoError(t, db.CancelSession(t.Context(), ledger.End{Tenant: tenant, SessionID: ended}))
	}
	list, err := db.LiveSessions(t.Context(), 10)
	require.NoError(t, err)
	require.Empty(t, list, "they were updated just now")

	conn, err := pgx.Connect(t.Context(), owner)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	for _, tenant := range []string{"one", "two"} {
		_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "update sessions set updated_at = now() - interval '2 minutes'")
		require.NoError(t, err)
	}
	storetest.Session(t, db, "one") // busy
	found := map[string]bool{}
	for range 2 {
		list, err = db.LiveSessions(t.Context(), 1)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, jig.StatusWorking, list[0].Status)
		found[list[0].ID] = true
	}
	require.Equal(t, quiet, found, "one after the other, over all tenants")
}
