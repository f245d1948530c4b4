package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestLateCompletion_IsReportedUntilTheWorkflowKnows(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	b := backup{storetest.Open(t, owner, app, store.Options{}), app}
	take := func(age time.Duration, limit int) []jig.Call {
		calls, err := b.TakeSettled(t.Context(), age, limit)
		require.NoError(t, err)
		return calls
	}
	older := func() {
		conn, err := pgx.Connect(t.Context(), owner)
		require.NoError(t, err)
		defer func() { _ = conn.Close(t.Context()) }()
		for _, tenant := range []string{"acme", "zoo"} {
			_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
			require.NoError(t, err)
			_, err = conn.Exec(t.Context(), "update settled_calls set told_at = told_at - interval '2 minutes'")
			require.NoError(t, err)
		}
	}
	var want []jig.Call
	for _, tenant := range []string{"acme", "zoo"} {
		w := b.world(t, tenant)
		c := w.doubtful(t)
		require.True(t, w.ends(t, c, 1, nil).Late)
		want = append(want, jig.Call{Tenant: tenant, SessionID: w.session, ID: c.ID})

		onTime := b.world(t, tenant)
		c = onTime.running(t, writes)
		onTime.ends(t, c, onTime.reserve(t, c).Fence, nil)
	}
	require.Empty(t, take(time.Minute, 10), "their own worker is about to tell the workflow")
	older()
	first, second := take(time.Minute, 1), take(time.Minute, 1)
	require.Len(t, first, 1)
	require.ElementsMatch(t, want, append(first, second...), "the calls of all tenants, each once")
	require.Empty(t, take(time.Minute, 10), "somebody has already taken them")

	require.NoError(t, b.ToldSettled(t.Context(), "zoo", want[0].SessionID, want[0].ID), "another tenant cannot remove it")
	require.NoError(t, b.ToldSettled(t.Context(), "zoo", want[1].SessionID, want[1].ID))
	older()
	require.Equal(t, want[:1], take(time.Minute, 10), "a call whose workflow was not told is taken again")
	require.NoError(t, b.ToldSettled(t.Context(), "acme", want[0].SessionID, "1.9"), "another call")
	older()
	require.Equal(t, want[:1], take(time.Minute, 10))
	require.NoError(t, b.ToldSettled(t.Context(), "acme", want[0].SessionID, want[0].ID))
	older()
	require.Empty(t, take(time.Minute, 10))
}

func TestLateCompletion_OfAStepIsReportedToItsComposition(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	w := b.world(t, "acme")
	f, _ := w.frame(t, 1)
	step := w.step(f, "pay")
	w.move(t, w.moving(f, step))
	require.Equal(t, ledger.ReserveRun, w.reserve(t, step).Outcome)
	w.ends(t, step, 1, failing(jig.CallUnknown, false))
	require.True(t, w.ends(t, step, 1, nil).Late)
	calls, err := b.TakeSettled(t.Context(), -time.Minute, 10)
	require.NoError(t, err)
	require.Equal(t, []jig.Call{{Tenant: "acme", SessionID: w.session, ID: step.ID, Frame: f.CallID}}, calls)
}

// A new document of a tenant makes its open approvals due, whoever registers it.
func TestRechecks_FollowTheDocumentOfATenant(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	later := func(tenant string) {
		conn, err := pgx.Connect(t.Context(), owner)
		require.NoError(t, err)
		defer func() { _ = conn.Close(t.Context()) }()
		_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "update tenants set recheck_at = recheck_at - interval '1 hour'")
		require.NoError(t, err)
	}
	take := func() map[string]time.Time {
		taken, err := db.TakeRechecks(t.Context(), time.Minute, 10)
		require.NoError(t, err)
		return taken
	}
	put := func(kind, name, version string) {
		require.NoError(t, db.PutDocument(t.Context(), "acme", kind, name, version, []byte(version)))
	}
	put("agent", "acme", "v1")
	later("acme")
	require.Empty(t, take(), "another kind")
	put("tenant", "acme", "v1")
	require.Empty(t, take(), "workers may not know it yet")
	later("acme")
	first := take()
	require.Contains(t, first, "acme")
	require.Empty(t, take(), "somebody has taken it")
	put("tenant", "acme", "v2")
	require.NoError(t, db.Rechecked(t.Context(), "acme", first["acme"]))
	later("acme")
	second := take()
	require.Contains(t, second, "acme", "it has changed again meanwhile")
	require.NoError(t, db.Rechecked(t.Context(), "zoo", second["acme"]))
	later("acme")
	third := take()
	require.Contains(t, third, "acme", "only another tenant was checked")
	require.NoError(t, db.Rechecked(t.Context(), "acme", third["acme"]))
	later("acme")
	require.Empty(t, take())
}
