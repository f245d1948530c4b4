package e2e_test

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/protocol"
)

// gauges are the figures of one worker's /metrics, by name and labels as they are written there.
type gauges map[string]float64

// family adds up the figures of one name, whatever their labels.
func (g gauges) family(name string) (total float64) {
	for series, value := range g {
		if series == name || strings.HasPrefix(series, name+"{") {
			total += value
		}
	}
	return total
}

// sum adds up the figures of several workers, and most takes the greatest, as docs/metrics.md says.
func sum(name string, all ...gauges) (total float64) {
	for _, g := range all {
		total += g[name]
	}
	return total
}

func most(name string, all ...gauges) float64 {
	greatest := math.Inf(-1)
	for _, g := range all {
		if value, ok := g[name]; ok {
			greatest = max(greatest, value)
		}
	}
	return greatest
}

// freeAddress returns an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

func scrapeText(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// scrape reads the figures of a worker.
func scrape(t *testing.T, address string) gauges {
	t.Helper()
	text, err := scrapeText(t.Context(), address)
	require.NoError(t, err)
	figures := gauges{}
	for _, line := range regexp.MustCompile(`(?m)^([a-z]\w*(?:\{.*\})?) (\S+)$`).FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(line[2], 64)
		require.NoError(t, err, line[0])
		figures[line[1]] = value
	}
	return figures
}

const metricsPolicy = `kind: policy
name: metrics
rules:
  - {name: run, when: "tool.name == 'test.doubt'", verdict: run}
  - {name: broken, when: "tool.name == 'test.echo' && call.input.absent.deeper == 1", verdict: run}
`

// Two workers share the work. What they count adds up to what happened, exactly, and what they read from the store agrees.
func TestMetrics_OfASession(t *testing.T) {
	t.Parallel()
	model := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply {
		reply := modeltest.Text("done")
		reply.Usage = modeltest.Usage{Input: 40, Output: 10, CacheRead: 20}
		return reply
	})
	r := newReceiver(t)
	addresses := []string{freeAddress(t), freeAddress(t)}
	settings := []string{"ANTHROPIC_API_KEY=key", "ANTHROPIC_BASE_URL=" + model.URL}
	d := startEnv(t, append(settings, "JIG_METRICS_ADDRESS="+addresses[0])...)
	other := newTestEnv(t, append(settings, "JIG_METRICS_ADDRESS="+addresses[1], "JIG_TASK_QUEUE="+d.queue)...)
	other.start()
	require.True(t, eventually(t.Context(), patience, func() bool {
		_, err := scrapeText(t.Context(), addresses[1])
		return err == nil
	}))
	s := d.withBudget("metrics", "limits: [{name: day, level: tenant, window: day, tokens: 170}]")
	document := map[string]any{"documents": []map[string]string{{"path": "metrics.yaml", "body": metricsPolicy}}}
	call := func(tool string, input any, status jig.CallStatus) string {
		in := callInput(tool, input)
		in.Tenant = s.tenant
		result, err := d.Trigger(t.Context(), in, "")
		require.NoError(t, err)
		require.Equal(t, status, result.Status, "%s: %+v", tool, result.Result)
		return result.SessionID
	}
	policy := call("catalog.put", document, jig.CallWaiting)
	s.signal(policy, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	s.completes(policy)

	// Three calls of which one is in doubt, one needs a second attempt, and one fails.
	require.True(t, eventually(t.Context(), patience, func() bool { // until both workers know the policy
		in := callInput("test.echo", map[string]any{"value": "x"})
		in.Tenant = s.tenant
		result, err := d.Trigger(t.Context(), in, "")
		require.NoError(t, err)
		require.Equal(t, jig.CallSucceeded, result.Status)
		broken := `jig_policy_rule_failures_total{policy="metrics",rule="broken",tenant="` + s.tenant + `"}`
		return scrape(t, addresses[0])[broken] > 0 && scrape(t, addresses[1])[broken] > 0
	}), "a rule that cannot be evaluated is counted")
	doubtful := call("test.doubt", map[string]any{"url": r.URL, "name": "doubt", "ways": []string{"error"}}, jig.CallUnknown)
	call("test.twice", map[string]any{"name": "a"}, jig.CallSucceeded)
	call("test.fail", map[string]any{"name": "a"}, jig.CallFailed)

	// One session spends most of the budget, and the next one is refused.
	s.completes(s.begins("anthropic/claude-test", "tools: []\n"))
	refused := s.begins("anthropic/claude-test", "tools: []\n")
	require.Equal(t, jig.StatusFailed, s.finish(refused).Status)

	a, b := scrape(t, addresses[0]), scrape(t, addresses[1])
	tenant := `tenant="` + s.tenant + `"`
	for name, want := range map[string]float64{
		`jig_calls_unknown_total{tool="test.doubt"}`:                                                        1,
		`jig_call_attempts_total{tool="test.doubt"}`:                                                        1,
		`jig_call_attempts_total{tool="test.twice"}`:                                                        2,
		`jig_call_retries_total{tool="test.twice"}`:                                                         1,
		`jig_calls_ended_total{status="succeeded",tool="test.twice"}`:                                       1,
		`jig_calls_ended_total{status="failed",tool="test.fail"}`:                                           1,
		`jig_calls_ended_total{status="succeeded",tool="test.doubt"}`:                                       0,
		`jig_call_errors_total{code="CONFLICT"}`:                                                            1,
		`jig_call_duration_seconds_count{tool="test.twice"}`:                                                1,
		`jig_model_requests_total{model="anthropic/claude-test",outcome="ok"}`:                              1,
		`jig_model_tokens_total{kind="input",model="anthropic/claude-test"}`:                                40,
		`jig_model_tokens_total{kind="cache_read",model="anthropic/claude-test"}`:                           20,
		`jig_model_tokens_total{kind="output",model="anthropic/claude-test"}`:                               10,
		`jig_model_request_duration_seconds_count{model="anthropic/claude-test"}`:                           1,
		`jig_budget_exhausted_total{action="stop",budget="spending",limit="day",tenant="` + s.tenant + `"}`: 1,
		`jig_sessions_ended_total{status="failed",` + tenant + `}`:                                          2,
	} {
		require.InDelta(t, want, sum(name, a, b), 0, name)
	}
	require.Greater(t, sum(`jig_sessions_started_total{`+tenant+`}`, a, b), 6.0)
	require.InDelta(t, 1, sum(`jig_sessions_started_total{`+tenant+`}`, a, b)-sum(`jig_sessions_ended_total{status="completed",`+tenant+`}`, a, b)-
		sum(`jig_sessions_ended_total{status="failed",`+tenant+`}`, a, b), 0, "one session is open: that of the call in doubt")

	// A worker reads the store at most every ten seconds.
	require.True(t, eventually(t.Context(), patience, func() bool {
		a, b = scrape(t, addresses[0]), scrape(t, addresses[1])
		return most(`jig_budget_spent_tokens{budget="spending",limit="day",`+tenant+`}`, a) == 70 &&
			most(`jig_budget_spent_tokens{budget="spending",limit="day",`+tenant+`}`, b) == 70 && most(`jig_approvals_open{kind="reconcile",`+tenant+`}`, a, b) == 1
	}))
	for name, want := range map[string]float64{
		`jig_sessions_open{status="input_required",` + tenant + `}`:                1,
		`jig_budget_limit_tokens{budget="spending",limit="day",` + tenant + `}`:    170,
		`jig_budget_reserved_tokens{budget="spending",limit="day",` + tenant + `}`: 0,
		`jig_task_queue_backlog{type="workflow"}`:                                  0,
		`jig_task_queue_backlog{type="activity"}`:                                  0,
	} {
		require.InDelta(t, want, most(name, a, b), 0, name)
	}
	for _, g := range []gauges{a, b} {
		require.Positive(t, g["jig_store_connections_max"])
		require.Positive(t, g["jig_store_acquires_total"])
		require.Positive(t, g.family("temporal_num_pollers"))
		require.Zero(t, g[`promhttp_metric_handler_errors_total{cause="gathering"}`])
	}
	for _, name := range []string{"temporal_activity_schedule_to_start_latency_seconds_count", "temporal_workflow_task_schedule_to_start_latency_seconds_count"} {
		require.Positive(t, a.family(name)+b.family(name), name)
	}

	// A person says what happened. The call ends once, and no duration is made of the time that the person took.
	before := sum(`jig_call_duration_seconds_count{tool="test.doubt"}`, a, b)
	s.signal(doubtful, protocol.SignalReconcile, map[string]any{"call": "1.1", "outcome": "happened", "by": "ana"})
	s.completes(doubtful)
	a, b = scrape(t, addresses[0]), scrape(t, addresses[1])
	require.InDelta(t, 1, sum(`jig_calls_ended_total{status="succeeded",tool="test.doubt"}`, a, b), 0)
	require.InDelta(t, before, sum(`jig_call_duration_seconds_count{tool="test.doubt"}`, a, b), 0)
	for name := range a {
		require.NotContains(t, name, d.queue, "the name of the task queue is no label")
	}
}
