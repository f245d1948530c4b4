package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

func TestOpenSessions_CountByStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := func() []protocol.SessionCount {
		all, err := w.OpenSessions(t.Context())
		require.NoError(t, err)
		return slices.DeleteFunc(all, func(c protocol.SessionCount) bool { return c.Tenant != w.tenant })
	}
	require.Equal(t, []protocol.SessionCount{{Tenant: w.tenant, Status: jig.StatusWorking, Count: 1}}, mine())
	w.asking(t)
	require.Equal(t, []protocol.SessionCount{{Tenant: w.tenant, Status: jig.StatusInputRequired, Count: 1}}, mine(), "a call waits for a person")
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
	require.Empty(t, mine(), "a session that has ended is not open")
}

func TestPendingDeliveries_CountByTenant(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one", "two")
	b.add(t, "one", "ntc_1", "ntc_2")
	before, err := b.Now(t.Context())
	require.NoError(t, err)
	for _, id := range []string{"ntc_1", "ntc_2"} {
		require.NoError(t, b.OpenDeliveries(t.Context(), "one", id, "v1", []string{"a", "b"}))
	}
	counts, err := b.PendingDeliveries(t.Context())
	require.NoError(t, err)
	require.Len(t, counts, 1)
	require.Equal(t, "one", counts[0].Tenant)
	require.Equal(t, int64(4), counts[0].Count)
	require.True(t, counts[0].Oldest.Before(before), "the age is that of the notice")
}

// The counters of sessions and passes, of which there are many, are left out, and so are those of other days.
func TestBudgetsUsed_ReturnsCountersOfTheDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lasting := []budget.Account{
		{Budget: "spending", Limit: "agents", Scope: "writer", Period: "2026-01-02"}, {Budget: "spending", Limit: "all"},
	}
	brief := []budget.Account{
		{Budget: "spending", Limit: "agents", Scope: "writer", Period: "2026-01-01"},
		{Budget: "spending", Limit: "tree", Scope: w.session},
		{Budget: "spending", Limit: "tree", Scope: w.tenant + ".order-7"},
		{Budget: "spending", Limit: "pass", Scope: w.session + "/1"},
	}
	var claims []budget.Claim
	for _, a := range slices.Concat(lasting, brief) {
		claims = append(claims, budget.Claim{Account: a, Reserved: budget.Amount{Tokens: 5}, Limits: budget.Amount{Tokens: 100}})
	}
	require.True(t, w.book(t, w.reservation(w.session, "turn 1", claims...)))
	used, err := w.BudgetsUsed(t.Context(), "2026-01-02")
	require.NoError(t, err)
	var got []budget.Account
	for _, u := range used[w.tenant] {
		require.Equal(t, int64(5), u.Held.Tokens)
		got = append(got, u.Account)
	}
	require.Equal(t, lasting, got)
}

func TestPoolStats_CountConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.PoolStats()
	_, err := w.Now(t.Context())
	require.NoError(t, err)
	after := w.PoolStats()
	require.Greater(t, after.Acquired, before.Acquired)
	require.Positive(t, after.Max)
	require.GreaterOrEqual(t, after.WaitTime, time.Duration(0))
}
