package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// ended is a seeded approval, requested a duration before a reference time and decided a number of minutes later.
type ended struct {
	tool, status, answer, by, grant string
	asked                           time.Duration
	after, expires                  int
	votes                           string
}

func (w world) seedEnded(t testing.TB, at time.Time, list ...ended) {
	t.Helper()
	for i, e := range list {
		asked := at.Add(-e.asked)
		var decided, expires, consumed *time.Time
		if e.status != "open" {
			decided = new(asked.Add(time.Duration(e.after) * time.Minute))
		}
		if e.expires > 0 {
			expires = new(asked.Add(time.Duration(e.expires) * time.Minute))
		}
		if e.status == "consumed" {
			consumed = decided
		}
		w.change(t, `with c as (insert into calls (tenant_id, session_id, call_id, pass, ordinal, tool, verdict, status, idempotency_key)
			values ($1, $2, $3, 1, $4, $5, 'ask', 'waiting', $2 || '/' || $3) returning 1)
			insert into approvals (tenant_id, session_id, call_id, kind, tool, status, answer, decided_by, grant_id, requested_at,
				decided_at, consumed_at, expires_at, votes)
			select $1, $2, $3, 'approval', $5, $6, $7, $8, $9, $10, $11, $12, $13, nullif($14, '')::json from c`,
			w.tenant, w.session, jig.CallID(1, i+1), i+1, e.tool, e.status, e.answer, e.by, e.grant, asked, decided, consumed, expires, e.votes)
	}
}

// manners seeds approvals that ended in every possible way.
func (w world) manners(t testing.TB, at time.Time) {
	t.Helper()
	vote := func(by string) string {
		b, err := json.Marshal([]jig.Vote{{By: by, At: at.Add(-30 * time.Minute), Counts: []int{0}}})
		require.NoError(t, err)
		return string(b)
	}
	w.seedEnded(t, at,
		ended{tool: "a.write", status: "consumed", answer: "approve", by: "ana", asked: 5 * time.Hour, after: 10},
		ended{tool: "a.write", status: "approved", answer: "approve", by: "bo", asked: 5 * time.Hour, after: 20, votes: vote("ana")},
		ended{tool: "a.write", status: "canceled", answer: "approve", by: "ana", asked: 5 * time.Hour, after: 30},
		ended{tool: "a.write", status: "denied", answer: "deny", by: "ana", asked: 5 * time.Hour, after: 40},
		ended{tool: "b.send", status: "expired", answer: "expire", asked: 5 * time.Hour, after: 60, expires: 60},
		ended{tool: "b.send", status: "expired", answer: "expire", asked: 5 * time.Hour, after: 20, expires: 600},
		ended{tool: "b.send", status: "canceled", asked: 5 * time.Hour, after: 20},
		ended{tool: "b.send", status: "canceled", by: "ana", asked: 5 * time.Hour, after: 20},
		ended{tool: "b.send", status: "consumed", answer: "approve", by: "cy", grant: "g1", asked: 5 * time.Hour},
		ended{tool: "b.send", status: "denied", answer: "deny", by: "old", asked: 50 * time.Hour, after: 1},
		ended{tool: "b.send", status: "open", asked: 4 * time.Hour, votes: vote("di")},
		ended{tool: "c.wait", status: "open", asked: 2 * time.Hour},
	)
}

func TestStatistics_OfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, err := w.Now(t.Context())
	require.NoError(t, err)
	at = at.Truncate(time.Second)
	w.manners(t, at)
	f, err := w.Statistics(t.Context(), protocol.StatisticsRequest{Tenant: w.tenant, Since: at.Add(-24 * time.Hour)})
	require.NoError(t, err)
	require.Equal(t, 2, f.Open.Count)
	require.Equal(t, map[jig.PendingKind]int{jig.PendingApproval: 2}, f.Open.Kinds)
	require.Equal(t, at.Add(-4*time.Hour), f.Open.Oldest)
	require.InDelta(t, 3*3600, f.Open.Age.P50, 60)
	require.InDelta(t, 4*3600, f.Open.Age.Max, 60)
	require.Equal(t, protocol.DecidedStats{
		Count: 9, Time: protocol.Percentiles{P50: 25 * 60, P90: 37 * 60, Max: 40 * 60}, ExpiryRate: 0.2,
		Outcomes: map[protocol.ApprovalOutcome]int{
			protocol.OutcomeApproved: 3, protocol.OutcomeDenied: 1, protocol.OutcomeExpired: 1, protocol.OutcomeReplaced: 2, protocol.OutcomeCanceled: 1, protocol.OutcomeGranted: 1,
		},
	}, f.Decided)
	require.Equal(t, []protocol.ReviewerStats{
		{By: "ana", Approved: 2, Denied: 1, Votes: 1, Median: 30 * 60},
		{By: "bo", Approved: 1, Median: 20 * 60},
		{By: "di", Votes: 1},
	}, f.Reviewers)
	require.Equal(t, []protocol.ToolStats{
		{Tool: "b.send", Open: 1, Expired: 1},
		{Tool: "a.write", Decided: 4, ApprovedShare: 0.75, Median: 25 * 60},
		{Tool: "c.wait", Open: 1},
	}, f.Tools)

	later, err := w.Statistics(t.Context(), protocol.StatisticsRequest{Tenant: w.tenant, Since: at})
	require.NoError(t, err)
	require.Equal(t, 2, later.Open.Count)
	require.Zero(t, later.Decided.Count)
	require.Empty(t, later.Reviewers)
}

func TestStatistics_WithoutApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, err := w.Statistics(t.Context(), protocol.StatisticsRequest{Tenant: w.tenant, Since: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	b, err := json.Marshal(f)
	require.NoError(t, err)
	zero := `{"p50_seconds":0,"p90_seconds":0,"max_seconds":0}`
	times, err := json.Marshal(map[string]time.Time{"since": f.Since, "at": f.At})
	require.NoError(t, err)
	require.JSONEq(t, string(times[:len(times)-1])+`,"open":{"count":0,"kinds":{},"age":`+zero+`},
		"decided":{"count":0,"outcomes":{},"time_to_decision":`+zero+`,"expiry_rate":0},"reviewers":[],"tools":[]}`, string(b))
}

// The statistics over all tenants count every tenant's approvals and reveal nothing but counts.
func TestStatistics_OverAllTenants(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Minute)
	w.manners(t, at)
	other.seedEnded(t, at, ended{tool: "a.write", status: "open", asked: time.Hour})

	open, err := w.OpenApprovals(t.Context())
	require.NoError(t, err)
	require.Contains(t, open, protocol.OpenCount{Tenant: w.tenant, Kind: jig.PendingApproval, Count: 2, Oldest: at.Add(-4 * time.Hour)})
	require.Contains(t, open, protocol.OpenCount{Tenant: other.tenant, Kind: jig.PendingApproval, Count: 1, Oldest: at.Add(-time.Hour)})

	counts := func(since, until time.Time) map[protocol.ApprovalOutcome]int64 {
		list, err := other.Outcomes(t.Context(), since, until)
		require.NoError(t, err)
		found := map[protocol.ApprovalOutcome]int64{}
		for _, c := range list {
			if c.Tenant == w.tenant {
				found[c.Outcome] = c.Count
			}
		}
		return found
	}
	require.Equal(t, map[protocol.ApprovalOutcome]int64{
		protocol.OutcomeApproved: 3, protocol.OutcomeDenied: 1, protocol.OutcomeExpired: 1, protocol.OutcomeReplaced: 2, protocol.OutcomeCanceled: 1, protocol.OutcomeGranted: 1,
	}, counts(at.Add(-24*time.Hour), at.Add(time.Hour)))
	decided := at.Add(-5*time.Hour + 30*time.Minute)
	require.Equal(t, map[protocol.ApprovalOutcome]int64{protocol.OutcomeApproved: 1}, counts(decided, decided.Add(time.Second)), "from a time, itself included")
	require.Empty(t, counts(decided.Add(time.Second), decided.Add(2*time.Second)))

	pace, err := w.Pace(t.Context(), at.Add(-24*time.Hour))
	require.NoError(t, err)
	require.Positive(t, pace.P50)
	require.GreaterOrEqual(t, pace.P99, pace.P90)
	require.Positive(t, pace.ExpiredShare)
}
