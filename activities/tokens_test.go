package activities_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// A token counts only once. Somebody who has seen it cannot use it again: neither while the call still waits nor when its outcome becomes
// unknown again.
func TestToken_CanBeUsedOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	o.govern(t, "  - {name: two, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	to := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerDelegate, To: "gus"})
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "delegate", to).Outcome)
	require.Equal(t, jig.DecisionRefused, o.hear(t, "delegate", to).Outcome)

	for _, who := range []string{"flo", "gus"} {
		approval := o.vouched(t, who, jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
		first := o.sent(t, "approve", "update:"+who, approval)
		require.Equal(t, jig.DecisionAccepted, first.Outcome, first.Reason)
		require.Equal(t, first, o.sent(t, "approve", "update:"+who, approval), "a repeated attempt gets the same answer")
	}
	doubt := func() {
		for range 2 {
			_, err := o.db.Reserve(t.Context(), ledger.ReserveRequest{Tenant: o.tenant, SessionID: o.session, CallID: c.ID, Version: c.Version, Digest: c.Digest, Input: c.Input})
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

// Each request is an activity of its own, as in production.
func TestToken_OfAPauseCanBeUsedOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.RegisterActivity(o.Activities)
	asks := func(do any, in protocol.PauseRequest) (got protocol.PauseResult, err error) {
		value, err := env.ExecuteActivity(do, in)
		if err == nil {
			err = value.Get(&got)
		}
		return got, err
	}
	pause := protocol.PauseRequest{Tenant: o.tenant, Scope: jig.PauseTool, Target: refundTool, Reason: "incident 12"}
	resume := pause
	for action, r := range map[string]*protocol.PauseRequest{token.ActionPause: &pause, token.ActionResume: &resume} {
		claim, err := token.ForSubject(o.db.Installation(), o.tenant, action, r.Subject(), r.Reason)
		r.Token = o.sign(t, "fay", claim, err)
	}
	changed := pause
	changed.Reason = "fay is on holiday"
	_, err := asks(o.Pause, changed)
	require.ErrorContains(t, err, "another content", "the token covers the reason of the pause")
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

// Claims that counted while the tenant trusted them no longer count once it requires proof.
func TestProofRequired_ClaimedVotesDoNotCount(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: two, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	claimed := jig.Decision{Call: c.ID, By: "flo"}
	require.Equal(t, jig.CallWaiting, o.hear(t, "approve", claimed).Status)
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "delegate", jig.Decision{Call: c.ID, By: "fay", To: "gus"}).Outcome)

	o.settings.SetSignals(tenancy.SignalsSigned)
	approve := jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}
	require.Contains(t, o.hear(t, "approve", o.vouched(t, "gus", approve)).Reason, "gus may not decide", "fay's delegation to ana was not proved")
	got := o.hear(t, "approve", o.vouched(t, "fay", approve))
	require.Equal(t, jig.CallWaiting, got.Status, "flo's word was a claim")
	require.Contains(t, got.Reason, "1 of 2 approvals")
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", o.vouched(t, "flo", approve)).Status, "and may be given again")
	_, proof, err := o.db.Approved(t.Context(), o.tenant, o.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, jig.ProofKey, proof)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// If the tenant trusts claims, they count together with proofs.
func TestDecision_ClaimAndProofCountIfTheTenantTrustsSignals(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: two, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	require.Equal(t, jig.CallWaiting, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo"}).Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
}

// If a call was approved by a claim and has not begun when the tenant starts to require proof, it needs approval again.
func TestProofRequired_ApprovalByClaimAsksAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: one, when: 'true', verdict: ask, approvers: {groups: [finance]}}\n")
	claimed, proved, begun := o.asks(t, 1, refundTool, small), o.asks(t, 2, refundTool, `{"order":"b","amount":1}`), o.asks(t, 3, refundTool, `{"order":"c","amount":1}`)
	for _, c := range []jig.Call{claimed, begun} {
		require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo"}).Status)
	}
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", o.vouched(t, "fay", jig.Decision{Call: proved.ID, Answer: jig.AnswerApprove})).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, begun.ID), "trusted, a claim is enough")

	o.settings.SetSignals(tenancy.SignalsSigned)
	require.Equal(t, jig.CallSucceeded, o.runs(t, proved.ID))
	require.Equal(t, jig.CallSucceeded, o.runs(t, begun.ID), "a call that has its result keeps it")
	require.Equal(t, jig.CallWaiting, o.runs(t, claimed.ID))
	require.NotContains(t, o.ran, claimed.ID+" a 10")
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", o.vouched(t, "fay", jig.Decision{Call: claimed.ID, Answer: jig.AnswerApprove})).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, claimed.ID))
	require.Contains(t, o.ran, claimed.ID+" a 10")
	rows, err := o.db.AuditRows(t.Context(), o.tenant, 0, 100)
	require.NoError(t, err)
	withdrawn := slices.DeleteFunc(rows, func(r audit.Row) bool { return !strings.Contains(r.Entry, "withdrawn") })
	require.Len(t, withdrawn, 1)
	require.Contains(t, withdrawn[0].Entry, "that is required now")
}

// Somebody who uses the same key in two installations cannot have a token of one of them replayed in the other.
func TestToken_IsRefusedInAnotherInstallation(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	grant := func(token string) error {
		_, err := o.ListGrants(t.Context(), protocol.GrantsRequest{Tenant: o.tenant, Revoke: "grt_1", Token: token})
		return err
	}
	pausing := func(do func(context.Context, protocol.PauseRequest) (protocol.PauseResult, error), scope jig.PauseScope, target string) func(string) error {
		return func(token string) error {
			_, err := do(t.Context(), protocol.PauseRequest{Tenant: o.tenant, Scope: scope, Target: target, Token: token})
			return err
		}
	}
	for _, row := range []struct {
		action, subject string
		sends           func(token string) error
	}{
		{token.ActionPause, "tenant", pausing(o.Pause, jig.PauseTenant, "")},
		{token.ActionPause, "tool:" + refundTool, pausing(o.Pause, jig.PauseTool, refundTool)},
		{token.ActionPause, "session:" + o.session, pausing(o.Pause, jig.PauseSession, o.session)},
		{token.ActionResume, "tenant", pausing(o.Resume, jig.PauseTenant, "")},
		{token.ActionResume, "tool:" + refundTool, pausing(o.Resume, jig.PauseTool, refundTool)},
		{token.ActionResume, "session:" + o.session, pausing(o.Resume, jig.PauseSession, o.session)},
		{token.ActionRevoke, "grt_1", grant},
	} {
		signs := func(installation string) string {
			claim, err := token.ForSubject(installation, o.tenant, row.action, row.subject, "")
			return o.sign(t, "fay", claim, err)
		}
		for _, installation := range []string{"ins_elsewhere", ""} {
			require.ErrorContains(t, row.sends(signs(installation)), "another installation", "%s %s", row.action, row.subject)
		}
		if err := row.sends(signs(o.db.Installation())); err != nil {
			require.Equal(t, "grt_1", row.subject)
			require.ErrorContains(t, err, "there is no", "the token counts, but there is no such grant")
		}
	}
}
