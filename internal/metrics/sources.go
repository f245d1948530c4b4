package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// readAge is how long scrapes may reuse what an earlier scrape read.
	readAge = 10 * time.Second
	// readTimeout bounds the reads of one scrape.
	readTimeout = 5 * time.Second
)

// Sources are read whenever the metrics are scraped. All are required.
type Sources struct {
	Store    Store
	Budgets  Budgets
	Policies Policies
	// Pool returns the state of the connections to the database.
	Pool func() Pool
	// Backlogs returns the tasks that wait for workers.
	Backlogs func(ctx context.Context) ([]Backlog, error)
}

// Store counts, over all tenants, what waits in the database.
type Store interface {
	approvalCounts

	// OpenSessions counts the sessions that have not ended.
	OpenSessions(ctx context.Context) ([]protocol.SessionCount, error)
	// PendingDeliveries counts the notices that webhooks have not received yet.
	PendingDeliveries(ctx context.Context) ([]protocol.DeliveryCount, error)
	// BudgetsUsed returns, by tenant, the counters of a day and those without a window.
	BudgetsUsed(ctx context.Context, day string) (map[string][]budget.Used, error)
}

// Budgets knows the limits of tenants.
type Budgets interface {
	// Limits adds to counters the limits that they belong to.
	Limits(ctx context.Context, tenant string, used []budget.Used) (currency string, states []protocol.BudgetState, err error)
}

// Pool describes the connections to the database.
type Pool struct {
	InUse, Idle, Max int
	Acquired, Waited int64
	WaitTime         time.Duration
}

// Backlog describes the tasks of one type that wait for workers: workflow or activity. Age is the age of the oldest.
type Backlog struct {
	Type  string
	Tasks int64
	Age   time.Duration
}

// Read adds the metrics that are read from sources. It must be called once, before the metrics are served. ctx ends the reading.
func (m *Metrics) Read(ctx context.Context, s Sources) {
	m.registry.MustRegister(
		newApprovalMetrics(ctx, m, s.Store, readAge, decisionLag), newPolicyGauges(ctx, m, s.Policies),
		newSessionGauges(ctx, m, s.Store), newDeliveryGauges(ctx, m, s.Store), newBudgetGauges(ctx, m, s.Store, s.Budgets),
		newBacklogGauges(ctx, m, s.Backlogs), newPoolMetrics(m.exported, s.Pool),
	)
}

// reading is a collector of values that are read together: gauges, unless they are among counters. What was read is used again by the scrapes of the next seconds. If reading
// fails, the scrape reports an error instead of old numbers.
type reading[T any] struct {
	ctx   context.Context //nolint:containedctx // Collect gets no context
	descs []*prometheus.Desc
	// counters are the descs of values that only grow.
	counters []*prometheus.Desc
	age      time.Duration
	read     func(ctx context.Context) (T, error)
	// show reports what was read. age is how long ago that was.
	show func(value T, age time.Duration, pass shown)

	mu    sync.Mutex
	at    time.Time
	value T
}

// Describe implements prometheus.Collector.
func (r *reading[T]) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range r.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (r *reading[T]) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= r.age {
		ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
		defer cancel()
		value, err := r.read(ctx)
		if err != nil {
			ch <- prometheus.NewInvalidMetric(r.descs[0], err)
			return
		}
		r.value, r.at = value, time.Now()
	}
	r.show(r.value, time.Since(r.at), func(d *prometheus.Desc, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if slices.Contains(r.counters, d) {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	})
}

// Policies counts, by tenant, the policies that a worker cannot read, for the tenants whose policies it has loaded.
type Policies interface {
	Unreadable(ctx context.Context) (map[string]int, error)
}

func newPolicyGauges(ctx context.Context, m *Metrics, p Policies) prometheus.Collector {
	unreadable := m.desc(ScopeStore, gauge, "jig_policies_unreadable",
		"Policies that this worker cannot read; the tenant's calls are held back meanwhile.", "tenant")
	return &reading[map[string]int]{
		ctx: ctx, descs: []*prometheus.Desc{unreadable}, read: p.Unreadable,
		show: func(counts map[string]int, _ time.Duration, gauge shown) {
			sums := map[string]int{}
			for tenant, n := range counts {
				sums[m.tenants.of(tenant)] += n
			}
			for tenant, n := range sums {
				gauge(unreadable, float64(n), tenant)
			}
		},
	}
}
