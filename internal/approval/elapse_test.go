package approval_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// reminded returns the state of a call whose approval sends hourly reminders, escalates to eve after 90 minutes, and expires after a
// day.
func reminded(outcome jig.ExpiryOutcome) approval.State {
	terms := byFinance(1)
	terms.Remind, terms.OnExpiry = jig.Duration(time.Hour), outcome
	terms.Requirements[0].Escalate = []jig.Escalation{{After: jig.Duration(90 * time.Minute), Approvers: jig.Approvers{People: []string{"eve"}}}}
	s := waiting(terms)
	s.Open.ExpiresAt = noonOf().Add(24 * time.Hour)
	return s
}

func TestElapse_ExpiresAtTheMoment(t *testing.T) {
	t.Parallel()
	for _, outcome := range []jig.ExpiryOutcome{"", jig.ExpiryDeny, jig.ExpiryCancel, jig.ExpiryFail} {
		s := reminded(outcome)
		_, lapse := approval.Elapse(s, nil, s.Open.ExpiresAt.Add(-1))
		require.Equal(t, jig.CallWaiting, lapse.Status)
		got, lapse := approval.Elapse(s, nil, s.Open.ExpiresAt)
		require.Equal(t, approval.Lapse{Status: jig.CallExpired, OnExpiry: outcome}, lapse)
		require.Equal(t, &approval.Outcome{Status: approval.Expired, Answer: "expire"}, got.Outcome)
		require.Equal(t, jig.CallExpired, got.Call.Status)
		require.Equal(t, jig.CodeExpired, got.Call.Result.Error.Code)
		require.Equal(t, "nobody decided before 2026-03-03T12:00:00Z", got.Call.Result.Error.Message)
		require.Equal(t, []string{"event tool.expired", "notice approval.expired", "audit expired"}, told(got), "nobody acted")
		if outcome.Strictness() > 0 {
			require.Equal(t, string(outcome), got.Events[0].Data["on_expiry"])
		} else {
			require.NotContains(t, got.Events[0].Data, "on_expiry")
		}
		require.Equal(t, jig.CallExpired, got.Notices[0].Status)
	}
}

func TestElapse_NeverExpiresWithoutATime(t *testing.T) {
	t.Parallel()
	s := waiting(nil)
	s.Open.ExpiresAt = time.Time{}
	got, lapse := approval.Elapse(s, nil, noonOf().Add(1000*time.Hour))
	require.Equal(t, jig.CallWaiting, lapse.Status)
	require.Empty(t, told(got))
}

func TestElapse_RemindsAndEscalatesOnce(t *testing.T) {
	t.Parallel()
	s := reminded("")
	for _, row := range []struct {
		after time.Duration
		told  []string
		next  time.Duration
	}{
		{time.Hour - 1, nil, time.Hour},
		{time.Hour, []string{"event approval.reminded", "notice approval.reminder"}, 90 * time.Minute},
		{91 * time.Minute, []string{"event approval.escalated", "notice approval.escalated"}, 2 * time.Hour},
		{5*time.Hour + time.Minute, []string{"event approval.reminded", "notice approval.reminder"}, 6 * time.Hour},
	} {
		now := noonOf().Add(row.after)
		got, lapse := approval.Elapse(s, nil, now)
		require.Equal(t, row.told, told(got), row.after)
		require.Equal(t, now, got.NoticedAt)
		require.Nil(t, got.Outcome)
		require.Nil(t, got.Call)
		require.Equal(t, jig.CallWaiting, lapse.Status)
		require.Equal(t, noonOf().Add(row.next), lapse.Ask.NextAt)
		s.Open.NoticedAt = got.NoticedAt
		s.Open.NextAt = lapse.Ask.NextAt
		for _, again := range []time.Time{now, now.Add(-time.Minute)} { // the same time, and a clock that is behind
			got, lapse = approval.Elapse(s, nil, again)
			require.Zero(t, got)
			require.Equal(t, noonOf().Add(row.next), lapse.Ask.NextAt)
		}
	}
}

func TestElapse_RecordsWhatIsDue(t *testing.T) {
	t.Parallel()
	got, _ := approval.Elapse(reminded(""), nil, noonOf().Add(90*time.Minute))
	require.Equal(t, []string{"event approval.reminded", "event approval.escalated", "notice approval.reminder", "notice approval.escalated"}, told(got))
	require.Equal(t, approval.Details{
		"digest": "d1", "due": "2026-03-02T13:00:00Z", "missing": "0 of 1 approvals by group finance, 1 missing",
	}, got.Events[0].Data)
	require.Equal(t, &jig.Approvers{People: []string{"eve"}}, got.Events[1].Data["approvers"])
	require.Equal(t, &jig.Approvers{People: []string{"eve"}}, got.Notices[1].Approvers)
	require.Nil(t, got.Notices[0].Approvers)
}

func TestElapse_IgnoresCallsThatDoNotWait(t *testing.T) {
	t.Parallel()
	late := noonOf().Add(1000 * time.Hour)
	for name, row := range map[string]struct {
		change func(*approval.State)
		want   approval.Lapse
	}{
		"decided":          {func(s *approval.State) { s.Call.Status = jig.CallReserved }, approval.Lapse{Status: jig.CallReserved}},
		"nothing is open":  {func(s *approval.State) { s.Open = nil }, approval.Lapse{Status: jig.CallWaiting}},
		"expired before":   {func(s *approval.State) { s.Call.Status, s.Latest, s.Open = jig.CallExpired, s.Open, nil }, approval.Lapse{Status: jig.CallExpired, OnExpiry: jig.ExpiryFail}},
		"expired, no more": {func(s *approval.State) { s.Call.Status, s.Open = jig.CallExpired, nil }, approval.Lapse{Status: jig.CallExpired}},
	} {
		s := reminded(jig.ExpiryFail)
		row.change(&s)
		got, lapse := approval.Elapse(s, nil, late)
		require.Zero(t, got, name)
		require.Equal(t, row.want, lapse, name)
	}
}

func TestDue_IsTheEarlierTime(t *testing.T) {
	t.Parallel()
	expires := noonOf().Add(time.Hour)
	for name, row := range map[string]struct{ next, expires, want time.Time }{
		"a reminder before the expiry":   {noonOf(), expires, noonOf()},
		"no reminder":                    {time.Time{}, expires, expires},
		"a reminder at the expiry":       {expires, expires, expires},
		"an approval that never expires": {noonOf(), time.Time{}, time.Time{}},
	} {
		require.Equal(t, row.want, approval.Due(jig.Pending{NextAt: row.next, ExpiresAt: row.expires}), name)
	}
}

func TestNextAt_NothingIsDueAfterTheExpiry(t *testing.T) {
	t.Parallel()
	p := reminded("").Open.Pending
	for after, want := range map[time.Duration]time.Duration{0: time.Hour, time.Hour: 90 * time.Minute, 22 * time.Hour: 23 * time.Hour} {
		require.Equal(t, noonOf().Add(want), approval.NextAt(p, noonOf().Add(after)))
	}
	require.Zero(t, approval.NextAt(p, noonOf().Add(23*time.Hour)), "the reminder would come with the expiry")
	p.ExpiresAt = time.Time{}
	require.Equal(t, noonOf().Add(24*time.Hour), approval.NextAt(p, noonOf().Add(23*time.Hour)))
	require.Zero(t, approval.NextAt(jig.Pending{RequestedAt: noonOf()}, noonOf()))
}

// If people leave, others may decide at once, and everybody is told why. If nobody is left, the call ends.
func TestElapse_PeopleLeave(t *testing.T) {
	t.Parallel()
	owner := jig.Principal{ID: "oda"}
	voters := approval.Voters{People: []jig.Principal{fay(), flo(), owner}, Owners: &jig.Approvers{People: []string{"oda"}}}
	p := independent(1, wrote("fay"))
	s := waiting(p.Terms)
	s.Open.Pending = p
	now := noonOf().Add(time.Minute)
	got, _ := approval.Elapse(s, &voters, now)
	require.Nil(t, got.Wider)
	voters.Disabled = []string{"flo"}
	got, lapse := approval.Elapse(s, &voters, now)
	require.Equal(t, []string{"event approval.escalated", "notice approval.escalated"}, told(got))
	require.Equal(t, got.Events[0].Data["reason"], lapse.Ask.Terms.Requirements[0].Escalate[0].Reason)
	s.Open.Pending = *got.Wider
	got, _ = approval.Elapse(s, &voters, now)
	require.Nil(t, got.Wider, "once")
	require.Equal(t, jig.CallReserved, decide(t, s, decides(owner, jig.Decision{})).Ruled.Status)
	voters.Disabled = []string{"flo", "oda"}
	got, lapse = approval.Elapse(s, &voters, now)
	require.Equal(t, jig.CallDenied, lapse.Status)
	require.Nil(t, lapse.Ask)
	require.Equal(t, approval.ReasonNoIndependentApprover, got.Call.Result.Error.Reason)
	require.Equal(t, []string{"event tool.denied", "notice approval.decided", "audit denied"}, told(got))
	s.Call.InDoubt = true
	got, lapse = approval.Elapse(s, &voters, now)
	require.Equal(t, jig.CallUnknown, lapse.Status, "an earlier attempt may have taken effect")
	require.Equal(t, jig.PendingReconcile, got.Opens.Kind)
}

// A decision that would leave nobody who can decide is refused. If others can be found, it is accepted, and they may decide, too.
func TestDecide_LeavesSomebodyWhoCanDecide(t *testing.T) {
	t.Parallel()
	madeByFlo := fay()
	madeByFlo.Maker = "flo"
	for name, r := range map[string]approval.DecisionRequest{
		"a vote through a key that the other made": decides(madeByFlo, jig.Decision{}), "a change by one of two": edits(fay(), nil),
	} {
		p := independent(2)
		if r.Edited != nil {
			p = independent(1, wrote("flo"))
			r.Fresh.Terms = p.Terms
		}
		s := waiting(p.Terms)
		s.Open.Pending = p
		r.Voters = approval.Voters{People: []jig.Principal{fay(), flo(), {ID: "oda"}}}
		got := decide(t, s, r)
		require.True(t, got.Refused(), name)
		require.Contains(t, got.Ruled.Reason, "nobody can approve this call", name)
		r.Owners = &jig.Approvers{People: []string{"oda"}}
		got = decide(t, s, r)
		require.False(t, got.Refused(), "%s: %s", name, got.Ruled.Reason)
		require.Contains(t, told(got), "event approval.escalated", name)
	}
}

// A delegation ends with the delegate, so whoever delegated may decide again.
func TestCounted_DelegationEndsWithTheDelegate(t *testing.T) {
	t.Parallel()
	p := independent(1)
	p.Delegations = []jig.Delegation{handed("fay", "eve")}
	v := approval.Voters{People: []jig.Principal{fay()}}
	require.Len(t, v.Counted(p, noonOf()).Delegations, 1)
	v.Disabled = []string{"eve"}
	require.Empty(t, v.Counted(p, noonOf()).Delegations)
}
