// Package metrics counts what a worker does and serves the counts to Prometheus. It has two kinds of metrics. Those of the process count
// what this process has stored, asked or sent since it started, so that the sum over all workers counts everything once. Those of the store
// describe what all workers share: open sessions, approvals, budgets, the backlog. Every worker reports the same, so take their maximum.
//
// A label has few values: those of a fixed list, or at most as many as a constant of this package says. Further values share the label
// (other).
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jig-run/jig"
)

// Scope says over how many workers a metric counts.
type Scope string

// The scopes of metrics.
const (
	// ScopeProcess is of metrics about this process: take the sum over all workers.
	ScopeProcess Scope = "process"
	// ScopeStore is of metrics that every worker reads from what all workers share: take the maximum over all workers.
	ScopeStore Scope = "store"
)

// Family describes the metrics of one name.
type Family struct {
	Name, Kind, Help string
	Labels           []string
	Scope            Scope
}

// The kinds of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// exported holds the metrics of one process. Its methods are safe for concurrent use.
type exported struct {
	registry *prometheus.Registry
	families []Family
	sdk      *sdkMetrics
}

// newExported returns the metrics that every process has: those of Go, of the process and of Temporal's SDK.
func newExported() *exported {
	e := &exported{registry: prometheus.NewRegistry(), sdk: newSDKMetrics()}
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), e.sdk)
	return e
}

// Metrics holds the metrics of one worker. Its methods are safe for concurrent use.
type Metrics struct {
	*exported

	tenants, tools, models *names
	limits, rules, rates   *names

	sessionsStarted, sessionsEnded                             *prometheus.CounterVec
	callsEnded, callErrors, callAttempts, callRetries, unknown *prometheus.CounterVec
	callSeconds                                                *prometheus.HistogramVec
	callsHeld                                                  *prometheus.CounterVec
	heldSeconds                                                *prometheus.HistogramVec
	modelRequests, modelTokens                                 *prometheus.CounterVec
	modelSeconds                                               *prometheus.HistogramVec
	budgetExhausted                                            *prometheus.CounterVec
	deliveries                                                 *prometheus.CounterVec
	ruleFailures                                               *prometheus.CounterVec
}

// New returns metrics that count from now on.
func New() *Metrics {
	m := &Metrics{
		exported: newExported(),
		tenants:  newNames(maxTenants), tools: newNames(maxTools), models: newNames(maxModels), limits: newNames(maxLimits), rules: newNames(maxRules), rates: newNames(maxLimits),
	}
	m.sessionsStarted = m.counter("jig_sessions_started_total", "Sessions that this worker has started.", "tenant")
	m.sessionsEnded = m.counter("jig_sessions_ended_total", "Sessions that this worker has ended, by status.", "tenant", "status")
	m.callsEnded = m.counter("jig_calls_ended_total", "Calls that have their final status, by status.", "tool", "status")
	m.callErrors = m.counter("jig_call_errors_total", "Calls that failed, by the code of their error.", "code")
	m.callAttempts = m.counter("jig_call_attempts_total", "Attempts of calls that have begun.", "tool")
	m.callRetries = m.counter("jig_call_retries_total", "Attempts of calls that have begun and were not the first of their call.", "tool")
	m.unknown = m.counter("jig_calls_unknown_total", "How often the outcome of a call became unknown, so that a person must say what happened.", "tool")
	m.callSeconds = m.histogram("jig_call_duration_seconds", "How long the last attempt of a call took.", callBuckets(), "tool")
	m.callsHeld = m.counter("jig_calls_held_total", "Calls and sessions that began to wait for a rate limit.", "tenant", "rate_limit", "limit")
	m.heldSeconds = m.histogram("jig_call_held_seconds", "How long calls and sessions waited for rate limits before they began or gave up.", callBuckets())
	m.modelRequests = m.counter("jig_model_requests_total", "Requests to models, by outcome: ok or the code of the error.", "model", "outcome")
	m.modelTokens = m.counter("jig_model_tokens_total", "Tokens that models used, by kind.", "model", "kind")
	m.modelSeconds = m.histogram("jig_model_request_duration_seconds", "How long models took to answer, errors included.", modelBuckets(), "model")
	m.budgetExhausted = m.counter("jig_budget_exhausted_total",
		"How often a call did not fit into a limit of a budget, by what was done: stop, ask or degrade.", "tenant", "budget", "limit", "action")
	m.deliveries = m.counter("jig_notice_deliveries_total", "Attempts to send a notice to a webhook, by outcome: sent, retried, given_up or gone.", "outcome")
	for _, outcome := range []string{"sent", "retried", "given_up", "gone"} {
		m.deliveries.WithLabelValues(outcome)
	}
	m.ruleFailures = m.counter("jig_policy_rule_failures_total", "How often a rule of a policy could not be evaluated.", "tenant", "policy", "rule")
	return m
}

// callBuckets are the upper bounds of jig_call_duration_seconds, from quick reads to compositions that wait for people.
func callBuckets() []float64 { return []float64{.005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800} }

// modelBuckets are the upper bounds of jig_model_request_duration_seconds.
func modelBuckets() []float64 { return []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300} }

func (e *exported) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	e.own(Family{Name: name, Kind: counter, Help: help, Labels: labels, Scope: ScopeProcess})
	e.registry.MustRegister(v)
	return v
}

func (e *exported) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	e.own(Family{Name: name, Kind: histogram, Help: help, Labels: labels, Scope: ScopeProcess})
	e.registry.MustRegister(v)
	return v
}

// desc describes a metric that is read when it is scraped.
func (e *exported) desc(scope Scope, kind, name, help string, labels ...string) *prometheus.Desc {
	e.own(Family{Name: name, Kind: kind, Help: help, Labels: labels, Scope: scope})
	return prometheus.NewDesc(name, help, labels, nil)
}

func (e *exported) own(f Family) { e.families = append(e.families, f) }

// Families lists jig's own metrics, without those of Go, the process and Temporal's SDK.
func (e *exported) Families() []Family { return e.families }

// Bounds of labels: how many tenants, models, limits and rules have series of their own. Tools that are written in Go always have;
// maxTools bounds the others, which come from documents.
const (
	maxTenants = 500
	maxTools   = 200
	maxModels  = 100
	maxLimits  = 500
	maxRules   = 1_000
)

const (
	// other is the label that all names beyond a bound share.
	other = "(other)"
	// none is the label of calls of tools that do not exist, whose names models make up, and of requests for operations that do not exist.
	none = "(none)"
)

// names bounds the values of a label: the first ones are kept, all others become other.
type names struct {
	mu   sync.RWMutex
	max  int
	seen map[string]bool
}

func newNames(most int) *names { return &names{max: most, seen: map[string]bool{}} }

// keep makes sure that names are never replaced. They do not count for the bound.
func (n *names) keep(names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		if !n.seen[name] {
			n.seen[name] = true
			n.max++
		}
	}
}

// of returns the value of the label for a name.
func (n *names) of(name string) string {
	n.mu.RLock()
	known, full := n.seen[name], len(n.seen) >= n.max
	n.mu.RUnlock()
	if known {
		return name
	}
	if full {
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.seen[name] && len(n.seen) >= n.max {
		return other
	}
	n.seen[name] = true
	return name
}

// Serve serves the metrics at /metrics on address until stop is called. If address is empty, it does nothing. Errors name the setting from
// which the address comes.
func (e *exported) Serve(ctx context.Context, setting, address string, logger *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "metrics cannot be served at %s: %w", address, err).WithField(setting).
			WithHint("use a free host:port, e.g. 127.0.0.1:9464; without the setting no metrics are served")
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{ctx: ctx, logger: logger}, ErrorHandling: promhttp.ContinueOnError, Registry: e.registry,
	}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.ErrorContext(ctx, "metrics are no longer served", slog.Any("error", err))
		}
	}()
	logger.InfoContext(ctx, "metrics are served", slog.String("address", listener.Addr().String()))
	return func() {
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
