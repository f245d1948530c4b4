package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/token"
)

// A token that somebody has seen is of no use: not while the call waits on, nor when it is in doubt once more.
func TestATokenCountsOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	o.govern(t, "  - {name: two, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	to := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerDelegate, To: "ana"})
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "delegate", to).Outcome)
	require.Equal(t, jig.DecisionRefused, o.hear(t, "delegate", to).Outcome)

	for _, who := range []string{"flo", "ana"} {
		approval := o.vouched(t, who, jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
		first := o.sent(t, "approve", "update:"+who, approval)
		require.Equal(t, jig.DecisionAccepted, first.Outcome, first.Reason)
		require.Equal(t, first, o.sent(t, "approve", "update:"+who, approval), "an attempt that is made again has the same answer")
	}
	doubt := func() {
		for range 2 {
			_, err := o.db.Reserve(t.Context(), jig.Reserve{Tenant: o.tenant, SessionID: o.session, CallID: c.ID, Version: c.Version, Digest: c.Digest})
			require.NoError(t, err)
		}
		require.Equal(t, jig.CallUnknown, o.call(t, c.ID).Status)
	}
	doubt()
	word := jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened}
	claim, err := token.ForReconciliation(o.tenant, o.session, word, o.pending(t, c.ID).Digest)
	word.Token = o.sign(t, "flo", claim, err)
	require.Equal(t, jig.CallReserved, o.hear(t, "reconcile", word).Status)
	doubt()
	got := o.hear(t, "reconcile", word)
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "used already")
	require.Equal(t, jig.CallUnknown, o.call(t, c.ID).Status)
}

// As Temporal runs it: each request is an activity of its own.
func TestATokenOfAPauseCountsOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(o.Activities)
	asks := func(do any, in activities.PauseRequest) (got activities.PauseResult, err error) {
		value, err := env.ExecuteActivity(do, in)
		if err == nil {
			err = value.Get(&got)
		}
		return got, err
	}
	pause := activities.PauseRequest{Tenant: o.tenant, Scope: jig.PauseTool, Target: refundTool, Reason: "incident 12"}
	resume := pause
	for action, r := range map[string]*activities.PauseRequest{token.ActionPause: &pause, token.ActionResume: &resume} {
		claim, err := token.ForSubject(o.tenant, action, r.Subject(), r.Reason)
		r.Token = o.sign(t, "fay", claim, err)
	}
	changed := pause
	changed.Reason = "fay is on holiday"
	_, err := asks(o.Pause, changed)
	require.ErrorContains(t, err, "another content", "the words of a pause are bound")
	got, err := asks(o.Pause, pause)
	require.NoError(t, err)
	require.True(t, got.Changed)
	got, err = asks(o.Resume, resume)
	require.NoError(t, err)
	require.Empty(t, got.Pauses)
	_, err = asks(o.Pause, pause)
	require.ErrorContains(t, err, "used already")
	list, err := o.db.Pauses(t.Context(), o.tenant)
	require.NoError(t, err)
	require.Empty(t, list)
}
