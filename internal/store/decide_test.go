package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestDecide_ApprovesACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	got := w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben", Digest: "d1", Note: "fine"})
	want := jig.Ruled{Call: c.ID, Outcome: jig.DecisionAccepted, Status: jig.CallReserved}
	require.Equal(t, want, got)
	require.Equal(t, jig.CallReserved, w.row(t, c).Status)
	data := w.last(t, jig.EventToolApproved)
	require.Equal(t, map[string]any{"by": "ben", "claimed": true, "note": "fine", "digest": "d1"}, data)
	_, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	requireCode(t, jig.CodeNotFound, err)

	w.reserve(t, c)
	got = w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerDeny, By: "ben"})
	require.Equal(t, want, got, "the same key gets the same answer")
	require.Equal(t, []string{"tool.needs_approval", "tool.approved", "tool.started"}, w.types(t))
}

func TestRuled_ReturnsStoredAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	denied := w.decide(t, "update:u#1", jig.Decision{Call: c.ID, Answer: jig.AnswerDeny, By: "ben", Reason: "too much"})
	refused := w.decide(t, "update:u#0", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
	got, err := w.Ruled(t.Context(), w.tenant, w.session, []string{"update:u#0", "update:u#1", "update:u#2"})
	require.NoError(t, err)
	require.Equal(t, []jig.Ruled{refused, denied}, got)
	got, err = w.Ruled(t.Context(), storetest.Tenant(t), w.session, []string{"update:u#0"})
	require.NoError(t, err)
	require.Empty(t, got)
}

// A request that was accepted is found again by its content, and by nobody else's.
func TestRuled_FindsTheSameRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	d := jig.Decision{Call: c.ID, Answer: jig.AnswerDeny, Digest: "d1", By: "ben", Reason: "too much"}
	refused := d
	refused.Digest = "d0"
	w.decide(t, "update:u#0", refused)
	denied := w.decide(t, "update:v#0", d)
	signed, other := d, d
	signed.Token, other.Reason = "token", "too little"
	got, err := w.Ruled(t.Context(), w.tenant, w.session, []string{
		protocol.Again("ben", refused), protocol.Again("ben", signed), protocol.Again("ben", other), protocol.Again("ana", d),
	})
	require.NoError(t, err)
	require.Equal(t, []jig.Ruled{denied}, got)
}

func TestDecide_DeniesACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	for range 2 {
		got := w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerDeny, By: "ben", Reason: "too much"})
		require.Equal(t, jig.Ruled{Call: c.ID, Outcome: jig.DecisionAccepted, Status: jig.CallDenied}, got)
	}
	row := w.row(t, c)
	require.Equal(t, jig.CallDenied, row.Status)
	require.Equal(t, jig.CodeDenied, row.Result.Error.Code)
	require.Equal(t, "too much", row.Result.Error.Message)
	require.Equal(t, ledger.ReserveFinal, w.reserve(t, c).Outcome)
	require.Equal(t, []string{"tool.needs_approval", "tool.denied"}, w.types(t))
	require.Equal(t, []string{"denied"}, w.approvals(t, c))
}

func TestDecide_ApprovesWithEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	edited := c
	edited.Input, edited.Digest, edited.Verdict = []byte(`{"path":"b"}`), "d2", jig.VerdictAsk
	edited.Reasons, edited.PolicyVersion, edited.Signature, edited.ConcurrencyKey = []string{"still"}, "p2", "s2", "k2"
	got, err := w.Decide(t.Context(), approval.DecisionRequest{
		Tenant: w.tenant, SessionID: w.session, Key: "k", Principal: jig.Principal{ID: "ben"}, Edited: &edited, EditedFrom: c.Digest,
		Fresh: &jig.Pending{Tool: c.Tool, Digest: edited.Digest, ExpiresAt: time.Now().Add(time.Hour)}, Patch: []byte(`[]`),
		Decision: jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben", Input: edited.Input},
	})
	require.NoError(t, err)
	require.Equal(t, jig.DecisionAccepted, got.Outcome)
	row := w.row(t, c)
	require.JSONEq(t, `{"path":"b"}`, string(row.Input))
	require.Equal(t, []string{"d2", "p2", "s2", "k2", "still"},
		[]string{row.Digest, row.PolicyVersion, row.Signature, row.ConcurrencyKey, row.Reasons[0]})
	require.Equal(t, map[string]any{
		"before": map[string]any{"path": "a"}, "after": map[string]any{"path": "b"}, "digest": "d2", "patch": []any{},
	}, w.last(t, jig.EventToolApproved)["edited"])
	require.Equal(t, ledger.ReserveWaiting, w.reserve(t, c).Outcome, "the input that was shown no longer runs")
	require.Equal(t, ledger.ReserveRun, w.reserve(t, edited).Outcome)
}

func TestDecide_RefusalChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	ok := jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"}
	denied := c
	denied.Verdict = jig.VerdictDeny
	for why, change := range map[string]func(*approval.DecisionRequest){
		"no call":         func(r *approval.DecisionRequest) { r.Decision.Call = "9.9" },
		"not an answer":   func(r *approval.DecisionRequest) { r.Decision.Answer = "perhaps" },
		"digest":          func(r *approval.DecisionRequest) { r.Decision.Digest = "stale" },
		"expired at":      func(r *approval.DecisionRequest) { r.Now = time.Now().Add(2 * time.Hour) },
		"was not checked": func(r *approval.DecisionRequest) { r.Decision.Input = []byte(`{}`) },
		"is not allowed":  func(r *approval.DecisionRequest) { r.Edited, r.Fresh = &denied, &jig.Pending{} },
		"not entitled":    func(r *approval.DecisionRequest) { r.Refusal = "ben is not entitled" },
		"expire: not an a": func(r *approval.DecisionRequest) {
			r.Decision.Answer = jig.AnswerExpire
			r.Refusal = "expire: not an answer"
		},
	} {
		before := len(w.log(t))
		r := approval.DecisionRequest{Tenant: w.tenant, SessionID: w.session, Key: why, Principal: jig.Principal{ID: "ben"}, Decision: ok, Now: time.Now()}
		change(&r)
		for range 2 {
			got, err := w.Decide(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, jig.DecisionRefused, got.Outcome, why)
			require.Contains(t, got.Reason, why)
		}
		require.Len(t, w.log(t), before+1, "one event")
		data := w.last(t, jig.EventDecisionRefused)
		require.Contains(t, data["reason"], why)
		require.Equal(t, "ben", data["by"])
		require.Equal(t, jig.CallWaiting, w.row(t, c).Status)
		require.Equal(t, []string{"open"}, w.approvals(t, c))
	}

	w.decide(t, "yes", ok)
	got := w.decide(t, "again", ok)
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "already decided: it is about to run")
	require.Equal(t, jig.CallReserved, got.Status)
}

func TestDecide_NeedsASessionAndAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := approval.DecisionRequest{Tenant: w.tenant, SessionID: w.session, Decision: jig.Decision{Call: "1.1", Answer: jig.AnswerApprove}}
	_, err := w.Decide(t.Context(), r)
	requireCode(t, jig.CodeInvalidInput, err)
	r.SessionID, r.Key = "ses_none", "k"
	_, err = w.Decide(t.Context(), r)
	requireCode(t, jig.CodeNotFound, err)
}

func TestRefuse_WritesOneEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 {
		require.NoError(t, w.Refuse(t.Context(), w.tenant, w.session, "k", "no JSON object", []byte("[1")))
	}
	require.Equal(t, []string{"decision.refused"}, w.types(t))
	require.Equal(t, map[string]any{"reason": "no JSON object", "payload": "[1"}, w.last(t, jig.EventDecisionRefused))
}

// Anybody who reaches Temporal can send signals without end. Each is refused, and the log and the audit stay small.
func TestRefusedSignals_AreCountedAfterTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	const sent = 1_050
	for i := range sent {
		key := fmt.Sprintf("junk:%d", i)
		if i%2 == 0 {
			require.NoError(t, w.Refuse(t.Context(), w.tenant, w.session, key, "no JSON object", []byte("[1")))
			continue
		}
		got := w.decide(t, key, jig.Decision{Call: "9.9", Answer: jig.AnswerApprove})
		require.Equal(t, jig.DecisionRefused, got.Outcome)
		require.Contains(t, got.Reason, "there is no call")
	}
	refused := 0
	for _, kind := range w.types(t) {
		if kind == string(jig.EventDecisionRefused) {
			refused++
		}
	}
	require.Equal(t, store.MaxRefusedSignals+2, refused, "the first ones, the one after them, and the thousandth")
	require.Len(t, w.entries(t), store.MaxRefusedSignals+2)
	require.InDelta(t, 1_000, w.last(t, jig.EventDecisionRefused)["refused"], 0)
	require.NoError(t, w.Refuse(t.Context(), w.tenant, w.session, "junk:1", "again", nil))
	require.Len(t, w.entries(t), store.MaxRefusedSignals+2)

	got := w.decide(t, "real", jig.Decision{Call: c.ID, Answer: jig.AnswerDelegate})
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Len(t, w.entries(t), store.MaxRefusedSignals+3, "signals about an existing call are recorded each time")
	require.Equal(t, jig.CallReserved, w.decide(t, "ok", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}).Status)
}

func TestLapse_ExpiresWhatIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	expire := func(now time.Time) jig.CallStatus {
		lapse, err := w.Lapse(t.Context(), w.tenant, w.session, c.ID, nil, now)
		require.NoError(t, err)
		return lapse.Status
	}
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, jig.CallWaiting, expire(p.ExpiresAt.Add(-time.Microsecond)))
	require.Equal(t, []string{"tool.needs_approval"}, w.types(t))
	require.Equal(t, jig.CallExpired, expire(p.ExpiresAt), "the moment of expiry is too late")
	require.Equal(t, jig.CallExpired, expire(p.ExpiresAt.Add(time.Hour)))
	require.Equal(t, []string{"tool.needs_approval", "tool.expired"}, w.types(t))
	require.Equal(t, jig.CodeExpired, w.row(t, c).Result.Error.Code)
	require.Equal(t, jig.DecisionRefused, w.decide(t, "late", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}).Outcome)
	_, err = w.Lapse(t.Context(), w.tenant, w.session, "9.9", nil, time.Now())
	requireCode(t, jig.CodeNotFound, err)
}

func TestLapse_LeavesDecidedApprovalsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	lapse, err := w.Lapse(t.Context(), w.tenant, w.session, c.ID, nil, time.Now().Add(100*time.Hour))
	require.NoError(t, err)
	require.Equal(t, jig.CallReserved, lapse.Status)
}

func TestDecide_AcceptsOneOfManyConcurrentDecisions(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"each its own", "the same"} {
		t.Run(keys, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.asking(t)
			got, errs := make([]approval.Applied, 12), make([]error, 12)
			var wg sync.WaitGroup
			for i := range got {
				r := approval.DecisionRequest{
					Tenant: w.tenant, SessionID: w.session, Key: fmt.Sprintf("k%d", i), Principal: jig.Principal{ID: "ben"}, Now: time.Now(),
					Decision: jig.Decision{Call: c.ID, Answer: []jig.Answer{jig.AnswerApprove, jig.AnswerDeny}[i%2]},
				}
				if keys == "the same" {
					r.Key = "k"
				}
				wg.Go(func() { got[i], errs[i] = w.Decide(t.Context(), r) })
			}
			wg.Wait()
			status, accepted := w.row(t, c).Status, 0
			for i := range got {
				require.NoError(t, errs[i])
				require.Equal(t, status, got[i].Status)
				if got[i].Outcome == jig.DecisionAccepted {
					accepted++
				}
			}
			if keys == "the same" {
				require.Equal(t, len(got), accepted)
				require.Len(t, w.types(t), 2)
			} else {
				require.Equal(t, 1, accepted)
				require.Len(t, w.types(t), 1+len(got))
			}
		})
	}
}
