package metrics

import (
	"context"
	"maps"
	"slices"
	"sync"
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

// approvalMetrics is a Prometheus collector that reads the store when it is scraped. It counts the decisions made since it was created.
type approvalMetrics struct {
	ctx      context.Context //nolint:containedctx // Collect gets no context
	metrics  *Metrics
	db       approvalCounts
	age, lag time.Duration

	open, oldest, decided, seconds, expired *prometheus.Desc

	mu      sync.Mutex
	read    time.Time // by this process's clock
	at      time.Time // by the database's clock
	counted time.Time // total includes the decisions up to this time
	waiting []protocol.OpenCount
	total   map[outcomeKey]int64
	pace    protocol.Pace
}

type outcomeKey struct {
	tenant  string
	outcome protocol.ApprovalOutcome
}

func newApprovalMetrics(ctx context.Context, m *Metrics, db approvalCounts, age, lag time.Duration) *approvalMetrics {
	desc := func(kind, name, help string, labels ...string) *prometheus.Desc {
		return m.desc(ScopeStore, kind, name, help, labels...)
	}
	return &approvalMetrics{
		ctx: ctx, metrics: m, db: db, age: age, lag: lag, total: map[outcomeKey]int64{},
		open:    desc(gauge, "jig_approvals_open", "Approvals, questions and reconciliations that wait for a person.", "tenant", "kind"),
		oldest:  desc(gauge, "jig_approvals_oldest_age_seconds", "How long the oldest of them has waited.", "tenant", "kind"),
		decided: desc(counter, "jig_approvals_decided_total", "Approvals that ended since the worker's start, by outcome.", "tenant", "outcome"),
		seconds: desc(gauge, "jig_approval_decision_seconds", "Time to a person's decision over the last 24 hours.", "quantile"),
		expired: desc(gauge, "jig_approvals_expired_ratio", "Share of expired approvals among those that ended in the last 24 hours."),
	}
}

// Describe implements prometheus.Collector.
func (m *approvalMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.open, m.oldest, m.decided, m.seconds, m.expired} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. If the store cannot be read, it reports an error and no metrics, because old numbers would
// mislead.
func (m *approvalMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refresh(); err != nil {
		ch <- prometheus.NewInvalidMetric(m.open, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	now := m.at.Add(time.Since(m.read))
	for _, c := range m.waiting {
		gauge(m.open, float64(c.Count), c.Tenant, string(c.Kind))
		gauge(m.oldest, max(0, now.Sub(c.Oldest).Seconds()), c.Tenant, string(c.Kind))
	}
	for key, n := range m.total {
		ch <- prometheus.MustNewConstMetric(m.decided, prometheus.CounterValue, float64(n), key.tenant, string(key.outcome))
	}
	gauge(m.seconds, m.pace.P50, "0.5")
	gauge(m.seconds, m.pace.P90, "0.9")
	gauge(m.seconds, m.pace.P99, "0.99")
	gauge(m.expired, m.pace.ExpiredShare)
}

// refresh reads the store unless it was read less than m.age ago. On an error it changes nothing, so the next scrape tries again.
func (m *approvalMetrics) refresh() error {
	if !m.read.IsZero() && time.Since(m.read) < m.age {
		return nil
	}
	ctx, cancel := context.WithTimeout(m.ctx, readTimeout)
	defer cancel()
	at, err := m.db.Now(ctx)
	if err != nil {
		return err
	}
	waiting, err := m.db.OpenApprovals(ctx)
	if err != nil {
		return err
	}
	pace, err := m.db.Pace(ctx, at.Add(-decisionStretch))
	if err != nil {
		return err
	}
	since, until := m.counted, at.Add(-m.lag)
	if since.IsZero() {
		since = until
	}
	outcomes, err := m.db.Outcomes(ctx, since, until)
	if err != nil {
		return err
	}
	for _, c := range outcomes {
		m.total[outcomeKey{m.metrics.tenants.of(c.Tenant), c.Outcome}] += c.Count
	}
	m.read, m.at, m.counted, m.waiting, m.pace = time.Now(), at, until, m.bounded(waiting), pace
	return nil
}

// bounded adds up the approvals of the tenants that share a label.
func (m *approvalMetrics) bounded(counts []protocol.OpenCount) []protocol.OpenCount {
	type key struct {
		tenant string
		kind   jig.PendingKind
	}
	sums := map[key]protocol.OpenCount{}
	for _, c := range counts {
		k := key{m.metrics.tenants.of(c.Tenant), c.Kind}
		sum, known := sums[k]
		if !known || c.Oldest.Before(sum.Oldest) {
			sum.Oldest = c.Oldest
		}
		sum.Tenant, sum.Kind, sum.Count = k.tenant, k.kind, sum.Count+c.Count
		sums[k] = sum
	}
	return slices.Collect(maps.Values(sums))
}
