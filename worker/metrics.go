package worker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

// Parameters of the approval metrics.
const (
	// metricsAge is how long scrapes may reuse the numbers that an earlier scrape read.
	metricsAge = 10 * time.Second
	// metricsLag is the minimum age of a decision before it is counted. By then every transaction that could have written an older decision
	// has ended, so no decision is missed.
	metricsLag = 40 * time.Second
	// metricsStretch is the period that decision times and the expired ratio cover.
	metricsStretch = 24 * time.Hour
	// metricsTimeout bounds the reads of one scrape.
	metricsTimeout = 5 * time.Second
)

// serveMetrics serves Prometheus metrics at /metrics on address until stop is called. If address is empty, it does nothing. Every worker
// reports the same approvals, so take the maximum of these metrics over all workers, not the sum.
func serveMetrics(
	ctx context.Context, address string, db *store.DB, policies policiesRead, failures *ruleFailures, logger *slog.Logger,
) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "metrics cannot be served at %s: %w", address, err).WithField("JIG_METRICS_ADDRESS").
			WithHint("use a free host:port, e.g. 127.0.0.1:9464; without the setting no metrics are served")
	}
	registry := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // stop ends it, like the worker itself
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newApprovalMetrics(ctx, db, metricsAge, metricsLag), failures, newUnreadablePolicies(ctx, policies),
	)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{ctx: ctx, logger: logger}, ErrorHandling: promhttp.ContinueOnError, Registry: registry,
	}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: metricsTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.ErrorContext(ctx, "metrics are no longer served", slog.Any("error", err))
		}
	}()
	logger.InfoContext(ctx, "metrics are served", slog.String("address", listener.Addr().String()))
	return func() {
		cancel()
		_ = server.Close()
		<-served
	}, nil
}

// scrapeLog logs the errors of scrapes that could not read all metrics.
type scrapeLog struct {
	ctx    context.Context //nolint:containedctx // promhttp.Logger passes no context
	logger *slog.Logger
}

func (l scrapeLog) Println(v ...any) {
	l.logger.WarnContext(l.ctx, "a scrape could not read all metrics", slog.Any("error", v))
}

// measured is the part of the store that the metrics read.
type measured interface {
	OpenApprovals(ctx context.Context) ([]protocol.OpenCount, error)
	Outcomes(ctx context.Context, since, until time.Time) ([]protocol.OutcomeCount, error)
	Pace(ctx context.Context, since time.Time) (protocol.Pace, error)
	Now(ctx context.Context) (time.Time, error)
}

// approvalMetrics is a Prometheus collector that reads the store when it is scraped. It counts the decisions made since it was created.
type approvalMetrics struct {
	ctx      context.Context //nolint:containedctx // Collect gets no context
	db       measured
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

func newApprovalMetrics(ctx context.Context, db measured, age, lag time.Duration) *approvalMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &approvalMetrics{
		ctx: ctx, db: db, age: age, lag: lag, total: map[outcomeKey]int64{},
		open:    desc("jig_approvals_open", "Approvals, questions and reconciliations that wait for a person.", "tenant", "kind"),
		oldest:  desc("jig_approvals_oldest_age_seconds", "How long the oldest of them has waited.", "tenant", "kind"),
		decided: desc("jig_approvals_decided_total", "Approvals that ended since the worker's start, by outcome.", "tenant", "outcome"),
		seconds: desc("jig_approval_decision_seconds", "Time to a person's decision over the last 24 hours.", "quantile"),
		expired: desc("jig_approvals_expired_ratio", "Share of expired approvals among those that ended in the last 24 hours."),
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
	ctx, cancel := context.WithTimeout(m.ctx, metricsTimeout)
	defer cancel()
	at, err := m.db.Now(ctx)
	if err != nil {
		return err
	}
	waiting, err := m.db.OpenApprovals(ctx)
	if err != nil {
		return err
	}
	pace, err := m.db.Pace(ctx, at.Add(-metricsStretch))
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
		m.total[outcomeKey{c.Tenant, c.Outcome}] += c.Count
	}
	m.read, m.at, m.counted, m.waiting, m.pace = time.Now(), at, until, waiting, pace
	return nil
}
