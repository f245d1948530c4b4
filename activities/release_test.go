package activities_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

const (
	second = `{"order":"b","amount":1}`
	third  = `{"order":"c","amount":1}`
)

// gathers lets two more calls wait, approves call 1.1 with a grant, and returns the grant's id.
func (o *office) gathers(t *testing.T, by string, g jig.GrantRequest) string {
	t.Helper()
	c := o.asks(t, 1, refundTool, small)
	o.asks(t, 2, refundTool, second)
	o.asks(t, 3, refundTool, third)
	got := o.hear(t, "approve", jig.Decision{Call: c.ID, By: by, Grant: &g})
	require.NotEmpty(t, got.Grant, got.Reason)
	return got.Grant
}

// fits returns the ids of the waiting calls that a grant covers and that somebody may decide.
func (o *office) fits(t *testing.T, grant, who string) []string {
	t.Helper()
	page, err := o.GrantFits(t.Context(), protocol.FitsRequest{Tenant: o.tenant, Grant: grant, For: who})
	require.NoError(t, err)
	require.Equal(t, grant, page.Grant.ID)
	list := []string{}
	for _, p := range page.Approvals {
		list = append(list, p.Call)
	}
	return list
}

// A grant approves a call that waits already, which uses it once.
func TestGrant_ReleasesACallThatWaits(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	grant := o.gathers(t, "fay", jig.GrantRequest{MaxUses: 1})
	require.Equal(t, []string{"2.1", "3.1"}, o.fits(t, grant, "fay"))
	for _, id := range []string{"2.1", "3.1"} {
		got := o.hear(t, "approve", jig.Decision{Call: id, By: "fay", GrantID: grant, Digest: o.call(t, id).Digest})
		require.Equal(t, jig.Ruled{Call: id, Outcome: jig.DecisionAccepted, Status: jig.CallReserved, Grant: grant}, got)
	}
	require.Equal(t, jig.CallSucceeded, o.runs(t, "2.1"))
	require.Equal(t, jig.CallWaiting, o.runs(t, "3.1"), "the grant has one use: the call asks again")
	require.Equal(t, []string{"2.1 b 1"}, o.ran)
	require.Empty(t, o.fits(t, grant, "fay"))
	rows, err := o.db.AuditRows(t.Context(), o.tenant, 0, 100)
	require.NoError(t, err)
	used := map[audit.Kind]int{}
	for _, row := range rows {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(row.Entry), &e))
		if e.Subject == grant {
			used[e.Kind]++
		}
	}
	require.Equal(t, map[audit.Kind]int{audit.AuditGranted: 1, audit.AuditApproved: 2, audit.AuditGrantUsed: 1, audit.AuditWithdrawn: 1}, used)
}

// A grant releases nothing that it would not cover if the call was requested now, and nothing that the person who applies it may not decide.
func TestGrant_ReleasesNothingElse(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		given  jig.GrantRequest
		change func(t *testing.T, o *office, grant string)
		who    string
		why    string
	}{
		"another condition": {jig.GrantRequest{When: "input.amount > 5"}, nil, "fay", "does not cover this call"},
		"it was revoked": {change: func(t *testing.T, o *office, grant string) {
			t.Helper()
			_, err := o.db.RevokeGrant(t.Context(), o.tenant, grant, jig.Principal{ID: "zoe"}, nil, time.Now())
			require.NoError(t, err)
		}, who: "fay", why: "was used up, has expired or was revoked"},
		"two are needed now": {change: func(t *testing.T, o *office, _ string) {
			t.Helper()
			rule("approvers: {groups: [finance]}, quorum: 2")(t, o)
		}, who: "fay", why: "by today's policy the standing approval"},
		"policy denies it now": {change: func(t *testing.T, o *office, _ string) {
			t.Helper()
			o.govern(t, "  - {name: no, when: 'true', verdict: deny, reason: never}\n")
		}, who: "fay", why: "policy does not allow the call"},
		"a rule fails": {change: func(t *testing.T, o *office, _ string) {
			t.Helper()
			o.govern(t, "  - {name: odd, when: 'call.input.nothing == 1', verdict: ask}\n")
		}, who: "fay", why: "only people can approve this call"},
		"a policy cannot be read": {change: func(_ *testing.T, o *office, _ string) { o.lose() }, who: "fay", why: "policy cannot judge the call now"},
		"it was merely claimed": {change: func(_ *testing.T, o *office, _ string) {
			o.settings.SetSignals(tenancy.SignalsSigned)
		}, who: "fay", why: "only signed decisions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			grant := o.gathers(t, "fay", row.given)
			if row.change != nil {
				row.change(t, o, grant)
			}
			require.Empty(t, o.fits(t, grant, row.who))
			got := o.hear(t, "approve", jig.Decision{Call: "2.1", By: row.who, GrantID: grant})
			require.Equal(t, jig.DecisionRefused, got.Outcome)
			require.Contains(t, got.Reason, row.why)
			require.Equal(t, jig.CallWaiting, o.call(t, "2.1").Status)
		})
	}
	o := newOffice(t)
	o.asks(t, 1, refundTool, small)
	got := o.hear(t, "approve", jig.Decision{Call: "1.1", By: "fay", GrantID: "grt_none"})
	require.Contains(t, got.Reason, `there is no grant "grt_none"`)
}

// The terms under which a call waits hold, even if today's policy asks for less.
func TestGrant_ReleasesOnlyWithTheVotesThatTheCallNeeds(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	rule("approvers: {groups: [finance]}, quorum: 2")(t, o)
	o.asks(t, 2, refundTool, second)
	o.govern(t, "  - {name: ask, when: 'true', verdict: ask}\n")
	c := o.asks(t, 3, refundTool, third)
	grant := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay", Grant: &jig.GrantRequest{}}).Grant
	require.Empty(t, o.fits(t, grant, "fay"))
	got := o.hear(t, "approve", jig.Decision{Call: "2.1", By: "fay", GrantID: grant})
	require.Contains(t, got.Reason, "does not suffice for this call: so far 0 of 2 approvals by group finance, 2 missing")
	require.Equal(t, jig.CallWaiting, o.call(t, "2.1").Status)
}
