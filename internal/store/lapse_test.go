package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// reminded admits a call whose approval sends hourly reminders, escalates after 90 minutes and expires after a day.
func (w world) reminded(t *testing.T, outcome jig.ExpiryOutcome) (asked time.Time) {
	t.Helper()
	asked = time.Now().UTC().Truncate(time.Microsecond)
	terms := finance(1)
	terms.Remind, terms.OnExpiry = jig.Duration(time.Hour), outcome
	terms.Requirements[0].Escalate = []jig.Escalation{{After: jig.Duration(90 * time.Minute), Approvers: jig.Approvers{People: []string{"eve"}}}}
	w.under(t, terms, func(p *jig.Pending) { p.RequestedAt, p.ExpiresAt = asked, asked.Add(24*time.Hour) })
	return asked
}

func (w world) lapse(t *testing.T, now time.Time) approval.Lapse {
	t.Helper()
	lapse, err := w.Lapse(t.Context(), w.tenant, w.session, "1.1", nil, now)
	require.NoError(t, err)
	return lapse
}

func (w world) told(t *testing.T) []string {
	t.Helper()
	return w.column(t, "select kind from notices where session_id = $1 order by created_at, id", w.session)
}

func TestLapse_RemindsAndEscalatesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := w.reminded(t, "")
	p, err := w.Pending(t.Context(), w.tenant, w.session, "1.1")
	require.NoError(t, err)
	require.Equal(t, asked.Add(time.Hour), p.NextAt)
	began := []string{"tool.needs_approval"}
	for _, row := range []struct {
		after  time.Duration
		events []string
		next   time.Duration
	}{
		{time.Hour - time.Microsecond, nil, time.Hour},
		{time.Hour, []string{"approval.reminded"}, 90 * time.Minute},
		{91 * time.Minute, []string{"approval.escalated"}, 2 * time.Hour},
		{5*time.Hour + time.Minute, []string{"approval.reminded"}, 6 * time.Hour},
	} {
		for range 3 {
			lapse := w.lapse(t, asked.Add(row.after))
			require.Equal(t, jig.CallWaiting, lapse.Status)
			require.Equal(t, asked.Add(row.next), lapse.Ask.NextAt, row.after)
		}
		began = append(began, row.events...)
		require.Equal(t, began, w.types(t), row.after)
	}
	w.lapse(t, asked.Add(time.Hour)) // with a clock that is behind, nothing is repeated
	require.Equal(t, began, w.types(t))
	require.Equal(t, asked.Add(6*time.Hour), w.lapse(t, asked.Add(5*time.Hour+time.Minute)).Ask.NextAt)
	require.Equal(t, []string{"approval.requested", "approval.reminder", "approval.escalated", "approval.reminder"}, w.told(t))
	require.Equal(t, map[string]any{"people": []any{"eve"}}, w.last(t, jig.EventApprovalEscalated)["approvers"])
	require.Equal(t, "0 of 1 approvals by group finance, 1 missing", w.last(t, jig.EventApprovalReminded)["missing"])
	require.Empty(t, w.audit(t), "nobody decided anything")
}

func TestEscalation_EntitlesMorePeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := w.reminded(t, "")
	r := w.decision(jig.Principal{ID: "eve"}, jig.Decision{})
	r.Now = asked.Add(90*time.Minute - time.Microsecond)
	got, err := w.Decide(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	r.Key, r.Now = "later", asked.Add(90*time.Minute)
	got, err = w.Decide(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, jig.CallReserved, got.Status)
	require.Nil(t, w.lapse(t, asked.Add(2*time.Hour)).Ask)
	require.Equal(t, []string{"tool.needs_approval", "decision.refused", "tool.approved"}, w.types(t), "nobody is reminded of a decided approval")
}

func TestExpiry_Outcomes(t *testing.T) {
	t.Parallel()
	for _, outcome := range []jig.ExpiryOutcome{"", jig.ExpiryDeny, jig.ExpiryCancel, jig.ExpiryFail} {
		w := newWorld(t)
		asked := w.reminded(t, outcome)
		require.Equal(t, jig.CallWaiting, w.lapse(t, asked.Add(24*time.Hour-time.Microsecond)).Status)
		for range 2 {
			lapse := w.lapse(t, asked.Add(24*time.Hour))
			require.Equal(t, jig.CallExpired, lapse.Status)
			require.Equal(t, outcome, lapse.OnExpiry)
		}
		types := w.types(t)
		require.Equal(t, "tool.expired", types[len(types)-1])
		data := w.last(t, jig.EventToolExpired)
		if outcome.Strictness() > 0 {
			require.Equal(t, string(outcome), data["on_expiry"])
		} else {
			require.NotContains(t, data, "on_expiry")
		}
		require.Equal(t, []string{"expired"}, w.audit(t), "the approval expired without a decision")
		require.Equal(t, "approval.expired", w.told(t)[len(w.told(t))-1])
		require.Contains(t, w.says(t, member("fay"), jig.Decision{}).Reason, "already decided: it has expired")
	}
}
