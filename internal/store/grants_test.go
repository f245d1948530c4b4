package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
)

// grant returns a grant for n calls, given by ben.
func (w world) grant(id string, n int) jig.Grant {
	return jig.Grant{
		Tenant: w.tenant, ID: id, Tool: "file.write", When: "true", MaxUses: n, ExpiresAt: time.Now().Add(time.Hour).UTC(), By: []string{"ben"},
		SessionID: w.session, Call: "1.1", CreatedAt: time.Now().UTC(),
	}
}

// granted stores a grant and admits n calls under it.
func (w world) granted(t *testing.T, g jig.Grant, n int) []jig.Call {
	t.Helper()
	require.NoError(t, w.PutGrant(t.Context(), g))
	a := ledger.Admission{Tenant: w.tenant, SessionID: w.session, Pass: 1}
	for i := range n {
		c := w.call(i + 1)
		c.Verdict, c.Status, c.Digest = jig.VerdictAsk, jig.CallReserved, fmt.Sprintf("d%d", i+1)
		a.Calls = append(a.Calls, c)
		a.Approvals = append(a.Approvals, under(pendingOf(c), g))
	}
	require.NoError(t, w.Admit(t.Context(), a))
	return a.Calls
}

// under returns an approval that a grant gives.
func under(p jig.Pending, g jig.Grant) jig.Pending {
	p.Grant = g.ID
	for _, by := range g.By {
		p.Votes = append(p.Votes, jig.Vote{By: by, Claimed: g.Claimed, Counts: []int{0}, At: g.CreatedAt})
	}
	return p
}

func (w world) used(t *testing.T, id string) int {
	t.Helper()
	list, _, err := w.Grants(t.Context(), w.tenant, "", 0, true, time.Now())
	require.NoError(t, err)
	for _, g := range list {
		if g.ID == id {
			return g.Used
		}
	}
	require.Fail(t, "there is no grant", id)
	return 0
}

func TestGrant_IsUsedWhenItsCallBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.grant("grt_1", 2)
	c := w.granted(t, g, 1)[0]
	require.Zero(t, w.used(t, g.ID))
	require.Equal(t, []string{"approved"}, w.approvals(t, c))
	r := w.reserve(t, c)
	require.Equal(t, ledger.ReserveRun, r.Outcome)
	require.Equal(t, 1, w.used(t, g.ID))
	w.complete(t, c, r.Fence, jig.CallReserved)
	require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome)
	require.Equal(t, 1, w.used(t, g.ID), "another attempt at the call is not another use")
	require.Equal(t, []string{"tool.approved", "grant.used", "tool.started", "tool.started"}, w.types(t))
	require.Equal(t, map[string]any{"grant": "grt_1", "by": []any{"ben"}, "used": float64(1), "max_uses": float64(2)}, w.last(t, jig.EventGrantUsed))
	require.Equal(t, []string{"granted ben", "grant_used ben"}, w.audit(t))
	used := w.entries(t)[1]
	require.Equal(t, []string{"grt_1", "d1", c.ID}, []string{used.Subject, used.ApprovedDigest, used.Call})
	by, _, err := w.Approved(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"ben"}, by)
}

// If the grant no longer holds when the call is about to begin, the call does not run and a person is asked again.
func TestGrant_MustBeValidWhenItsCallBegins(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, w world){
		"revoked": func(t *testing.T, w world) {
			t.Helper()
			_, err := w.RevokeGrant(t.Context(), w.tenant, "grt_1", jig.Principal{ID: "zoe"}, nil, time.Now())
			require.NoError(t, err)
		},
		"expired": func(t *testing.T, w world) { t.Helper(); tamper(t, w.tenant, "update grants set expires_at = now()") },
		"used up": func(t *testing.T, w world) { t.Helper(); tamper(t, w.tenant, "update grants set used = max_uses") },
	} {
		w := newWorld(t)
		c := w.granted(t, w.grant("grt_1", 2), 1)[0]
		end(t, w)
		for range 2 {
			require.Equal(t, ledger.ReserveWaiting, w.reserve(t, c).Outcome, name)
		}
		require.Equal(t, []string{"expired"}, w.approvals(t, c))
		require.Equal(t, []string{"tool.approved", "approval.withdrawn"}, w.types(t), name)
		p := pendingOf(c)
		got, err := w.Readmit(t.Context(), w.row(t, c), c, &p)
		require.NoError(t, err)
		require.Equal(t, jig.CallWaiting, got.Status, name)
		require.Equal(t, []string{"expired", "open"}, w.approvals(t, c))
		require.Equal(t, jig.CallReserved, w.says(t, jig.Principal{ID: "ben"}, jig.Decision{}).Status)
		require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome, name)
		require.Contains(t, w.audit(t), "withdrawn", name)
	}
}

// Of twenty concurrent calls under a grant for five, five run; the others lose their approval and a person is asked.
func TestGrant_IsNeverOverdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := w.granted(t, w.grant("grt_1", 5), 20)
	outcomes, errs := make([]ledger.ReserveOutcome, len(list)), make([]error, len(list))
	var all sync.WaitGroup
	for i, c := range list {
		all.Go(func() {
			r, err := w.Reserve(t.Context(), w.request(c))
			if outcomes[i], errs[i] = r.Outcome, err; err != nil || r.Outcome != ledger.ReserveWaiting {
				return
			}
			p := pendingOf(c)
			_, errs[i] = w.Readmit(t.Context(), w.row(t, c), c, &p)
		})
	}
	all.Wait()
	tally := map[ledger.ReserveOutcome]int{}
	for i := range list {
		require.NoError(t, errs[i])
		tally[outcomes[i]]++
		want := map[ledger.ReserveOutcome]jig.CallStatus{ledger.ReserveRun: jig.CallExecuting, ledger.ReserveWaiting: jig.CallWaiting}
		require.Equal(t, want[outcomes[i]], w.row(t, list[i]).Status)
	}
	require.Equal(t, map[ledger.ReserveOutcome]int{ledger.ReserveRun: 5, ledger.ReserveWaiting: 15}, tally)
	require.Equal(t, 5, w.used(t, "grt_1"))
	kinds := map[audit.Kind]int{}
	for _, e := range w.entries(t) {
		kinds[e.Kind]++
	}
	require.Equal(t, map[audit.Kind]int{audit.AuditGranted: 1, audit.AuditGrantUsed: 5, audit.AuditWithdrawn: 15}, kinds)
	live, err := w.LiveGrants(t.Context(), w.tenant, []string{"file.write"}, time.Now())
	require.NoError(t, err)
	require.Empty(t, live)
}

func TestGrant_ComesWithAnApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.under(t, finance(2), nil)
	g := w.grant("grt_1", 3)
	g.By = []string{"somebody else"}
	first := w.decision(member("fay"), jig.Decision{Grant: &jig.GrantRequest{}})
	first.Grant = &g
	got, err := w.Decide(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "a grant can come only with the last approval that the call needs")
	w.says(t, jig.Principal{ID: "fay", Groups: []string{"finance"}, Claimed: true}, jig.Decision{})
	last := w.decision(member("flo"), jig.Decision{Grant: &jig.GrantRequest{}})
	last.Grant = &g
	got, err = w.Decide(t.Context(), last)
	require.NoError(t, err)
	require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallReserved, Grant: "grt_1"}, got.Ruled)
	live, err := w.LiveGrants(t.Context(), w.tenant, []string{"file.write", "x.y"}, time.Now())
	require.NoError(t, err)
	require.Len(t, live, 1)
	require.Equal(t, []string{"flo"}, live[0].By, "fay approved one call: she was not asked about others")
	require.False(t, live[0].Claimed, "flo was proved")
	require.Equal(t, []string{"refused fay", "voted fay", "approved flo", "granted flo"}, w.audit(t))
}

func TestRevokeGrant_EndsItsUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.PutGrant(t.Context(), w.grant("grt_1", 3)))
	changed := w.grant("grt_1", 300)
	require.NoError(t, w.PutGrant(t.Context(), changed))
	now := time.Now().UTC().Truncate(time.Microsecond)
	for _, who := range []string{"zoe", "yan"} {
		g, err := w.RevokeGrant(t.Context(), w.tenant, "grt_1", jig.Principal{ID: who, Claimed: true}, nil, now)
		require.NoError(t, err)
		require.Equal(t, "zoe", g.RevokedBy, "the first revocation counts")
		require.Equal(t, 3, g.MaxUses)
		require.False(t, g.Live(now))
	}
	_, err := w.RevokeGrant(t.Context(), w.tenant, "grt_none", jig.Principal{ID: "zoe"}, nil, now)
	requireCode(t, jig.CodeNotFound, err)
	require.Equal(t, []string{"granted ben", "revoked zoe"}, w.audit(t))
	require.True(t, w.entries(t)[1].Claimed)
}

func TestGrants_ArePaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := time.Now().UTC()
	for i := range 7 {
		g := w.grant(fmt.Sprintf("grt_%d", i), 1)
		g.CreatedAt = at.Add(time.Duration(i/2) * time.Second)
		require.NoError(t, w.PutGrant(t.Context(), g))
	}
	_, err := w.RevokeGrant(t.Context(), w.tenant, "grt_3", jig.Principal{ID: "zoe"}, nil, at)
	require.NoError(t, err)
	read := func(all bool) (ids []string) {
		for cursor := ""; ; {
			page, next, err := w.Grants(t.Context(), w.tenant, cursor, 2, all, at)
			require.NoError(t, err)
			require.NotEmpty(t, page)
			for _, g := range page {
				ids = append(ids, g.ID)
			}
			if cursor = next; next == "" {
				return ids
			}
		}
	}
	require.Equal(t, []string{"grt_6", "grt_5", "grt_4", "grt_3", "grt_2", "grt_1", "grt_0"}, read(true))
	require.Equal(t, []string{"grt_6", "grt_5", "grt_4", "grt_2", "grt_1", "grt_0"}, read(false))
	_, _, err = w.Grants(t.Context(), w.tenant, "%%%", 2, true, at)
	requireCode(t, jig.CodeInvalidInput, err)
}
