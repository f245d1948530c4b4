package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/metrics"
	"github.com/jig-run/jig/internal/protocol"
)

// sources is a store, budgets, policies and Temporal whose numbers a test sets.
type sources struct {
	err error
	// tenants multiplies the sessions by as many tenants.
	tenants int
}

func (s sources) Now(context.Context) (time.Time, error) { return time.Unix(100_000, 0), s.err }

func (s sources) OpenApprovals(context.Context) ([]protocol.OpenCount, error) {
	return []protocol.OpenCount{{Tenant: "acme", Kind: jig.PendingApproval, Count: 3, Oldest: time.Unix(100_000, 0).Add(-time.Hour)}}, nil
}

func (sources) Outcomes(context.Context, time.Time, time.Time) ([]protocol.OutcomeCount, error) {
	return []protocol.OutcomeCount{{Tenant: "acme", Outcome: protocol.OutcomeApproved, Count: 1}}, nil
}

func (sources) Pace(context.Context, time.Time) (protocol.Pace, error) {
	return protocol.Pace{P50: 60, P90: 600, P99: 6000, ExpiredShare: 0.25}, nil
}

func (s sources) OpenSessions(context.Context) ([]protocol.SessionCount, error) {
	counts := []protocol.SessionCount{{Tenant: "acme", Status: jig.StatusWorking, Count: 2}, {Tenant: "acme", Status: jig.StatusInputRequired, Count: 5}}
	for i := range s.tenants {
		counts = append(counts, protocol.SessionCount{Tenant: "t" + strconv.Itoa(i), Status: jig.StatusWorking, Count: 1})
	}
	return counts, s.err
}

func (sources) PendingDeliveries(context.Context) ([]protocol.DeliveryCount, error) {
	return []protocol.DeliveryCount{{Tenant: "acme", Count: 4, Oldest: time.Unix(100_000, 0).Add(-time.Minute)}}, nil
}

func (sources) BudgetsUsed(_ context.Context, day string) (map[string][]budget.Used, error) {
	return map[string][]budget.Used{"acme": {{Account: budget.Account{Period: day}}}}, nil
}

// Limits returns two agents' accounts of one limit and the account of another.
func (sources) Limits(_ context.Context, _ string, used []budget.Used) (string, []protocol.BudgetState, error) {
	state := func(limit, agent string, tokens int64) protocol.BudgetState {
		s := protocol.BudgetState{Budget: "spending", Limit: limit, Scope: agent, Day: used[0].Period, UsedTokens: tokens, ReservedTokens: 5}
		if agent != "" {
			s.Tokens = 100
			return s
		}
		s.UsedCost, s.ReservedCost, s.Cost = "1.5", "0.5", "4"
		return s
	}
	return "USD", []protocol.BudgetState{state("agents", "a", 10), state("agents", "b", 70), state("day", "", 0)}, nil
}

func (sources) Unreadable(context.Context) (map[string]int, error) {
	return map[string]int{"acme": 1}, nil
}

func (s sources) read(ctx context.Context, m *metrics.Metrics) {
	m.Read(ctx, metrics.Sources{
		Store: s, Budgets: s, Policies: s,
		Pool: func() metrics.Pool {
			return metrics.Pool{InUse: 2, Idle: 6, Max: 8, Acquired: 100, Waited: 3, WaitTime: time.Second}
		},
		Backlogs: func(context.Context) ([]metrics.Backlog, error) {
			return []metrics.Backlog{{Type: "workflow", Tasks: 7, Age: 2 * time.Second}}, s.err
		},
	})
}

// serve serves metrics and returns their address and what was logged.
func serve(t *testing.T, m *metrics.Metrics) (url string, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	stop, err := m.Serve(t.Context(), "JIG_METRICS_ADDRESS", "127.0.0.1:0", slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	t.Cleanup(stop)
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(log.String())
	require.NotNil(t, address, log.String())
	return "http://" + address[1] + "/metrics", log
}

// answering is a model that always answers in the same way.
type answering struct{ err error }

func (a answering) Answer(context.Context, chat.Request, func(string)) (chat.Turn, error) {
	return chat.Turn{Usage: chat.Usage{InputTokens: 10, OutputTokens: 3, CacheReadTokens: 90}}, a.err
}

func (answering) Check(string) error { return nil }

// ended returns a call that has succeeded or, with a code, failed. took is the duration of its attempt; 0 if there was none.
func ended(tool string, code jig.Code, took time.Duration) jig.Call {
	call := jig.Call{Tool: tool, Status: jig.CallSucceeded}
	if code != "" {
		call.Status, call.Result = jig.CallFailed, new(jig.Failure(&jig.Error{Code: code}))
	}
	if took > 0 {
		call.FinishedAt = new(time.Now())
		call.StartedAt = new(call.FinishedAt.Add(-took))
	}
	return call
}

// use counts one of everything.
func use(t *testing.T, m *metrics.Metrics) {
	t.Helper()
	m.KnowTools([]string{"file.write"})
	m.SessionStarted("acme")
	m.SessionEnded("acme", jig.StatusCompleted)
	m.CallStarted("file.write", 1)
	m.CallStarted("file.write", 2)
	m.CallEnded(ended("file.write", "", 3*time.Second))
	m.CallEnded(ended("file.write", jig.CodeTimeout, 0))
	m.CallEnded(ended("made.up", jig.CodeToolNotFound, 0))
	m.CallUnknown(jig.Call{Tool: "file.write"})
	m.CallHeld("acme", "polite", "per-host")
	m.CallReleased(3 * time.Second)
	m.BudgetExhausted("acme", "spending", "day", "stop")
	m.RuleFailed("acme", "shop", "large")
	m.Delivered("sent")
	for _, err := range []error{nil, jig.Errorf(jig.CodeRateLimited, "slow down"), jig.Errorf("MY_OWN", "what")} {
		_, got := m.Model(answering{err}).Answer(t.Context(), chat.Request{Model: "test/model"}, nil)
		require.Equal(t, err, got)
	}
}

func TestMetrics_ShowWhatHappened(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	sources{}.read(t.Context(), m)
	use(t, m)
	url, _ := serve(t, m)
	text := metrics.Scrape(t, url)
	for _, line := range []string{
		`jig_sessions_started_total{tenant="acme"} 1`, `jig_sessions_ended_total{status="completed",tenant="acme"} 1`,
		`jig_sessions_open{status="working",tenant="acme"} 2`, `jig_sessions_open{status="input_required",tenant="acme"} 5`,
		`jig_calls_ended_total{status="succeeded",tool="file.write"} 1`, `jig_calls_ended_total{status="failed",tool="file.write"} 1`,
		`jig_calls_ended_total{status="failed",tool="(none)"} 1`, `jig_call_errors_total{code="TIMEOUT"} 1`,
		`jig_call_attempts_total{tool="file.write"} 2`, `jig_call_retries_total{tool="file.write"} 1`, `jig_calls_unknown_total{tool="file.write"} 1`,
		`jig_call_duration_seconds_bucket{tool="file.write",le="2.5"} 0`, `jig_call_duration_seconds_bucket{tool="file.write",le="5"} 1`,
		`jig_call_duration_seconds_count{tool="file.write"} 1`,
		`jig_model_requests_total{model="test/model",outcome="ok"} 1`, `jig_model_requests_total{model="test/model",outcome="RATE_LIMITED"} 1`,
		`jig_model_requests_total{model="test/model",outcome="(other)"} 1`, `jig_model_request_duration_seconds_count{model="test/model"} 3`,
		`jig_model_tokens_total{kind="input",model="test/model"} 30`, `jig_model_tokens_total{kind="cache_read",model="test/model"} 270`,
		`jig_model_tokens_total{kind="output",model="test/model"} 9`,
		`jig_budget_exhausted_total{action="stop",budget="spending",limit="day",tenant="acme"} 1`,
		`jig_budget_used_ratio{budget="spending",limit="agents",tenant="acme"} 0.75`, `jig_budget_spent_tokens{budget="spending",limit="agents",tenant="acme"} 70`,
		`jig_budget_reserved_tokens{budget="spending",limit="agents",tenant="acme"} 5`, `jig_budget_limit_tokens{budget="spending",limit="agents",tenant="acme"} 100`,
		`jig_budget_used_ratio{budget="spending",limit="day",tenant="acme"} 0.5`, `jig_budget_spent_cost{budget="spending",limit="day",tenant="acme"} 1.5`,
		`jig_budget_reserved_cost{budget="spending",limit="day",tenant="acme"} 0.5`, `jig_budget_limit_cost{budget="spending",limit="day",tenant="acme"} 4`,
		`jig_calls_held_total{limit="per-host",rate_limit="polite",tenant="acme"} 1`, `jig_call_held_seconds_bucket{le="5"} 1`, `jig_call_held_seconds_sum 3`,
		`jig_policy_rule_failures_total{policy="shop",rule="large",tenant="acme"} 1`, `jig_policies_unreadable{tenant="acme"} 1`,
		`jig_notice_deliveries_total{outcome="sent"} 1`, `jig_notice_deliveries_pending{tenant="acme"} 4`,
		`jig_task_queue_backlog{type="workflow"} 7`, `jig_task_queue_backlog_age_seconds{type="workflow"} 2`,
		`jig_store_connections{state="in_use"} 2`, `jig_store_connections_max 8`, `jig_store_acquire_waits_total 3`, `jig_store_acquire_wait_seconds_total 1`,
		`jig_approvals_open{kind="approval",tenant="acme"} 3`, `jig_approval_decision_seconds{quantile="0.99"} 6000`, `jig_approvals_expired_ratio 0.25`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.Regexp(t, `jig_notice_deliveries_oldest_age_seconds\{tenant="acme"\} 6\d`, text)
	for _, line := range []string{
		`jig_sessions_ended_total{status="failed",tenant="acme"} 0`, `jig_notice_deliveries_total{outcome="given_up"} 0`,
	} {
		require.Contains(t, text, line+"\n", "alerts would miss the first one")
	}
	require.NotContains(t, text, `cache_write`)
	require.NotContains(t, text, `jig_budget_spent_cost{budget="spending",limit="agents"`)
	require.Contains(t, text, "go_goroutines ")
}

// Every family is exported under its name and with its kind, and nothing else of jig's is.
func TestFamilies_AreExported(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	sources{}.read(t.Context(), m)
	use(t, m)
	url, _ := serve(t, m)
	want := map[string]string{}
	for _, f := range m.Families() {
		want[f.Name] = f.Kind
		require.NotEmpty(t, f.Help, f.Name)
		require.Regexp(t, `\.$`, f.Help, f.Name)
		require.Equal(t, f.Kind == "counter", strings.HasSuffix(f.Name, "_total"), f.Name)
	}
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (jig_\w+) (\w+)$`).FindAllStringSubmatch(metrics.Scrape(t, url), -1) {
		got[m[1]] = m[2]
	}
	require.Equal(t, want, got)
}

// Whatever tenants, models and documents do, the number of series is bounded.
func TestSeries_AreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	sources{tenants: 2000}.read(t.Context(), m)
	m.KnowTools([]string{"file.read", "file.write"})
	for i := range 2000 {
		n := strconv.Itoa(i)
		m.SessionStarted("t" + n)
		m.CallEnded(ended("doc.tool"+n, "", time.Second))
		m.BudgetExhausted("t"+n, "b", "l", "ask")
		m.CallHeld("t"+n, "b", "l")
		m.RuleFailed("t"+n, "p", "r")
		_, err := m.Model(answering{}).Answer(t.Context(), chat.Request{Model: "model" + n}, nil)
		require.NoError(t, err)
	}
	m.CallEnded(ended("file.write", "", time.Second))
	url, _ := serve(t, m)
	text := metrics.Scrape(t, url)
	for name, most := range map[string]int{
		"jig_sessions_started_total": 501, "jig_sessions_open": 502, "jig_calls_ended_total": 202, "jig_call_duration_seconds_count": 202,
		"jig_model_requests_total": 101, "jig_budget_exhausted_total": 501, "jig_calls_held_total": 501, "jig_policy_rule_failures_total": 1001,
	} {
		require.Equal(t, most, strings.Count(text, "\n"+name+"{"), name)
	}
	for _, line := range []string{
		`jig_sessions_started_total{tenant="(other)"} 1500`, `jig_calls_ended_total{status="succeeded",tool="(other)"} 1800`,
		`jig_calls_ended_total{status="succeeded",tool="file.write"} 1`, `jig_model_requests_total{model="(other)",outcome="ok"} 1900`,
		`jig_budget_exhausted_total{action="ask",budget="(other)",limit="(other)",tenant="(other)"} 1500`,
		`jig_policy_rule_failures_total{policy="(other)",rule="(other)",tenant="(other)"} 1000`,
		`jig_sessions_open{status="working",tenant="(other)"} 1502`,
	} {
		require.Contains(t, text, line+"\n")
	}
}

// A number that cannot be read is left out of the scrape, not repeated; the scrape says so and has all other numbers.
func TestScrape_WithoutTheStore(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	sources{err: errors.New("the store is away")}.read(t.Context(), m)
	use(t, m)
	url, log := serve(t, m)
	text := metrics.Scrape(t, url)
	require.NotContains(t, text, "jig_sessions_open")
	require.NotContains(t, text, "jig_task_queue_backlog")
	require.Contains(t, text, `jig_sessions_started_total{tenant="acme"} 1`)
	require.Regexp(t, `promhttp_metric_handler_errors_total\{cause="gathering"\} [1-9]`, metrics.Scrape(t, url), "the next scrape counts the errors")
	require.Contains(t, log.String(), "the store is away")
}

func TestServe_AnswersPrometheus(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	stop, err := m.Serve(t.Context(), "JIG_METRICS_ADDRESS", "", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	stop()
	_, err = m.Serve(t.Context(), "JIG_METRICS_ADDRESS", "nowhere", slog.New(slog.DiscardHandler))
	require.Equal(t, "JIG_METRICS_ADDRESS", jig.AsError(err).Field)
	require.Contains(t, jig.AsError(err).Hint, "9464")

	var log bytes.Buffer
	stop, err = m.Serve(t.Context(), "JIG_METRICS_ADDRESS", "127.0.0.1:0", slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	stop()
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(log.String())
	_, err = new(net.Dialer).DialContext(t.Context(), "tcp", address[1])
	require.Error(t, err, "nobody listens any more")
}
