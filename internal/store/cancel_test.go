package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

// Whatever retries a canceled call must know whether the call had an effect.
func TestCanceledCall_SaysThatItHadNoEffect(t *testing.T) {
	t.Parallel()
	idempotentDraft := func(c *jig.Call) { c.Write, c.Idempotent = false, true }
	givenBack := func(doubt bool) func(world, *testing.T, jig.Call) {
		return func(w world, t *testing.T, c jig.Call) { //nolint:thelper // a case of a test table, not a helper
			t.Helper()
			w.ends(t, c, w.reserve(t, c).Fence, failing(jig.CallReserved, doubt))
		}
	}
	for name, row := range map[string]struct {
		kind  func(*jig.Call)
		after func(world, *testing.T, jig.Call)
		want  bool
	}{
		"reconciled by a person": {writes, func(w world, t *testing.T, c jig.Call) { //nolint:thelper // a case of a test table, not a helper
			t.Helper()
			w.ends(t, c, w.reserve(t, c).Fence, failing(jig.CallUnknown, true))
			w.reconcile(t, "word", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened})
		}, true},
		"draft reconciled by a person": {drafts, func(w world, t *testing.T, c jig.Call) { //nolint:thelper // a case of a test table, not a helper
			t.Helper()
			w.ends(t, c, w.reserve(t, c).Fence, failing(jig.CallUnknown, false))
			w.reconcile(t, "word", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened})
		}, true},
		"waits after it was reconciled": {writes, func(w world, t *testing.T, c jig.Call) { //nolint:thelper // a case of a test table, not a helper
			t.Helper()
			w.ends(t, c, w.reserve(t, c).Fence, failing(jig.CallUnknown, true))
			w.reconcile(t, "word", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened})
			fresh := asks(changed(c))
			pending := pendingOf(fresh)
			stored, err := w.Readmit(t.Context(), w.row(t, fresh), fresh, &pending)
			require.NoError(t, err)
			require.Equal(t, jig.CallWaiting, stored.Status)
		}, true},
		"a composition that is running": {writesUnderKey, func(w world, t *testing.T, c jig.Call) { //nolint:thelper // a case of a test table, not a helper
			t.Helper()
			_, err := w.BeginFrame(t.Context(), w.composition(c, w.reserve(t, c).Fence))
			require.NoError(t, err)
		}, false},
		"a composition that was given back": {writesUnderKey, func(w world, t *testing.T, c jig.Call) { //nolint:thelper // a case of a test table, not a helper
			t.Helper()
			_, err := w.BeginFrame(t.Context(), w.composition(c, w.reserve(t, c).Fence))
			require.NoError(t, err)
			require.Equal(t, jig.CallReserved, w.reserve(t, changed(c)).Call.Status)
		}, false},
		"reported by the attempt":         {writesUnderKey, givenBack(false), true},
		"an attempt is in doubt":          {writesUnderKey, givenBack(true), false},
		"a draft that was tried":          {idempotentDraft, givenBack(false), false},
		"a read that is running":          {reads, func(w world, t *testing.T, c jig.Call) { t.Helper(); w.reserve(t, c) }, false},          //nolint:thelper // a case of a test table, not a helper
		"a write that is running":         {writes, func(w world, t *testing.T, c jig.Call) { t.Helper(); w.reserve(t, c) }, false},         //nolint:thelper // a case of a test table, not a helper
		"an unfinished idempotent write":  {writesUnderKey, func(w world, t *testing.T, c jig.Call) { t.Helper(); w.reserve(t, c) }, false}, //nolint:thelper // a case of a test table, not a helper
		"a call that never had its start": {writes, func(world, *testing.T, jig.Call) {}, true},                                             //nolint:thelper // a case of a test table, not a helper
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.running(t, row.kind)
			row.after(w, t, c)
			require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
			require.Equal(t, row.want, w.row(t, c).Result.Error.NotExecuted)
		})
	}
}

func TestEdit_OfARetryIsRefusedBecauseItsKeyStandsForOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	first := asks(w.step(f, "pay"))
	f = w.move(t, w.moving(f, first))
	edit := func(c jig.Call, digest string) jig.Ruled {
		edited := c
		edited.Input, edited.Digest = []byte(`{"path":"`+digest+`"}`), digest
		fresh := pendingOf(edited)
		ruled, err := w.Decide(t.Context(), approval.DecisionRequest{
			Tenant: w.tenant, SessionID: w.session, Key: digest, Principal: jig.Principal{ID: "ben"}, Edited: &edited, EditedFrom: c.Digest,
			Fresh: &fresh, Patch: []byte(`[]`), Now: clock(t), Decision: jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: edited.Input},
		})
		require.NoError(t, err)
		return ruled.Ruled
	}
	require.Equal(t, jig.DecisionAccepted, edit(first, "d2").Outcome, "the first attempt")
	first.Digest = "d2"
	w.ends(t, first, w.reserve(t, first).Fence, failing(jig.CallFailed, false))
	again := asks(w.step(f, "pay~2"))
	again.RetryOf = first.ID
	w.move(t, w.moving(f, again))

	refused := edit(again, "d3")
	require.Equal(t, jig.DecisionRefused, refused.Outcome)
	require.Contains(t, refused.Reason, "the same idempotency key, which belongs to exactly one input")
	row := w.row(t, again)
	require.JSONEq(t, `{"path":"a"}`, string(row.Input))
	require.Equal(t, jig.CallWaiting, row.Status)
	require.Equal(t, refused.Reason, w.last(t, jig.EventDecisionRefused)["reason"])
	require.Equal(t, jig.CallReserved, w.decide(t, "as it is", jig.Decision{Call: again.ID, Answer: jig.AnswerApprove, By: "ben"}).Status)
}
