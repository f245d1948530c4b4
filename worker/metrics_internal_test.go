package worker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
)

// counter is a fake store whose numbers a test sets.
type counter struct {
	at       time.Time
	reads    int
	outcomes func(since, until time.Time) []protocol.OutcomeCount
	err      error
}

func (c *counter) Now(context.Context) (time.Time, error) { c.reads++; return c.at, c.err }

func (c *counter) OpenApprovals(context.Context) ([]protocol.OpenCount, error) {
	return []protocol.OpenCount{{Tenant: "acme", Kind: jig.PendingApproval, Count: 3, Oldest: c.at.Add(-time.Hour)}}, nil
}

func (c *counter) Outcomes(_ context.Context, since, until time.Time) ([]protocol.OutcomeCount, error) {
	return c.outcomes(since, until), nil
}

func (c *counter) Pace(context.Context, time.Time) (protocol.Pace, error) {
	return protocol.Pace{P50: 60, P90: 600, P99: 6000, ExpiredShare: 0.25}, nil
}

// scrape reads a metrics endpoint.
func scrape(t *testing.T, url string) string {
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

func TestApprovalMetrics(t *testing.T) {
	t.Parallel()
	began := time.Unix(100_000, 0)
	c := &counter{at: began}
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
	url := served(t, newApprovalMetrics(t.Context(), c, 0, 30*time.Second))
	text := scrape(t, url)
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
		require.Contains(t, scrape(t, url), `jig_approvals_decided_total{outcome="approved",tenant="acme"} `+step.want+"\n", "after %s", step.after)
	}
}

func TestMetrics_AreCached(t *testing.T) {
	t.Parallel()
	c := &counter{at: time.Unix(1000, 0), outcomes: func(time.Time, time.Time) []protocol.OutcomeCount { return nil }}
	url := served(t, newApprovalMetrics(t.Context(), c, time.Hour, 0))
	c.err = errors.New("down")
	require.NotContains(t, scrape(t, url), "jig_approvals_open{")
	c.err = nil
	require.Contains(t, scrape(t, url), "jig_approvals_open{", "what failed is read again")
	require.Contains(t, scrape(t, url), "jig_approvals_open{")
	require.Equal(t, 2, c.reads)
}

// The endpoint is served as by a worker, with a real store.
func TestServeMetrics(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	session := storetest.Session(t, db, tenant)
	_, err := db.BeginPass(t.Context(), tenant, session.ID, 1)
	require.NoError(t, err)
	call := jig.Call{
		Tenant: tenant, SessionID: session.ID, ID: "1.1", Pass: 1, Ordinal: 1, Tool: "a.write", Digest: "d", Input: []byte(`{}`),
		Verdict: jig.VerdictAsk, Status: jig.CallWaiting,
	}
	require.NoError(t, db.Admit(t.Context(), ledger.Admission{
		Tenant: tenant, SessionID: session.ID, Pass: 1, Calls: []jig.Call{call},
		Approvals: []jig.Pending{{Kind: jig.PendingApproval, Call: "1.1", Tool: "a.write", Digest: "d", RequestedAt: time.Now().Add(-time.Minute)}},
	}))
	failures := newRuleFailures()
	failures.count("acme", "shop", "large")
	var log bytes.Buffer
	stop, err := serveMetrics(t.Context(), "127.0.0.1:0", db, unread{"acme": 1}, failures, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(log.String())
	require.NotNil(t, address, log.String())
	text := scrape(t, "http://"+address[1]+"/metrics")
	require.Contains(t, text, `jig_approvals_open{kind="approval",tenant="`+tenant+`"} 1`+"\n")
	require.Regexp(t, `jig_approvals_oldest_age_seconds\{kind="approval",tenant="`+tenant+`"\} (6\d|[7-9]\d)`, text)
	require.Contains(t, text, `jig_policies_unreadable{tenant="acme"} 1`+"\n")
	require.Contains(t, text, `jig_policy_rule_failures_total{policy="shop",rule="large",tenant="acme"} 1`+"\n")
	require.Contains(t, text, "go_goroutines ")
	stop()
	_, err = new(net.Dialer).DialContext(t.Context(), "tcp", address[1])
	require.Error(t, err, "nobody listens any more")
}

func TestServeNoMetrics(t *testing.T) {
	t.Parallel()
	stop, err := serveMetrics(t.Context(), "", nil, nil, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	stop()
	_, err = serveMetrics(t.Context(), "nowhere", nil, nil, nil, slog.New(slog.DiscardHandler))
	require.Equal(t, "JIG_METRICS_ADDRESS", jig.AsError(err).Field)
	require.Contains(t, jig.AsError(err).Hint, "9464")
}
