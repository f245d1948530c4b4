package starter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

func TestApprovals_FiltersAndPages(t *testing.T) {
	t.Parallel()
	f := &fake{reviewFakes: reviewFakes{page: client.PendingPage{Approvals: []jig.Pending{{SessionID: "ses_1", Call: "1.1", Tool: "file.write"}}, Next: "c2"}}}
	got, now := jigCLIAt(t, f, "approvals", "--tool", "file.*", "--agent", "docs", "--requested-by", "bo", "--kind", "approval", "--older", "1d12h",
		"--newer", "3d", "--session", "ses_1", "--limit", "5", "--after", "c1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "ses_1 1.1 file.write waits for approval")
	require.Contains(t, got.stderr, "there is more: --after c2")
	require.WithinDuration(t, now.Add(-36*time.Hour), f.filter.Before, 0)
	require.WithinDuration(t, now.Add(-72*time.Hour), f.filter.After, 0)
	f.filter.Before, f.filter.After = time.Time{}, time.Time{}
	require.Equal(t, jig.PendingFilter{Tool: "file.*", Kind: jig.PendingApproval, SessionID: "ses_1", Agent: "docs", RequestedBy: "bo"}, f.filter)
	require.Equal(t, "c1", f.cursor)
	require.Equal(t, 5, f.limit)

	got = jigCLI(t, f, nil, "approvals", "--tool", "file.*", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, `"next_cursor":"c2"`)
	f.page = client.PendingPage{}
	got = jigCLI(t, f, nil, "approvals", "--limit", "5")
	require.Contains(t, got.stderr, "no call is waiting")
	got = jigCLI(t, f, nil, "approvals", "--limit", "5", "--output", "json")
	require.JSONEq(t, `{"approvals":[]}`, got.stdout)
}

func TestApprovals_RefusesMistakes(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"--kind is":  {"--kind", "odd"},
		"--older is": {"--older", "soon"},
		"--newer is": {"--newer", "-1h"},
		"--limit is": {"--limit", "-1"},
	} {
		got := jigCLI(t, &fake{}, nil, append([]string{"approvals"}, args...)...)
		require.Equal(t, exitUsage, got.code, says)
		require.Contains(t, got.stderr, says)
	}
}

func TestApprovals_PrintsStatistics(t *testing.T) {
	t.Parallel()
	since := time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local) // the output is in the user's time zone
	f := &fake{reviewFakes: reviewFakes{statistics: protocol.ApprovalStats{
		Since: since, At: since.Add(time.Hour),
		Open: protocol.OpenStats{
			Count: 3, Kinds: map[jig.PendingKind]int{jig.PendingApproval: 2, jig.PendingQuestion: 1}, Age: protocol.Percentiles{P50: 300, P90: 7500, Max: 360_000},
		},
		Decided: protocol.DecidedStats{
			Count: 4, Outcomes: map[protocol.ApprovalOutcome]int{protocol.OutcomeApproved: 2, protocol.OutcomeDenied: 1, protocol.OutcomeExpired: 1},
			Time: protocol.Percentiles{P50: 5, P90: 60, Max: 3600}, ExpiryRate: 0.25,
		},
		Reviewers: []protocol.ReviewerStats{{By: "ana", Approved: 2, Denied: 1, Votes: 4, Median: 60}},
		Tools:     []protocol.ToolStats{{Tool: "file.write", Open: 1, Decided: 3, Expired: 1, ApprovedShare: 2.0 / 3, Median: 60}, {Tool: "a.b", Open: 2}},
	}}}
	got, now := jigCLIAt(t, f, "approvals", "statistics", "--since", "2d")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, `waiting           3 (2 approval, 1 question); the oldest for 4d4h, half of them for 5m or more
ended             4 since 2030-01-02 03:04:05: 2 approved, 1 denied, 1 expired
time to decision  half within 5s, 90% within 1m, the longest 1h0m
expiry rate       25.0%

REVIEWER  APPROVED  DENIED  VOTES  MEDIAN
ana       2         1       4      1m

TOOL        WAITING  DECIDED  APPROVED  EXPIRED  MEDIAN
file.write  1        3        66.7%     1        1m
a.b         2        0        –         0        –
`, got.stdout)
	require.WithinDuration(t, now.Add(-48*time.Hour), f.since, 0)

	got, now = jigCLIAt(t, f, "approvals", "statistics", "--output", "json")
	require.Contains(t, got.stdout, `"expiry_rate":0.25`)
	require.WithinDuration(t, now.Add(-30*24*time.Hour), f.since, 0)

	f.statistics = protocol.ApprovalStats{Since: since}
	got = jigCLI(t, f, nil, "approvals", "statistics")
	require.Equal(t, "waiting      no call\nended        0 since 2030-01-02 03:04:05\nexpiry rate  0.0%\n", got.stdout)
	require.Equal(t, exitUsage, jigCLI(t, f, nil, "approvals", "statistics", "--since", "yesterday").code)
	f.failing = jig.Errorf(jig.CodeUnavailable, "down")
	require.Equal(t, exitFailed, jigCLI(t, f, nil, "approvals", "statistics").code)
}

func TestLasting_HasOneOrTwoUnits(t *testing.T) {
	t.Parallel()
	for want, seconds := range map[string]float64{
		"–": 0, "1s": 0.2, "59s": 59, "1m": 60, "59m": 3599, "1h0m": 3600, "47h59m": 172_799, "2d0h": 172_800, "10d5h": 10*86400 + 5*3600 + 1800,
	} {
		require.Equal(t, want, lasting(seconds))
	}
}
