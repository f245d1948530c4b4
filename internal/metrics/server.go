package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
		"Requests that were refused before they did anything: unauthenticated, scope, host, rate_of_key, rate_of_address or rate_of_starts.", "reason")
	for _, reason := range []string{"unauthenticated", "scope", "host", "rate_of_key", "rate_of_address", "rate_of_starts"} {
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
