package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// fakeCounts is a fake store whose numbers a test sets.
type fakeCounts struct {
	at       time.Time
	reads    int
	outcomes func(since, until time.Time) []protocol.OutcomeCount
	err      error
}

func (c *fakeCounts) Now(context.Context) (time.Time, error) { c.reads++; return c.at, c.err }

func (c *fakeCounts) OpenApprovals(context.Context) ([]protocol.OpenCount, error) {
	return []protocol.OpenCount{{Tenant: "acme", Kind: jig.PendingApproval, Count: 3, Oldest: c.at.Add(-time.Hour)}}, nil
}

func (c *fakeCounts) Outcomes(_ context.Context, since, until time.Time) ([]protocol.OutcomeCount, error) {
	return c.outcomes(since, until), nil
}

func (c *fakeCounts) Pace(context.Context, time.Time) (protocol.Pace, error) {
	return protocol.Pace{P50: 60, P90: 600, P99: 6000, ExpiredShare: 0.25}, nil
}

// Scrape reads a metrics endpoint.
func Scrape(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func served(t *testing.T, m prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestApprovals_AreMeasured(t *testing.T) {
	t.Parallel()
	began := time.Unix(100_000, 0)
	c := &fakeCounts{at: began}
	decided := []time.Time{began.Add(-time.Minute), began.Add(-10 * time.Second), began.Add(20 * time.Second), began.Add(70 * time.Second)}
	c.outcomes = func(since, until time.Time) []protocol.OutcomeCount {
		var n int64
		for _, at := range decided {
			if !at.Before(since) && at.Before(until) {
				n++
			}
		}
		return []protocol.OutcomeCount{{Tenant: "acme", Outcome: protocol.OutcomeApproved, Count: n}}
	}
	url := served(t, newApprovalMetrics(t.Context(), New(), c, 0, 30*time.Second))
	text := Scrape(t, url)
	for _, line := range []string{
		`jig_approvals_open{kind="approval",tenant="acme"} 3`, `jig_approvals_decided_total{outcome="approved",tenant="acme"} 0`,
		`jig_approval_decision_seconds{quantile="0.5"} 60`, `jig_approval_decision_seconds{quantile="0.99"} 6000`, `jig_approvals_expired_ratio 0.25`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.Regexp(t, `jig_approvals_oldest_age_seconds\{kind="approval",tenant="acme"\} 360\d`, text)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{30 * time.Second, "1"}, {30 * time.Second, "1"}, {60 * time.Second, "2"}, {200 * time.Second, "3"}, {300 * time.Second, "3"}} {
		c.at = began.Add(step.after)
		require.Contains(t, Scrape(t, url), `jig_approvals_decided_total{outcome="approved",tenant="acme"} `+step.want+"\n", "after %s", step.after)
	}
}

func TestMetrics_AreCached(t *testing.T) {
	t.Parallel()
	c := &fakeCounts{at: time.Unix(1000, 0), outcomes: func(time.Time, time.Time) []protocol.OutcomeCount { return nil }}
	url := served(t, newApprovalMetrics(t.Context(), New(), c, time.Hour, 0))
	c.err = errors.New("down")
	require.NotContains(t, Scrape(t, url), "jig_approvals_open{")
	c.err = nil
	require.Contains(t, Scrape(t, url), "jig_approvals_open{", "what failed is read again")
	require.Contains(t, Scrape(t, url), "jig_approvals_open{")
	require.Equal(t, 2, c.reads)
}
