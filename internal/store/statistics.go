package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// maxReviewers is the maximum number of people, and also of tools, in the statistics; the busiest are kept.
const maxReviewers = 500

// openStatisticsRow is the row of the query StatisticsOpen.
type openStatisticsRow struct {
	Count, Approvals, Reconciles, Questions int
	Oldest                                  time.Time
	Age                                     []float64
}

// decidedStatisticsRow is a row of the query StatisticsDecided.
type decidedStatisticsRow struct {
	Tool                                                         string
	Open, Approved, Granted, Denied, Expired, Replaced, Canceled int
	Seconds                                                      []float64
}

// Statistics returns statistics on a tenant's approvals: those that wait now, and those decided since a time. It lists at most 500 people
// and 500 tools, the busiest of each.
func (db *DB) Statistics(ctx context.Context, tenant string, since time.Time) (protocol.ApprovalStats, error) {
	now, err := db.Now(ctx)
	if err != nil {
		return protocol.ApprovalStats{}, err
	}
	var open *openStatisticsRow
	var decided []decidedStatisticsRow
	var reviewers []protocol.ReviewerStats
	err = db.once(ctx, tenant, func(t *tx) {
		first(t.queue("StatisticsOpen", tenant, now), &open)
		list(t.queue("StatisticsDecided", tenant, since), &decided)
		list(t.queue("StatisticsReviewers", tenant, since, maxReviewers), &reviewers)
	})
	if err != nil {
		return protocol.ApprovalStats{}, err
	}
	f := protocol.ApprovalStats{
		Since: since.UTC(), At: now, Reviewers: reviewers, Tools: []protocol.ToolStats{},
		Open: protocol.OpenStats{Kinds: map[jig.PendingKind]int{}}, Decided: protocol.DecidedStats{Outcomes: map[protocol.ApprovalOutcome]int{}},
	}
	if open != nil && open.Count > 0 {
		f.Open.Count, f.Open.Oldest, f.Open.Age = open.Count, open.Oldest, spread(open.Age)
		keep(f.Open.Kinds, jig.PendingApproval, open.Approvals)
		keep(f.Open.Kinds, jig.PendingReconcile, open.Reconciles)
		keep(f.Open.Kinds, jig.PendingQuestion, open.Questions)
	}
	for _, r := range decided {
		if r.Tool == "" {
			f.Decided = r.total()
		} else if len(f.Tools) < maxReviewers {
			f.Tools = append(f.Tools, r.ofTool())
		}
	}
	return f, nil
}

func (r decidedStatisticsRow) total() protocol.DecidedStats {
	d := protocol.DecidedStats{Outcomes: map[protocol.ApprovalOutcome]int{}, Time: spread(r.Seconds)}
	for outcome, n := range map[protocol.ApprovalOutcome]int{
		protocol.OutcomeApproved: r.Approved, protocol.OutcomeGranted: r.Granted, protocol.OutcomeDenied: r.Denied,
		protocol.OutcomeExpired: r.Expired, protocol.OutcomeReplaced: r.Replaced, protocol.OutcomeCanceled: r.Canceled,
	} {
		keep(d.Outcomes, outcome, n)
		d.Count += n
	}
	d.ExpiryRate = share(r.Expired, r.Expired+r.Approved+r.Denied)
	return d
}

func (r decidedStatisticsRow) ofTool() protocol.ToolStats {
	return protocol.ToolStats{
		Tool: r.Tool, Open: r.Open, Decided: r.Approved + r.Denied, Expired: r.Expired,
		ApprovedShare: share(r.Approved, r.Approved+r.Denied), Median: spread(r.Seconds).P50,
	}
}

// spread converts the result of percentile_cont for the fractions 0.5, 0.9 and 1. It returns zeros when there were no rows.
func spread(p []float64) protocol.Percentiles {
	if len(p) < 3 {
		return protocol.Percentiles{}
	}
	return protocol.Percentiles{P50: p[0], P90: p[1], Max: p[2]}
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// keep stores a number unless it is zero.
func keep[K comparable](m map[K]int, key K, n int) {
	if n != 0 {
		m[key] = n
	}
}
