package metrics

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.temporal.io/sdk/client"
)

// maxSDKSeries bounds how many series each metric of Temporal's SDK has. Further ones share one whose labels are all other.
const maxSDKSeries = 1_000

// sdkMetrics collects the metrics of Temporal's SDK, which names them and chooses their tags while it runs. Counters get the suffix _total
// and timers the suffix _seconds, as in Temporal's own documentation.
type sdkMetrics struct {
	mu     sync.RWMutex
	series map[string]prometheus.Metric
	counts map[string]int
}

func newSDKMetrics() *sdkMetrics {
	return &sdkMetrics{series: map[string]prometheus.Metric{}, counts: map[string]int{}}
}

// Temporal returns a handler for the options of a Temporal client, which makes the SDK's metrics part of these.
func (e *exported) Temporal() sdk.MetricsHandler { return sdkHandler{metrics: e.sdk} }

// Describe implements prometheus.Collector. It describes nothing, because the SDK decides which metrics there are.
func (*sdkMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *sdkMetrics) Collect(ch chan<- prometheus.Metric) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, one := range s.series {
		ch <- one
	}
}

// sdkSeries returns the series with a name and tags, which create makes if it is new.
func sdkSeries[M prometheus.Metric](s *sdkMetrics, name string, h sdkHandler, create func(name, help string, labels prometheus.Labels) M) M {
	tags, key := h.tags, h.key
	if strings.HasPrefix(name, "temporal_request") || strings.HasPrefix(name, "temporal_long_request") {
		tags, key = h.requestTags, h.requestKey
	}
	key = name + key
	s.mu.RLock()
	found, ok := s.series[key]
	s.mu.RUnlock()
	if !ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		labels := prometheus.Labels{}
		for _, tag := range tags {
			labels[tag.name] = tag.value
		}
		if s.counts[name] >= maxSDKSeries {
			key = name + "\x00" + other
			for label := range labels {
				labels[label] = other
			}
		}
		if found, ok = s.series[key]; !ok {
			found = create(name, "See Temporal's reference of SDK metrics.", labels)
			s.series[key] = found
			s.counts[name]++
		}
	}
	one, _ := found.(M) //nolint:errcheck // a name has one kind of metric
	return one
}

// sdkHandler implements the SDK's handler for one set of tags.
type sdkHandler struct {
	metrics *sdkMetrics
	tags    []sdkTag // sorted by name
	key     string
	// requestTags and requestKey are those of metrics about requests to Temporal, which do not tell types of activities and workflows apart:
	// their number times that of operations would be large.
	requestTags []sdkTag
	requestKey  string
}

type sdkTag struct{ name, value string }

// keptTags lists the tags of the SDK that become labels. The namespace and the client are the same for the whole process, and a task queue
// may be that of one process, whose name is never used again.
func keptTags() []string {
	return []string{
		"activity_type", "cause", "failure_reason", "operation", "poller_type", "status_code", "worker_type", "workflow_type",
	}
}

// WithTags returns a handler with more tags.
func (h sdkHandler) WithTags(tags map[string]string) sdk.MetricsHandler {
	merged := map[string]string{}
	for _, t := range h.tags {
		merged[t.name] = t.value
	}
	for name, value := range tags {
		if slices.Contains(keptTags(), name) && value != "" && value != "none" {
			merged[name] = value
		}
	}
	if merged["activity_type"] != "" {
		delete(merged, "workflow_type") // activities run on behalf of any workflow
	}
	next := sdkHandler{metrics: h.metrics}
	for _, name := range keptTags() {
		value, ok := merged[name]
		if !ok {
			continue
		}
		next.tags = append(next.tags, sdkTag{name, value})
		next.key += "\x00" + name + "=" + value
		if name != "activity_type" && name != "workflow_type" {
			next.requestTags = append(next.requestTags, sdkTag{name, value})
			next.requestKey += "\x00" + name + "=" + value
		}
	}
	return next
}

// Counter returns a counter.
func (h sdkHandler) Counter(name string) sdk.MetricsCounter {
	return sdkSeries(h.metrics, name+"_total", h, func(name, help string, labels prometheus.Labels) sdkCounter {
		return sdkCounter{prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})}
	})
}

// Gauge returns a gauge.
func (h sdkHandler) Gauge(name string) sdk.MetricsGauge {
	return sdkSeries(h.metrics, name, h, func(name, help string, labels prometheus.Labels) sdkGauge {
		return sdkGauge{prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})}
	})
}

// Timer returns a timer.
func (h sdkHandler) Timer(name string) sdk.MetricsTimer {
	return sdkSeries(h.metrics, name+"_seconds", h, func(name, help string, labels prometheus.Labels) sdkTimer {
		return sdkTimer{prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: labels, Buckets: sdkBuckets()})}
	})
}

// sdkBuckets are the upper bounds of the SDK's timers, from a round trip to a workflow that waits for days.
func sdkBuckets() []float64 { return []float64{.005, .02, .1, .5, 1, 5, 30, 300, 3600, 86400} }

type (
	sdkCounter struct{ prometheus.Counter }
	sdkGauge   struct{ prometheus.Gauge }
	sdkTimer   struct{ prometheus.Histogram }
)

// Inc adds to the counter.
func (c sdkCounter) Inc(n int64) {
	if n > 0 {
		c.Add(float64(n))
	}
}

// Update sets the gauge.
func (g sdkGauge) Update(value float64) { g.Set(value) }

// Record observes a duration.
func (t sdkTimer) Record(took time.Duration) { t.Observe(took.Seconds()) }
