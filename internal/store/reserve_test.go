package store_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func TestReserve_RunsACallOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	r := w.reserve(t, c)
	require.Equal(t, ledger.ReserveRun, r.Outcome)
	require.Equal(t, 1, r.Fence)
	require.Equal(t, jig.CallExecuting, r.Call.Status)
	require.NotNil(t, r.Call.StartedAt)
	done := w.complete(t, c, r.Fence, jig.CallSucceeded)
	require.Equal(t, jig.CallSucceeded, done.Status)
	require.GreaterOrEqual(t, done.Duration(), jig.Call{}.Duration())

	r = w.reserve(t, c)
	require.Equal(t, ledger.ReserveFinal, r.Outcome)
	require.JSONEq(t, `{"n":1}`, string(r.Call.Result.Data), "the stored result")
	require.Equal(t, []string{"tool.started", "tool.completed"}, w.types(t))
	data := w.last(t, jig.EventToolCompleted)
	require.InDelta(t, 1, data["attempt"], 0)
	require.Contains(t, data, "duration_ms")
	require.Equal(t, "done", data["summary"])

	missing := c
	missing.ID = "7.7"
	_, err := w.Reserve(t.Context(), w.request(missing))
	requireCode(t, jig.CodeNotFound, err)
}

func TestReserve_ConcurrentAttemptsBeginOne(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]bool{"run": false, "approved": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var c jig.Call
			if asks {
				c = w.asking(t)
				w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
			} else {
				c = w.running(t, nil)
			}
			outcomes, errs := make([]ledger.ReserveOutcome, 8), make([]error, 8)
			var wg sync.WaitGroup
			for i := range outcomes {
				wg.Go(func() {
					r, err := w.Reserve(t.Context(), w.request(c))
					outcomes[i], errs[i] = r.Outcome, err
				})
			}
			wg.Wait()
			tally := map[ledger.ReserveOutcome]int{}
			for i := range outcomes {
				require.NoError(t, errs[i])
				tally[outcomes[i]]++
			}
			require.Equal(t, map[ledger.ReserveOutcome]int{ledger.ReserveRun: 1, ledger.ReserveUnknown: 7}, tally, "one attempt begins")
		})
	}
}

func TestReserve_SameAttemptRunsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	request := w.request(c)
	request.Attempt = "att_1"
	for range 3 {
		r, err := w.Reserve(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, ledger.ReserveRun, r.Outcome, "the attempt whose answer was lost asks again")
		require.Equal(t, 1, r.Fence)
	}
	require.Equal(t, []string{"tool.started"}, w.types(t))
	request.Attempt = "att_2"
	r, err := w.Reserve(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, ledger.ReserveUnknown, r.Outcome)
}

func TestReserve_OfAStartedCall(t *testing.T) {
	t.Parallel()
	t.Run("idempotent read", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		c := w.running(t, func(c *jig.Call) { c.Idempotent, c.Write = true, false })
		for fence := 1; fence <= 3; fence++ {
			r := w.reserve(t, c)
			require.Equal(t, ledger.ReserveRun, r.Outcome)
			require.Equal(t, fence, r.Fence)
			require.False(t, r.InDoubt, "a read has no effect")
		}
		r := w.reserve(t, c)
		require.Equal(t, ledger.ReserveFinal, r.Outcome, "the attempts are used up")
		require.Equal(t, jig.CallFailed, r.Call.Status)
		require.Equal(t, jig.CodeUnavailable, r.Call.Result.Error.Code)
		require.Equal(t, []string{"tool.started", "tool.started", "tool.started", "tool.failed"}, w.types(t))
	})
	t.Run("idempotent write", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		c := w.running(t, func(c *jig.Call) { c.Idempotent = true })
		for fence := 1; fence <= 3; fence++ {
			r := w.reserve(t, c)
			require.Equal(t, ledger.ReserveRun, r.Outcome)
			require.Equal(t, fence, r.Fence)
			require.Equal(t, fence > 1, r.InDoubt, "the earlier attempts never reported")
		}
		r := w.reserve(t, c)
		require.Equal(t, ledger.ReserveUnknown, r.Outcome, "the attempts are used up, and each may have taken effect")
		p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
		require.NoError(t, err)
		require.Equal(t, []string{"the last of 3 attempts never reported how it ended"}, p.Reasons)
		require.Equal(t, []string{"tool.started", "tool.started", "tool.started", "tool.outcome_unknown"}, w.types(t))
	})
	t.Run("not idempotent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		c := w.running(t, nil)
		w.reserve(t, c)
		for range 2 {
			r := w.reserve(t, c)
			require.Equal(t, ledger.ReserveUnknown, r.Outcome)
			require.Equal(t, jig.CallUnknown, r.Call.Status)
		}
		require.Equal(t, []string{"tool.started", "tool.outcome_unknown"}, w.types(t))
		p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
		require.NoError(t, err)
		require.Equal(t, jig.PendingReconcile, p.Kind)
		require.True(t, p.ExpiresAt.IsZero())
	})
}

func TestReserve_WaitsWhenTheToolChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	for _, change := range []func(*ledger.ReserveRequest){
		func(r *ledger.ReserveRequest) { r.Version = "v2" },
		func(r *ledger.ReserveRequest) { r.Digest = "d2" },
		func(r *ledger.ReserveRequest) { r.Digest = "" },
	} {
		request := w.request(c)
		change(&request)
		r, err := w.Reserve(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, ledger.ReserveWaiting, r.Outcome)
	}
	require.Equal(t, jig.CallReserved, w.row(t, c).Status)
	require.Empty(t, w.types(t))
}

func TestReserve_ConsumesAnApprovalOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	require.Equal(t, ledger.ReserveWaiting, w.reserve(t, c).Outcome)
	w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
	require.Equal(t, "approved", w.approvals(t, c)[0])
	r := w.reserve(t, c)
	require.Equal(t, ledger.ReserveRun, r.Outcome)
	require.Equal(t, []string{"consumed"}, w.approvals(t, c))

	given := w.complete(t, c, r.Fence, jig.CallReserved)
	require.Equal(t, jig.CallReserved, given.Status)
	require.Nil(t, given.Result)
	r = w.reserve(t, c)
	require.Equal(t, ledger.ReserveRun, r.Outcome, "a retry of a call that had no effect needs no second approval")
	require.Equal(t, 2, r.Fence)
	w.complete(t, c, r.Fence, jig.CallSucceeded)
	require.Equal(t, ledger.ReserveFinal, w.reserve(t, c).Outcome)
	require.Equal(t, []string{"consumed"}, w.approvals(t, c))
	require.Equal(t, []string{"tool.needs_approval", "tool.approved", "tool.started", "tool.started", "tool.completed"}, w.types(t))
}

func TestComplete_OldFenceChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, func(c *jig.Call) { c.Idempotent = true })
	old := w.reserve(t, c).Fence
	now := w.reserve(t, c).Fence
	for _, status := range []jig.CallStatus{jig.CallSucceeded, jig.CallFailed, jig.CallCanceled, jig.CallUnknown, jig.CallReserved} {
		row := w.complete(t, c, old, status)
		require.Equal(t, jig.CallExecuting, row.Status)
		require.Equal(t, now, row.Fence)
	}
	require.Equal(t, []string{"tool.started", "tool.started"}, w.types(t))
	w.requireWrites(t, 0)
	require.Equal(t, jig.CallSucceeded, w.complete(t, c, now, jig.CallSucceeded).Status)
	require.Equal(t, jig.CallSucceeded, w.complete(t, c, now, jig.CallFailed).Status, "the first end counts")
	require.Equal(t, []string{"tool.started", "tool.started", "tool.completed"}, w.types(t))
}

func TestComplete_AsUnknownAsksAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	w.reserve(t, c)
	got, err := w.Complete(t.Context(), ledger.Completion{
		Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: 1, Status: jig.CallUnknown,
		Result: jig.Failure(jig.Errorf(jig.CodeTimeout, "no answer in 5s")),
	})
	require.NoError(t, err)
	require.Equal(t, jig.CallUnknown, got.Status)
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, jig.PendingReconcile, p.Kind)
	require.Contains(t, p.Reasons[0], "no answer in 5s")
	require.Equal(t, []string{"tool.started", "tool.outcome_unknown"}, w.types(t))
	require.Equal(t, ledger.ReserveUnknown, w.reserve(t, c).Outcome)
}
