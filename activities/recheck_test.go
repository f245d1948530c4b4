package activities_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/tenancy"
)

// guarded returns an office in which finance decides without those who asked. boss may decide an hour later, and oda owns the tenant.
func guarded(t *testing.T, heard *settlements) *office {
	t.Helper()
	o := newOffice(t, func(o *office) {
		o.temporal = heard
		o.settings.People = append(o.settings.People, jig.Principal{ID: "boss", Permissions: []string{"lead"}}, jig.Principal{ID: "oda"})
		o.settings.Owners = &tenancy.Owners{Approvers: jig.Approvers{People: []string{"oda"}}}
	})
	o.govern(t, "  - {name: guard, when: 'true', verdict: ask, approvers: {groups: [finance]}, not_requester: true,"+
		" escalate: [{after: 1h, approvers: {permission: lead}}]}\n")
	return o
}

// said records that people put words into the session. Calls of the second pass rest on them.
func (o *office) said(t *testing.T, people ...string) {
	t.Helper()
	_, err := o.db.BeginPass(t.Context(), o.tenant, o.session, 1)
	require.NoError(t, err)
	for _, who := range people {
		require.NoError(t, o.db.Said(t.Context(), o.tenant, o.session, jig.Asker{Principal: who, By: jig.AskedMessage}))
	}
}

func TestAskers_EverybodyAsked(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		askers []string
		who    string // who may decide then; nobody if empty
	}{
		"the step of escalation decides": {[]string{"fay", "flo"}, "boss"},
		"the owners decide":              {[]string{"fay", "flo", "boss"}, "oda"},
		"nobody is left":                 {[]string{"fay", "flo", "boss", "oda"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := guarded(t, nil)
			o.said(t, row.askers...)
			c := o.asks(t, 2, refundTool, small)
			if row.who == "" {
				require.Equal(t, jig.CallDenied, c.Status)
				require.Equal(t, approval.ReasonNoIndependentApprover, c.Result.Error.Reason)
				return
			}
			require.Contains(t, string(o.event(t, jig.EventApprovalEscalated)), "only 0 of 1 approvals by group finance can be given without ana")
			require.Equal(t, jig.CallReserved, o.hear(t, "decide", jig.Decision{Call: c.ID, By: row.who}).Status)
		})
	}
}

// A worker may know an older version of the tenant's document. It reads the latest one before it denies a call for lack of approvers.
func TestAskers_SomebodyHasJoined(t *testing.T) {
	t.Parallel()
	o := guarded(t, nil)
	o.said(t, "fay", "flo", "boss", "oda")
	latest := o.settings
	latest.People = append(slices.Clone(latest.People), jig.Principal{ID: "gus", Groups: []string{"finance"}})
	o.latest = &latest
	require.Equal(t, jig.CallWaiting, o.asks(t, 2, refundTool, small).Status)
}

// Whoever leaves takes their vote with them. The others are found at once, and the workflow of the call is told.
func TestRecheck_PeopleLeave(t *testing.T) {
	t.Parallel()
	heard := &settlements{}
	o := guarded(t, heard)
	o.said(t, "fay")
	c := o.asks(t, 2, refundTool, small)
	check := func() {
		require.NoError(t, activities.RecheckTenant(o.Activities, t.Context(), o.tenant))
	}
	check()
	require.Empty(t, heard.list, "flo can decide")
	o.settings.Disabled = []string{"flo"}
	check()
	require.Equal(t, []string{o.session + " " + c.ID}, heard.list)
	p := o.pending(t, c.ID)
	require.Contains(t, p.Reasons[len(p.Reasons)-1], "so permission lead may decide, too")
	require.Contains(t, string(o.event(t, jig.EventApprovalEscalated)), `"approvers":{"permission":"lead"}`)
	require.Equal(t, c.Digest, p.Digest, "the call has not changed")
	check()
	require.Len(t, heard.list, 1, "nothing has changed since")
	o.settings.Disabled = []string{"flo", "boss", "oda"}
	check()
	require.Len(t, heard.list, 2)
	standing, err := o.Standing(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: c.ID})
	require.NoError(t, err)
	require.Equal(t, jig.CallDenied, standing.State)
	require.Equal(t, approval.ReasonNoIndependentApprover, o.call(t, c.ID).Result.Error.Reason)
}

// What has expired is left to the workflow, which knows what ends with it.
func TestRecheck_LeavesExpiredApprovalsAlone(t *testing.T) {
	t.Parallel()
	heard := &settlements{}
	o := guarded(t, heard)
	c := o.asks(t, 1, refundTool, small)
	o.settings.Disabled, o.clock = []string{"fay", "flo", "boss", "oda"}, 1000*time.Hour
	require.NoError(t, activities.RecheckTenant(o.Activities, t.Context(), o.tenant))
	require.Empty(t, heard.list)
	require.Equal(t, jig.CallWaiting, o.call(t, c.ID).Status)
	_, err := o.Expire(t.Context(), activities.ExpireInput{SessionRef: o.ref(), Calls: []string{c.ID}, Now: o.now()})
	require.NoError(t, err)
	require.Equal(t, jig.CallExpired, o.call(t, c.ID).Status)
}

// A timer of the call checks it, too.
func TestExpire_FindsOthers(t *testing.T) {
	t.Parallel()
	o := guarded(t, nil)
	c := o.asks(t, 1, refundTool, small)
	o.settings.Disabled = []string{"fay", "flo"}
	heard, err := o.Expire(t.Context(), activities.ExpireInput{SessionRef: o.ref(), Calls: []string{c.ID}, Now: o.now()})
	require.NoError(t, err)
	require.NotEmpty(t, heard.Calls[0].Ask.Terms.Requirements[0].Escalate[0].Reason)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", jig.Decision{Call: c.ID, By: "boss"}).Status)
}
