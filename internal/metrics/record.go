package metrics

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// The methods below make Metrics the observer of a store: each is called once for each change, when it has been committed. To count
// another change, add a method here and to the store's interface.
//
// A counter that alerts watch begins at 0 where its labels are known, because Prometheus sees no increase in a series that begins at 1.

// KnowTools gives tools series of their own, whatever the number of others. Call it with the tools that the program is built with.
func (m *Metrics) KnowTools(names []string) {
	m.tools.keep(names)
	for _, name := range names {
		m.unknown.WithLabelValues(name)
	}
}

// SessionStarted counts a session.
func (m *Metrics) SessionStarted(tenant string) {
	tenant = m.tenants.of(tenant)
	m.sessionsStarted.WithLabelValues(tenant).Inc()
	for _, status := range []jig.Status{jig.StatusCompleted, jig.StatusFailed, jig.StatusCanceled} {
		m.sessionsEnded.WithLabelValues(tenant, string(status))
	}
}

// SessionEnded counts the end of a session.
func (m *Metrics) SessionEnded(tenant string, status jig.Status) {
	m.sessionsEnded.WithLabelValues(m.tenants.of(tenant), string(status)).Inc()
}

// CallStarted counts an attempt of a call.
func (m *Metrics) CallStarted(tool string, attempt int) {
	tool = m.tools.of(tool)
	m.callAttempts.WithLabelValues(tool).Inc()
	m.unknown.WithLabelValues(tool)
	if attempt > 1 {
		m.callRetries.WithLabelValues(tool).Inc()
	}
}

// CallEnded counts a call with its final status. Its duration counts if an attempt has ended it.
func (m *Metrics) CallEnded(call jig.Call) {
	var code jig.Code
	if call.Result != nil && call.Result.Error != nil {
		code = call.Result.Error.Code
	}
	tool, took := none, call.Duration()
	if code != jig.CodeToolNotFound || took > 0 {
		tool = m.tools.of(call.Tool)
	}
	m.callsEnded.WithLabelValues(tool, string(call.Status)).Inc()
	if call.Status == jig.CallFailed {
		m.callErrors.WithLabelValues(codeLabel(code)).Inc()
	}
	if took > 0 {
		m.callSeconds.WithLabelValues(tool).Observe(took.Seconds())
	}
}

// CallUnknown counts a call whose outcome has become unknown.
func (m *Metrics) CallUnknown(call jig.Call) {
	m.unknown.WithLabelValues(m.tools.of(call.Tool)).Inc()
}

// CallHeld counts a call that begins to wait for a rate limit.
func (m *Metrics) CallHeld(tenant, document, limit string) {
	if m.rates.of(tenant+"\x00"+document+"\x00"+limit) == other {
		tenant, document, limit = other, other, other
	}
	m.callsHeld.WithLabelValues(tenant, document, limit).Inc()
}

// CallReleased counts a call that has waited for rate limits.
func (m *Metrics) CallReleased(waited time.Duration) {
	m.heldSeconds.WithLabelValues().Observe(waited.Seconds())
}

// BudgetExhausted counts a call that did not fit into a limit.
func (m *Metrics) BudgetExhausted(tenant, budget, limit, action string) {
	if m.limits.of(tenant+"\x00"+budget+"\x00"+limit) == other {
		tenant, budget, limit = other, other, other
	}
	m.budgetExhausted.WithLabelValues(tenant, budget, limit, action).Inc()
}

// RuleFailed counts a rule of a policy that could not be evaluated.
func (m *Metrics) RuleFailed(tenant, policy, rule string) {
	if m.rules.of(tenant+"\x00"+policy+"\x00"+rule) == other {
		tenant, policy, rule = other, other, other
	}
	m.ruleFailures.WithLabelValues(tenant, policy, rule).Inc()
}

// Delivered counts an attempt to send a notice to a webhook: sent, retried, given_up or gone.
func (m *Metrics) Delivered(outcome string) { m.deliveries.WithLabelValues(outcome).Inc() }

// Model answers prompts.
type Model interface {
	Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error)
	Check(model string) error
}

// Model returns a model that counts the requests to next. Every request counts, also one that a retried activity repeats, because each of
// them is paid for.
func (m *Metrics) Model(next Model) Model { return &countedModel{Model: next, metrics: m} }

// countedModel counts requests, tokens and durations of a model.
type countedModel struct {
	Model

	metrics *Metrics
}

// Answer asks the model.
func (c *countedModel) Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error) {
	began := time.Now()
	turn, err := c.Model.Answer(ctx, request, progress)
	c.metrics.answered(request.Model, time.Since(began), turn.Usage, err)
	return turn, err
}

func (m *Metrics) answered(model string, took time.Duration, usage chat.Usage, err error) {
	model = m.models.of(model)
	outcome := "ok"
	if err != nil {
		outcome = codeLabel(jig.CodeOf(err))
	}
	m.modelRequests.WithLabelValues(model, outcome).Inc()
	m.modelSeconds.WithLabelValues(model).Observe(took.Seconds())
	for _, t := range [...]struct {
		kind string
		n    int64
	}{
		{"input", usage.InputTokens}, {"output", usage.OutputTokens}, {"cache_read", usage.CacheReadTokens}, {"cache_write", usage.CacheCreateTokens},
	} {
		if t.n > 0 {
			m.modelTokens.WithLabelValues(model, t.kind).Add(float64(t.n))
		}
	}
}

// codeLabel returns the label for the code of an error. Tools may return codes of their own.
func codeLabel(code jig.Code) string {
	if slices.Contains(jig.Codes(), code) {
		return string(code)
	}
	return other
}

// Server holds the metrics of one server. Its methods are safe for concurrent use.
type Server struct {
	*exported

	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	streams  prometheus.Gauge
}

// NewServer returns the metrics of a server, which count from now on. pool returns the state of its connections to the database.
func NewServer(pool func() Pool) *Server {
	s := &Server{exported: newExported()}
	s.requests = s.counter("jig_http_requests_total", "Requests that were answered, by the operation of the OpenAPI document and the HTTP status.", "operation", "status")
	s.seconds = s.histogram("jig_http_request_duration_seconds", "How long answers took, without event streams and the time that clients asked to wait.",
		requestBuckets(), "operation")
	s.refused = s.counter("jig_http_refused_total",
		"Requests that were refused before they did anything: unauthenticated, scope, host, rate_of_key, rate_of_address, rate_of_starts or room.", "reason")
	for _, reason := range []string{"unauthenticated", "scope", "host", "rate_of_key", "rate_of_address", "rate_of_starts", "room"} {
		s.refused.WithLabelValues(reason)
	}
	streams := Family{Name: "jig_http_streams_open", Kind: gauge, Help: "Event streams that are open.", Scope: ScopeProcess}
	s.own(streams)
	s.streams = prometheus.NewGauge(prometheus.GaugeOpts{Name: streams.Name, Help: streams.Help})
	s.registry.MustRegister(s.streams, newPoolMetrics(s.exported, pool))
	return s
}

// requestBuckets are the upper bounds of jig_http_request_duration_seconds.
func requestBuckets() []float64 {
	return []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

// Requested counts a request. An empty operation counts as (none). A took of 0 is no duration.
func (s *Server) Requested(operation string, status int, took time.Duration) {
	if operation == "" {
		operation = none
	}
	s.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	if took > 0 {
		s.seconds.WithLabelValues(operation).Observe(took.Seconds())
	}
}

// Refused counts a request that was refused before it did anything.
func (s *Server) Refused(reason string) { s.refused.WithLabelValues(reason).Inc() }

// StreamOpened counts an event stream that begins.
func (s *Server) StreamOpened() { s.streams.Inc() }

// StreamClosed counts an event stream that ends.
func (s *Server) StreamClosed() { s.streams.Dec() }
