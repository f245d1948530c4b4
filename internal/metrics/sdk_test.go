package metrics_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/metrics"
)

func TestTemporal_MetricsOfTheSDK(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	h := m.Temporal().WithTags(map[string]string{"namespace": "default", "client_name": "temporal_go", "task_queue": "host:1234", "worker_type": "none"})
	calls := h.WithTags(map[string]string{"operation": "StartWorkflowExecution"})
	calls.Counter("temporal_request").Inc(1)
	calls.Counter("temporal_request").Inc(2)
	calls.Counter("temporal_request").Inc(-5)
	h.WithTags(map[string]string{"operation": "Signal"}).WithTags(map[string]string{"status_code": "UNAVAILABLE"}).Counter("temporal_request_failure").Inc(1)
	h.Gauge("temporal_sticky_cache_size").Update(7)
	h.Gauge("temporal_sticky_cache_size").Update(5)
	activity := h.WithTags(map[string]string{"workflow_type": "Pass"}).WithTags(map[string]string{"activity_type": "file.write"})
	activity.Timer("temporal_activity_execution_latency").Record(2 * time.Second)
	activity.WithTags(map[string]string{"operation": "Signal"}).Counter("temporal_request").Inc(1)
	url, _ := serve(t, m)
	text := metrics.Scrape(t, url)
	for _, line := range []string{
		`temporal_request_total{operation="Signal"} 1`, `temporal_request_total{operation="StartWorkflowExecution"} 3`, `temporal_request_failure_total{operation="Signal",status_code="UNAVAILABLE"} 1`,
		`temporal_sticky_cache_size 5`, `temporal_activity_execution_latency_seconds_bucket{activity_type="file.write",le="1"} 0`,
		`temporal_activity_execution_latency_seconds_bucket{activity_type="file.write",le="5"} 1`,
		`temporal_activity_execution_latency_seconds_count{activity_type="file.write"} 1`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NotContains(t, text, "host:1234", "the task queue of a process is used once")
}

func TestTemporal_SeriesAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	for i := range 3000 {
		m.Temporal().WithTags(map[string]string{"activity_type": "tool" + strconv.Itoa(i)}).Counter("temporal_activity_execution_failed").Inc(1)
	}
	url, _ := serve(t, m)
	text := metrics.Scrape(t, url)
	require.Equal(t, 1001, strings.Count(text, "\ntemporal_activity_execution_failed_total{"))
	require.Contains(t, text, `temporal_activity_execution_failed_total{activity_type="(other)"} 2000`+"\n")
}
