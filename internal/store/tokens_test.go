package store_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// proof returns the evidence of a token that was sent with a request.
func proof(token, request string) *identity.Evidence {
	return &identity.Evidence{Key: "ana-1", Token: token, Until: time.Now().Add(time.Minute).UTC(), Request: request}
}

func (w world) pauseTool(t *testing.T, e *identity.Evidence) (bool, error) {
	t.Helper()
	p := jig.Pause{Scope: jig.PauseTool, Target: "mail.send", By: "ana", At: time.Now().UTC()}
	return w.Pause(t.Context(), w.tenant, p, e)
}

func (w world) resumeTool(t *testing.T, e *identity.Evidence) (bool, error) {
	t.Helper()
	p := jig.Pause{Scope: jig.PauseTool, Target: "mail.send", By: "ana", At: time.Now().UTC()}
	return w.Resume(t.Context(), w.tenant, p, e)
}

func TestPause_AcceptsATokenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	changed, err := w.pauseTool(t, proof("t1", "one"))
	require.NoError(t, err)
	require.True(t, changed)
	changed, err = w.resumeTool(t, proof("t2", "two"))
	require.NoError(t, err)
	require.True(t, changed)

	changed, err = w.pauseTool(t, proof("t1", "one"))
	require.NoError(t, err)
	require.True(t, changed, "the same request has the same answer")
	_, err = w.pauseTool(t, proof("t1", "another"))
	requireCode(t, jig.CodeNotPermitted, err)
	require.ErrorContains(t, err, "used already")
	_, err = w.pauseTool(t, proof("t1", ""))
	requireCode(t, jig.CodeNotPermitted, err)
	held, err := w.Pauses(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Empty(t, held, "the pause was not repeated")
	var kinds []audit.Kind
	for _, row := range w.entries(t) {
		kinds = append(kinds, row.Kind)
		require.Equal(t, []string{"tool:mail.send", "ana"}, []string{row.Subject, row.By})
	}
	require.Equal(t, []audit.Kind{audit.AuditPaused, audit.AuditResumed, audit.AuditRefused, audit.AuditRefused}, kinds)

	changed, err = w.resumeTool(t, proof("t3", "three"))
	require.NoError(t, err)
	require.False(t, changed)
	_, err = w.resumeTool(t, proof("t3", "four"))
	requireCode(t, jig.CodeNotPermitted, err)
	for _, other := range []*identity.Evidence{{Key: "ana-2", Token: "t1", Until: time.Now()}, proof("t4", "one"), nil} {
		_, err = w.pauseTool(t, other)
		require.NoError(t, err, "a token of another key, another token, and no token")
	}
}

func TestTokens_AreSeparatedByTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tenant := range []string{w.tenant, storetest.Tenant(t)} {
		_, err := world{DB: w.DB, tenant: tenant}.pauseTool(t, proof("t1", tenant))
		require.NoError(t, err)
	}
}

func TestToken_IsUsedOnceByConcurrentRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	var passed atomic.Int32
	for i := range 8 {
		wg.Go(func() {
			p := jig.Pause{Scope: jig.PauseTool, Target: "mail.send" + string(rune('a'+i)), By: "ana", At: time.Now().UTC()}
			_, err := w.Pause(t.Context(), w.tenant, p, proof("t1", p.Target))
			if err == nil {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	held, err := w.Pauses(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.Equal(t, int32(1), passed.Load())
}

func TestRevokeGrant_AcceptsATokenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := jig.Principal{ID: "ana"}
	for _, id := range []string{"grt_1", "grt_2"} {
		require.NoError(t, w.PutGrant(t.Context(), jig.Grant{
			Tenant: w.tenant, ID: id, Tool: "mail.send", When: "true", MaxUses: 1, ExpiresAt: time.Now().Add(time.Hour), By: []string{"ana"},
		}))
	}
	for range 2 {
		g, err := w.RevokeGrant(t.Context(), w.tenant, "grt_1", ana, proof("t1", "one"), time.Now())
		require.NoError(t, err)
		require.Equal(t, "ana", g.RevokedBy)
	}
	_, err := w.RevokeGrant(t.Context(), w.tenant, "grt_2", ana, proof("t1", "two"), time.Now())
	requireCode(t, jig.CodeNotPermitted, err)
	_, err = w.RevokeGrant(t.Context(), w.tenant, "grt_9", ana, proof("t2", "three"), time.Now())
	requireCode(t, jig.CodeNotFound, err)
	_, err = w.RevokeGrant(t.Context(), w.tenant, "grt_2", ana, proof("t2", "four"), time.Now())
	require.NoError(t, err, "a token whose request failed is not used up")
}

// When a call becomes unknown a second time, the token for the first answer proves nothing.
func TestReconcile_AcceptsATokenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.doubtful(t)
	say := func(key string) jig.Ruled {
		ruled, err := w.Reconcile(t.Context(), approval.ReconcileRequest{
			Tenant: w.tenant, SessionID: w.session, Key: key, Principal: jig.Principal{ID: "ana"}, Evidence: proof("t1", key),
			Reconciliation: jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened},
		})
		require.NoError(t, err)
		return ruled.Ruled
	}
	accepted := say("one")
	require.Equal(t, jig.CallReserved, accepted.Status)
	w.reserve(t, c)
	require.Equal(t, ledger.ReserveUnknown, w.reserve(t, c).Outcome)
	refused := say("two")
	require.Equal(t, jig.DecisionRefused, refused.Outcome)
	require.Contains(t, refused.Reason, "used already")
	require.Equal(t, jig.CallUnknown, w.row(t, c).Status)
	require.Equal(t, accepted, say("one"), "the same request has the same answer")
	require.Equal(t, jig.CallUnknown, w.row(t, c).Status)
}

// Somebody who relays a decision cannot use up its token by sending it with something else.
func TestRefusedDecision_DoesNotUseUpItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	decide := func(key, digest string) jig.Ruled {
		ruled, err := w.Decide(t.Context(), approval.DecisionRequest{
			Tenant: w.tenant, SessionID: w.session, Key: key, Principal: jig.Principal{ID: "ana"}, Evidence: proof("t1", key), Now: time.Now(),
			Decision: jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Digest: digest},
		})
		require.NoError(t, err)
		return ruled.Ruled
	}
	require.Contains(t, decide("one", "stale").Reason, "digest")
	require.Equal(t, jig.CallReserved, decide("two", "").Status)
}

func TestForgetTokens_DeletesExpiredOnes(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	for i, tenant := range []string{"one", "two", "two"} {
		e := proof("t"+string(rune('0'+i)), "r")
		e.Until = time.Now().Add(-time.Duration(i) * time.Hour)
		_, err := world{DB: db, tenant: tenant}.pauseTool(t, e)
		require.NoError(t, err)
	}
	for _, want := range []int64{2, 0} {
		gone, err := db.ForgetTokens(t.Context(), 30*time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, gone)
	}
	direct(t, app, "one", func(tx pgx.Tx) {
		var left int
		require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from used_tokens").Scan(&left))
		require.Equal(t, 1, left)
	})
}
