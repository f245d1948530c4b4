package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/tools"
)

// failsOnce runs a call whose attempt fails and is followed by another one.
func (o *office) failsOnce(t *testing.T, id string) {
	t.Helper()
	_, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: id})
	require.Error(t, err)
	require.Equal(t, jig.CallReserved, o.call(t, id).Status)
}

// summary returns what the status of the session says about its only call.
func (o *office) summary(t *testing.T) string {
	t.Helper()
	view, err := o.db.SessionView(t.Context(), o.tenant, o.session)
	require.NoError(t, err)
	require.Len(t, view.Calls, 1)
	return view.Calls[0].Summary
}

// The service behind an idempotent tool is down for ten minutes. Nobody is asked about it, however many attempts that takes, although each of them may
// have taken effect.
func TestRetries_SurviveAnOutageOfTenMinutes(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	o.votes(t, c.ID, "fay", "flo")
	require.Equal(t, jig.CallReserved, o.call(t, c.ID).Status)
	b.breaks(jig.Errorf(jig.CodeUnavailable, "503 Service Unavailable"))
	for range 20 {
		o.failsOnce(t, c.ID)
		require.Equal(t, "is tried again; it has failed since "+o.call(t, c.ID).FailedAt.Format("2006-01-02 15:04:05 UTC"), o.summary(t))
		o.clock += 30 * time.Second
	}
	b.breaks(nil)
	b.deposit(-120) // one of the attempts did pay, so the preview would be another one now
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{`120 under "1000"`}, b.payments)
	require.Equal(t, 21, o.call(t, c.ID).Fence)
}

func TestRetries_EndAfterAQuarterOfAnHour(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		down  *jig.Error
		ends  jig.CallStatus
		after time.Duration
	}{
		"may have happened":      {jig.Errorf(jig.CodeTimeout, "no answer"), jig.CallUnknown, jig.DefaultRetryFor},
		"nothing happened":       {&jig.Error{Code: jig.CodeUnavailable, Message: "refused", NotExecuted: true}, jig.CallFailed, jig.DefaultRetryFor},
		"asked to wait too long": {&jig.Error{Code: jig.CodeRateLimited, Message: "tomorrow", RetryAfter: time.Hour}, jig.CallFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, b := treasury(t)
			c := o.pays(t, 120)
			o.votes(t, c.ID, "fay", "flo")
			b.breaks(row.down)
			if row.after > 0 {
				o.failsOnce(t, c.ID)
				o.clock += row.after - time.Minute
				o.failsOnce(t, c.ID)
				o.clock += 2 * time.Minute
			}
			require.Equal(t, row.ends, o.runs(t, c.ID))
			if row.ends == jig.CallFailed {
				require.Equal(t, row.after > 0, o.call(t, c.ID).Result.Error.Code == jig.CodeUnavailable)
				return
			}
			require.Equal(t, jig.PendingReconcile, o.pending(t, c.ID).Kind)
			b.breaks(nil)
			again := jig.Reconciliation{Call: c.ID, By: "fay", Outcome: jig.OutcomeNotHappened, Attempt: 2}
			require.Equal(t, jig.CallReserved, o.hear(t, "reconcile", again).Status)
			require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID), "after a person's word, the time begins anew")
		})
	}
}

// An approved call whose preview cannot be computed for a quarter of an hour ends. Nothing has happened, and those who voted are told.
func TestRetries_OfAPreviewEnd(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	b.fails(refused())
	o.votes(t, c.ID, "fay", "flo")
	o.holds(t, c.ID)
	require.Contains(t, o.summary(t), "is tried again; it has failed since ", "people see why the approved call does not run")
	o.clock += jig.DefaultRetryFor - time.Minute
	o.holds(t, c.ID)
	o.clock += 2 * time.Minute
	require.Equal(t, jig.CallFailed, o.runs(t, c.ID))
	require.Equal(t, jig.CodeUnavailable, o.call(t, c.ID).Result.Error.Code)
	require.Contains(t, string(o.event(t, jig.EventApprovalWithdrawn)), "gave up 15m0s after the first failure")
}

// The tool's own settings limit the time and, if it says so, the attempts.
func TestRetries_FollowTheContract(t *testing.T) {
	t.Parallel()
	b := &bank{balance: 1000, broken: jig.Errorf(jig.CodeUnavailable, "503")}
	o := newOffice(t, func(o *office) {
		o.extra = []tools.Tool{b.paying(func(c *jig.Tool) { c.RetryFor = time.Minute; c.MaxAttempts = 2 })}
	})
	c := o.pays(t, 120)
	o.votes(t, c.ID, "fay")
	o.failsOnce(t, c.ID)
	require.Equal(t, jig.CallUnknown, o.runs(t, c.ID), "the second attempt is the last")

	o = newOffice(t, func(o *office) { o.extra = []tools.Tool{b.paying(func(c *jig.Tool) { c.RetryFor = time.Minute })} })
	c = o.pays(t, 120)
	o.votes(t, c.ID, "fay")
	o.failsOnce(t, c.ID)
	o.clock = 61 * time.Second
	require.Equal(t, jig.CallUnknown, o.runs(t, c.ID))
}

const quickTool = "shop.look"

// looks returns an office with a quick tool that fails as run says.
func looks(t *testing.T, run func() error) *office {
	t.Helper()
	tool := tools.New(jig.Tool{Name: quickTool, Description: "Looks.", Permission: jig.PermissionRead, Idempotent: true, Execution: jig.ExecutionLocal, Labels: &jig.Labels{}},
		func(_ context.Context, _ jig.Invocation, in refund) (refund, error) { return in, run() })
	return newOffice(t, func(o *office) { o.extra = []tools.Tool{tool} })
}

func (o *office) runsLocally(t *testing.T, id string) activities.Ran {
	t.Helper()
	list, err := o.RunLocal(t.Context(), activities.RunLocalInput{SessionRef: o.ref(), Calls: []string{id}})
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

// A quick call goes on as an activity after its first failure, and the time counts from there.
func TestRetries_OfAQuickCallGoOnAsActivity(t *testing.T) {
	t.Parallel()
	failure := error(jig.Errorf(jig.CodeUnavailable, "503"))
	o := looks(t, func() error { return failure })
	c := o.asks(t, 1, quickTool, small)
	require.Equal(t, activities.Ran{State: jig.CallReserved, Paused: true}, o.runsLocally(t, c.ID))
	require.False(t, o.call(t, c.ID).FailedAt.IsZero())
	o.failsOnce(t, c.ID)
	failure = nil
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// A read that kills its worker is reserved from its second attempt on, so that the ledger counts its attempts.
func TestRetries_OfAQuickCallThatKillsItsWorker(t *testing.T) {
	t.Parallel()
	died := 0
	o := looks(t, func() error { died++; panic("unreachable") })
	c := o.asks(t, 1, quickTool, small)
	require.NoError(t, o.db.TryQuick(t.Context(), o.tenant, o.session, []string{c.ID})) // the worker dies in the tool
	require.Equal(t, activities.Ran{State: jig.CallReserved, Paused: true}, o.runsLocally(t, c.ID))
	for _, attempt := range []string{"att_1", "att_2"} {
		r, err := o.db.Reserve(t.Context(), ledger.ReserveRequest{
			Tenant: o.tenant, SessionID: o.session, CallID: c.ID, Version: c.Version, Digest: c.Digest, Input: c.Input, Attempt: attempt,
		})
		require.NoError(t, err)
		require.Equal(t, ledger.ReserveRun, r.Outcome)
	}
	require.Equal(t, jig.CallFailed, o.runs(t, c.ID))
	require.Contains(t, o.call(t, c.ID).Result.Error.Message, "never reported how it ended")
	require.Zero(t, died)
}
