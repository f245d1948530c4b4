package metrics

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// decisionLag is the minimum age of a decision before it is counted. By then every transaction that could have written an older decision
	// has ended, so no decision is missed.
	decisionLag = 40 * time.Second
	// decisionStretch is the period that decision times and the expired ratio cover.
	decisionStretch = 24 * time.Hour
)

// approvalCounts counts the approvals of all tenants.
type approvalCounts interface {
	OpenApprovals(ctx context.Context) ([]protocol.OpenCount, error)
	Outcomes(ctx context.Context, since, until time.Time) ([]protocol.OutcomeCount, error)
	Pace(ctx context.Context, since time.Time) (protocol.Pace, error)
	Now(ctx context.Context) (time.Time, error)
}

type outcomeKey struct {
	tenant  string
	outcome protocol.ApprovalOutcome
}

// approvalState holds what one scrape reports about approvals. at is the time of the database when it was read.
type approvalState struct {
	at      time.Time
	waiting []protocol.OpenCount
	total   map[outcomeKey]int64
	pace    protocol.Pace
}

// newApprovalMetrics returns a collector that counts the decisions made since it was created, once they are older than lag.
func newApprovalMetrics(ctx context.Context, m *Metrics, db approvalCounts, age, lag time.Duration) prometheus.Collector {
	desc := func(kind, name, help string, labels ...string) *prometheus.Desc {
		return m.desc(ScopeStore, kind, name, help, labels...)
	}
	open := desc(gauge, "jig_approvals_open", "Approvals, questions and reconciliations that wait for a person.", "tenant", "kind")
	oldest := desc(gauge, "jig_approvals_oldest_age_seconds", "How long the oldest of them has waited.", "tenant", "kind")
	decided := desc(counter, "jig_approvals_decided_total", "Approvals that ended since the worker's start, by outcome.", "tenant", "outcome")
	seconds := desc(gauge, "jig_approval_decision_seconds", "Time to a person's decision over the last 24 hours.", "quantile")
	expired := desc(gauge, "jig_approvals_expired_ratio", "Share of expired approvals among those that ended in the last 24 hours.")
	var counted time.Time // total includes the decisions up to this time
	total := map[outcomeKey]int64{}
	return &reading[approvalState]{
		ctx: ctx, descs: []*prometheus.Desc{open, oldest, decided, seconds, expired}, counters: []*prometheus.Desc{decided}, age: age,
		read: func(ctx context.Context) (approvalState, error) {
			s, outcomes, until, err := readApprovals(ctx, db, counted, lag)
			if err != nil {
				return s, err
			}
			for _, c := range outcomes {
				total[outcomeKey{m.tenants.of(c.Tenant), c.Outcome}] += c.Count
			}
			s.total, s.waiting, counted = total, m.bounded(s.waiting), until
			return s, nil
		},
		show: func(s approvalState, age time.Duration, value shown) {
			now := s.at.Add(age)
			for _, c := range s.waiting {
				value(open, float64(c.Count), c.Tenant, string(c.Kind))
				value(oldest, max(0, now.Sub(c.Oldest).Seconds()), c.Tenant, string(c.Kind))
			}
			for key, n := range s.total {
				value(decided, float64(n), key.tenant, string(key.outcome))
			}
			value(seconds, s.pace.P50, "0.5")
			value(seconds, s.pace.P90, "0.9")
			value(seconds, s.pace.P99, "0.99")
			value(expired, s.pace.ExpiredShare)
		},
	}
}

// readApprovals reads the state of all approvals, and the outcomes of those that ended since counted and before until; none the first time.
func readApprovals(
	ctx context.Context, db approvalCounts, counted time.Time, lag time.Duration,
) (s approvalState, outcomes []protocol.OutcomeCount, until time.Time, err error) {
	if s.at, err = db.Now(ctx); err != nil {
		return s, nil, until, err
	}
	if s.waiting, err = db.OpenApprovals(ctx); err != nil {
		return s, nil, until, err
	}
	if s.pace, err = db.Pace(ctx, s.at.Add(-decisionStretch)); err != nil {
		return s, nil, until, err
	}
	until = s.at.Add(-lag)
	if counted.IsZero() {
		counted = until
	}
	outcomes, err = db.Outcomes(ctx, counted, until)
	return s, outcomes, until, err
}

// bounded adds up the approvals of the tenants that share a label.
func (m *Metrics) bounded(counts []protocol.OpenCount) []protocol.OpenCount {
	type key struct {
		tenant string
		kind   jig.PendingKind
	}
	sums := map[key]protocol.OpenCount{}
	for _, c := range counts {
		k := key{m.tenants.of(c.Tenant), c.Kind}
		sum, known := sums[k]
		if !known || c.Oldest.Before(sum.Oldest) {
			sum.Oldest = c.Oldest
		}
		sum.Tenant, sum.Kind, sum.Count = k.tenant, k.kind, sum.Count+c.Count
		sums[k] = sum
	}
	return slices.Collect(maps.Values(sums))
}
