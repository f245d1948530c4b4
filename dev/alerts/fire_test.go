package alerts_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// A series is written as in Prometheus' own tests of rules: its name and labels, and a value for each minute, "1", "3x60" for the same value
// 60 times, "0+2x60" for one that grows by 2, or "_x60" for 60 minutes without a value.
type series map[string]string

// now is the minute at which rules are evaluated. Every series has values before.
const now = 180

// cases has, for every alert, series at which it fires, with the labels of the alert, and similar ones at which it does not.
func cases() map[string]struct {
	fires  series
	labels string
	quiet  []series
} {
	type c = struct {
		fires  series
		labels string
		quiet  []series
	}
	return map[string]c{
		"JigNoWorker": {
			series{`up{job="jig",instance="a"}`: "1x100 0x80"},
			`{}`,
			[]series{{`up{job="jig",instance="a"}`: "1x180"}, {`up{job="jig",instance="a"}`: "0x180", `up{job="jig",instance="b"}`: "1x180"}},
		},
		"JigScrapeIncomplete": {
			series{`promhttp_metric_handler_errors_total{job="jig",instance="a",cause="gathering"}`: "0x100 0+1x80"},
			`{instance="a"}`,
			[]series{{`promhttp_metric_handler_errors_total{job="jig",instance="a",cause="gathering"}`: "7x180"}},
		},
		"JigBacklog": {
			series{
				`jig_task_queue_backlog_age_seconds{type="activity",instance="a"}`: "90x180",
				`jig_task_queue_backlog_age_seconds{type="activity",instance="b"}`: "0x180",
			},
			`{type="activity"}`,
			[]series{{`jig_task_queue_backlog_age_seconds{type="activity",instance="a"}`: "50x180"}, {`jig_task_queue_backlog_age_seconds{type="activity",instance="a"}`: "0x177 90x3"}},
		},
		"JigWorkflowTasksFail": {
			series{`temporal_workflow_task_execution_failed_total{workflow_type="Pass",failure_reason="NonDeterminismError",instance="a"}`: "0x100 0+1x80"},
			`{failure_reason="NonDeterminismError", workflow_type="Pass"}`,
			[]series{{`temporal_workflow_task_execution_failed_total{workflow_type="Pass",failure_reason="WorkflowError",instance="a"}`: "3x180"}},
		},
		"JigStoreConnectionsScarce": {
			series{`jig_store_acquire_wait_seconds_total{instance="a"}`: "0+120x180"},
			`{instance="a"}`,
			[]series{{`jig_store_acquire_wait_seconds_total{instance="a"}`: "0+6x180"}},
		},
		"JigSessionsFail": {
			series{
				`jig_sessions_ended_total{tenant="acme",status="failed",instance="a"}`:    "0x150 0+1x30",
				`jig_sessions_ended_total{tenant="acme",status="completed",instance="b"}`: "0x150 0+2x30",
				`jig_sessions_ended_total{tenant="zeta",status="completed",instance="b"}`: "0x150 0+2x30",
			},
			`{tenant="acme"}`,
			[]series{
				{`jig_sessions_ended_total{tenant="acme",status="failed",instance="a"}`: "0x170 2x10"},
				{`jig_sessions_ended_total{tenant="acme",status="failed",instance="a"}`: "0+1x180", `jig_sessions_ended_total{tenant="acme",status="completed",instance="a"}`: "0+9x180"},
			},
		},
		"JigToolFails": {
			series{
				`jig_calls_ended_total{tool="http.get",status="failed",instance="a"}`:     "0x150 0+1x30",
				`jig_calls_ended_total{tool="http.get",status="succeeded",instance="b"}`:  "0x150 0+2x30",
				`jig_calls_ended_total{tool="file.read",status="succeeded",instance="b"}`: "0+2x180",
			},
			`{tool="http.get"}`,
			[]series{
				{`jig_calls_ended_total{tool="http.get",status="failed",instance="a"}`: "0x170 3x10"},
				{`jig_calls_ended_total{tool="http.get",status="failed",instance="a"}`: "0+1x180", `jig_calls_ended_total{tool="http.get",status="succeeded",instance="b"}`: "0+9x180"},
			},
		},
		"JigToolRetries": {
			series{`jig_call_retries_total{tool="http.get",instance="a"}`: "0+1x180", `jig_call_attempts_total{tool="http.get",instance="a"}`: "0+2x180"},
			`{tool="http.get"}`,
			[]series{{`jig_call_retries_total{tool="http.get",instance="a"}`: "0+1x180", `jig_call_attempts_total{tool="http.get",instance="a"}`: "0+9x180"}},
		},
		"JigCallsHeld": {
			series{
				`jig_call_held_seconds_bucket{le="60",instance="a"}`: "0+1x180", `jig_call_held_seconds_bucket{le="300",instance="a"}`: "0+3x180",
				`jig_call_held_seconds_bucket{le="+Inf",instance="a"}`: "0+3x180",
			},
			`{}`,
			[]series{{`jig_call_held_seconds_bucket{le="60",instance="a"}`: "0+3x180", `jig_call_held_seconds_bucket{le="+Inf",instance="a"}`: "0+3x180"}},
		},
		"JigOutcomeUnknown": {
			series{`jig_approvals_open{tenant="acme",kind="reconcile",instance="a"}`: "0x170 1x10"},
			`{tenant="acme"}`,
			[]series{{`jig_approvals_open{tenant="acme",kind="approval",instance="a"}`: "3x180"}, {`jig_approvals_open{tenant="acme",kind="reconcile",instance="a"}`: "1x100 0x80"}},
		},
		"JigOutcomesUnknownOften": {
			series{`jig_calls_unknown_total{tool="pay.out",instance="a"}`: "0x130 1x20 3x30", `jig_calls_unknown_total{tool="pay.out",instance="b"}`: "0x130 1x50"},
			`{tool="pay.out"}`,
			[]series{{`jig_calls_unknown_total{tool="pay.out",instance="a"}`: "0x150 1x30"}},
		},
		"JigApprovalsWait": {
			series{`jig_approvals_oldest_age_seconds{tenant="acme",kind="approval",instance="a"}`: "0+100x180"},
			`{kind="approval", tenant="acme"}`,
			[]series{{`jig_approvals_oldest_age_seconds{tenant="acme",kind="approval",instance="a"}`: "0+60x180"}},
		},
		"JigApprovalsExpire": {
			series{`jig_approvals_expired_ratio{instance="a"}`: "0.3x180", `jig_approvals_expired_ratio{instance="b"}`: "0.3x180"},
			`{}`,
			[]series{{`jig_approvals_expired_ratio{instance="a"}`: "0.1x180"}},
		},
		"JigModelFails": {
			series{
				`jig_model_requests_total{model="m",outcome="RATE_LIMITED",instance="a"}`: "0+1x180",
				`jig_model_requests_total{model="m",outcome="ok",instance="a"}`:           "0+2x180",
			},
			`{model="m"}`,
			[]series{{`jig_model_requests_total{model="m",outcome="CANCELED",instance="a"}`: "0+9x180", `jig_model_requests_total{model="m",outcome="ok",instance="a"}`: "0+1x180"}},
		},
		"JigModelSlow": {
			durations(`jig_model_request_duration_seconds`, `model="m"`, "60", "120", "0+1x180"),
			`{model="m"}`,
			[]series{durations(`jig_model_request_duration_seconds`, `model="m"`, "60", "120", "0+3x180")},
		},
		"JigBudgetNearlyUsed": {
			series{
				`jig_budget_used_ratio{tenant="acme",budget="b",limit="day",instance="a"}`: "0x100 0.9x80",
				`jig_budget_used_ratio{tenant="acme",budget="b",limit="all",instance="a"}`: "0.1x180",
			},
			`{budget="b", limit="day", tenant="acme"}`,
			[]series{{`jig_budget_used_ratio{tenant="acme",budget="b",limit="day",instance="a"}`: "0.7x180"}},
		},
		"JigBudgetExhausted": {
			series{`jig_budget_exhausted_total{tenant="acme",budget="b",limit="day",action="stop",instance="a"}`: "_x175 1x5"}, // its first value is 1
			`{action="stop", budget="b", limit="day", tenant="acme"}`,
			[]series{{`jig_budget_exhausted_total{tenant="acme",budget="b",limit="day",action="stop",instance="a"}`: "4x180"}},
		},
		"JigPolicyUnreadable": {
			series{`jig_policies_unreadable{tenant="acme",instance="a"}`: "0x160 1x20", `jig_policies_unreadable{tenant="acme",instance="b"}`: "0x180"},
			`{tenant="acme"}`,
			[]series{{`jig_policies_unreadable{tenant="acme",instance="a"}`: "0x180"}},
		},
		"JigRuleFails": {
			series{`jig_policy_rule_failures_total{tenant="acme",policy="shop",rule="large",instance="a"}`: "_x170 1x10"},
			`{policy="shop", rule="large", tenant="acme"}`,
			[]series{{`jig_policy_rule_failures_total{tenant="acme",policy="shop",rule="large",instance="a"}`: "9x180"}},
		},
		"JigNoticesLost": {
			series{`jig_notice_deliveries_total{outcome="given_up",instance="a"}`: "0x150 1x30", `jig_notice_deliveries_total{outcome="sent",instance="a"}`: "0+1x180"},
			`{outcome="given_up"}`,
			[]series{{`jig_notice_deliveries_total{outcome="retried",instance="a"}`: "0+1x180", `jig_notice_deliveries_total{outcome="gone",instance="a"}`: "1x180"}},
		},
		"JigNoticesLate": {
			series{`jig_notice_deliveries_oldest_age_seconds{tenant="acme",instance="a"}`: "0x100 0+60x80"},
			`{tenant="acme"}`,
			[]series{{`jig_notice_deliveries_oldest_age_seconds{tenant="acme",instance="a"}`: "0x170 0+60x10"}},
		},
		"JigNoServer": {
			series{`up{job="jig-server",instance="a"}`: "1x100 0x80", `up{job="jig",instance="a"}`: "1x180"},
			`{}`,
			[]series{
				{`up{job="jig",instance="a"}`: "1x180"},
				{`up{job="jig-server",instance="a"}`: "1x100 0x80", `up{job="jig-server",instance="b"}`: "1x180"},
				{`up{job="jig-server",instance="a"}`: "0x180"},
			},
		},
		"JigServerFails": {
			series{
				`jig_http_requests_total{operation="decide",status="503",instance="a"}`: "0x100 0+1x80",
				`jig_http_requests_total{operation="decide",status="200",instance="a"}`: "0+9x180",
			},
			`{operation="decide"}`,
			[]series{
				{
					`jig_http_requests_total{operation="decide",status="503",instance="a"}`: "0x100 0+1x80",
					`jig_http_requests_total{operation="decide",status="200",instance="a"}`: "0+30x180",
				},
				{`jig_http_requests_total{operation="decide",status="500",instance="a"}`: "0x177 0+1x3"},
				{`jig_http_requests_total{operation="decide",status="409",instance="a"}`: "0+5x180"},
			},
		},
		"JigServerSlow": {
			durations(`jig_http_request_duration_seconds`, `operation="decide"`, "1", "2.5", "0+1x180"),
			`{operation="decide"}`,
			[]series{durations(`jig_http_request_duration_seconds`, `operation="decide"`, "1", "2.5", "0+3x180")},
		},
		"JigCredentialsRefused": {
			series{
				`jig_http_refused_total{reason="unauthenticated",instance="a"}`: "0+4x180",
				`jig_http_refused_total{reason="unauthenticated",instance="b"}`: "0+4x180",
			},
			`{}`,
			[]series{{`jig_http_refused_total{reason="unauthenticated",instance="a"}`: "0+4x180"}, {`jig_http_refused_total{reason="scope",instance="a"}`: "0+50x180"}},
		},
		"JigRequestsLimited": {
			series{`jig_http_refused_total{reason="rate_of_key",instance="a"}`: "0x100 0+20x80"},
			`{reason="rate_of_key"}`,
			[]series{{`jig_http_refused_total{reason="rate_of_key",instance="a"}`: "900x180"}, {`jig_http_refused_total{reason="host",instance="a"}`: "0+50x180"}},
		},
	}
}

// durations are the series of a histogram with three requests a minute, of which within took at most low seconds, and none more than high.
func durations(metric, label, low, high, within string) series {
	bucket := func(most string) string { return metric + "_bucket{" + label + `,le="` + most + `",instance="a"}` }
	return series{bucket(low): within, bucket(high): "0+3x180", bucket("+Inf"): "0+3x180"}
}

// Every alert fires when it should, with the labels that its summary shows, and is quiet otherwise.
func TestAlerts_Fire(t *testing.T) {
	t.Parallel()
	all := cases()
	for _, rule := range rules(t) {
		c, ok := all[rule.Alert]
		require.True(t, ok, "%s has no series at which it fires", rule.Alert)
		delete(all, rule.Alert)
		t.Run(rule.Alert, func(t *testing.T) {
			t.Parallel()
			wait := time.Duration(rule.For)
			require.Equal(t, []string{c.labels}, firing(t, c.fires, rule.Expr, wait))
			require.Empty(t, firing(t, series{}, withoutAbsent(rule.Expr), wait), "without any series")
			for _, quiet := range c.quiet {
				require.Empty(t, firing(t, quiet, rule.Expr, wait), "%v", quiet)
			}
		})
	}
	require.Empty(t, all, "these alerts do not exist")
}

// withoutAbsent returns an expression that is quiet without any series: absent is not.
func withoutAbsent(expr string) string {
	if strings.HasPrefix(expr, "absent(") {
		return "vector(0) > 0"
	}
	return expr
}

// firing returns the labels for which an expression has held in every minute of a time, until now.
func firing(t *testing.T, data series, expr string, wait time.Duration) []string {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, Parser: language(),
	})
	store := memory(t, data)
	held := map[string]int{}
	minutes := int(wait / time.Minute)
	for m := now - minutes; m <= now; m++ {
		query, err := engine.NewInstantQuery(t.Context(), store, nil, expr, time.Unix(int64(m)*60, 0))
		require.NoError(t, err)
		result := query.Exec(t.Context())
		require.NoError(t, result.Err)
		vector, err := result.Vector()
		require.NoError(t, err)
		for _, s := range vector {
			held[s.Metric.String()]++
		}
		query.Close()
	}
	var found []string
	for name, n := range held {
		if n == minutes+1 {
			found = append(found, name)
		}
	}
	return found
}

// sample is a value at a time.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// memory returns a store with the given series.
func memory(t *testing.T, data series) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for name, values := range data {
		metric, err := language().ParseMetric(name)
		require.NoError(t, err)
		all = append(all, storage.NewListSeries(metric, samples(t, values)))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			found := &set{at: -1}
			for _, s := range all {
				if matches(s.Labels(), matchers) {
					found.series = append(found.series, s)
				}
			}
			return found
		},
	}}
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// samples reads the values of a series: "3x60", "0+2x60", "_x60", separated by spaces.
func samples(t *testing.T, values string) []chunks.Sample {
	t.Helper()
	var list []chunks.Sample
	minute := int64(1)
	for _, part := range strings.Fields(values) {
		text, times, _ := strings.Cut(part, "x")
		n, err := strconv.Atoi(times)
		require.NoError(t, err, part)
		first, step, _ := strings.Cut(text, "+")
		for i := range n {
			if text != "_" {
				value, err := strconv.ParseFloat(first, 64)
				require.NoError(t, err, part)
				if step != "" {
					by, err := strconv.ParseFloat(step, 64)
					require.NoError(t, err, part)
					value += by * float64(i)
				}
				list = append(list, sample{minute * 60_000, value})
			}
			minute++
		}
	}
	require.Equal(t, int64(now), minute-1, "%q ends now", values)
	return list
}

// set iterates over series.
type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series              { return s.series[s.at] }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }
