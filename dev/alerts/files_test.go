package alerts_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// The files that these tests check.
const (
	rulesFile     = "../../deploy/prometheus/alerts.yml"
	dashboardFile = "../../deploy/grafana/dashboards/jig.json"
	pageFile      = "../../docs/metrics.md"
)

func language() parser.Parser { return parser.NewParser(parser.Options{}) }

// rules returns the alert rules. Prometheus' own checks include the templates of the annotations.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(filepath.FromSlash(rulesFile), false, model.UTF8Validation, language(), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(pageFile))
	require.NoError(t, err)
	return string(text)
}

// exported returns the metrics that the page lists, with their labels. A test of jig compares the page with what is exported.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(jig_\\w+)` \\| (\\w+) \\| (.*?) \\|").FindAllStringSubmatch(page(t), -1) {
		var names []string
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[3], -1) {
			names = append(names, label[1])
		}
		series := []string{row[1]}
		if row[2] == "histogram" {
			series, names = []string{row[1] + "_bucket", row[1] + "_sum", row[1] + "_count"}, append(names, "le")
		}
		for _, name := range series {
			metrics[name] = names
		}
	}
	require.Greater(t, len(metrics), 30)
	return metrics
}

// foreign lists metrics that others export, with the labels that we use of them. The end-to-end test of jig finds those of Temporal's SDK
// in what a worker serves.
func foreign(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{
		"up": {}, "promhttp_metric_handler_errors_total": {"cause"}, "process_resident_memory_bytes": {}, "process_cpu_seconds_total": {},
	}
	tags := []string{"operation", "activity_type", "workflow_type", "worker_type", "poller_type", "status_code", "failure_reason", "cause"}
	for _, row := range regexp.MustCompile("(?m)^\\| `(temporal_\\w+)` \\|").FindAllStringSubmatch(page(t), -1) {
		metrics[row[1]] = tags
		if strings.HasSuffix(row[1], "_seconds") {
			metrics[row[1]+"_bucket"] = append([]string{"le"}, tags...)
		}
	}
	return metrics
}

// expressions returns the expressions of the rules and of the dashboard, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range rules(t) {
		all["alert "+r.Alert] = r.Expr
	}
	raw, err := os.ReadFile(filepath.FromSlash(dashboardFile))
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &dashboard))
	for _, p := range dashboard.Panels {
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for i, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", `"$tenant"`, `".*"`).Replace(target.Expr)
			require.NotContains(t, expr, "$", p.Title)
			all["panel "+p.Title+" "+string(rune('A'+i))] = expr
		}
	}
	return all
}

// Every metric that a rule, the dashboard or the text of the page names is exported, with the labels that they use.
func TestEveryMetric_IsExported(t *testing.T) {
	t.Parallel()
	own := exported(t)
	known := foreign(t)
	for name, names := range own {
		known[name] = names
	}
	for where, source := range expressions(t) {
		expr, err := language().ParseExpr(source)
		require.NoError(t, err, where)
		var used []string
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			names, ok := known[selector.Name]
			require.True(t, ok, "%s: there is no metric %s", where, selector.Name)
			for _, m := range selector.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					require.Contains(t, append(names, "job", "instance"), m.Name, "%s: %s has no such label", where, selector.Name)
				}
			}
			used = append(used, names...)
			return nil
		})
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if a, ok := node.(*parser.AggregateExpr); ok {
				for _, name := range a.Grouping {
					require.True(t, name == "instance" || slices.Contains(used, name), "%s: none of its metrics has the label %s", where, name)
				}
			}
			return nil
		})
	}
	for _, name := range regexp.MustCompile(`\bjig_[a-z_]+[a-z]\b`).FindAllString(page(t), -1) {
		_, plain := own[name]
		_, histogram := own[name+"_bucket"]
		require.True(t, plain || histogram, "the page names %s, which nobody exports", name)
	}
}

// What the process counts is added up over the workers, and of what all workers read from the store the maximum is taken.
func TestEveryExpression_CombinesWorkersAsThePageSays(t *testing.T) {
	t.Parallel()
	shared := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(jig_\\w+)` \\| \\w+ \\| .*? \\| (sum|max) \\|").FindAllStringSubmatch(page(t), -1) {
		shared[row[1]] = row[2] == "max"
	}
	for where, source := range expressions(t) {
		expr, err := language().ParseExpr(source)
		require.NoError(t, err, where)
		parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok || !strings.HasPrefix(selector.Name, "jig_") {
				return nil
			}
			name := strings.TrimSuffix(selector.Name, "_bucket")
			want := map[bool]string{true: "max", false: "sum"}[shared[name]]
			require.Equal(t, want, innermost(path), "%s: %s", where, name)
			return nil
		})
	}
}

// innermost returns the aggregation that is nearest to the end of a path.
func innermost(path []parser.Node) string {
	for _, node := range slices.Backward(path) {
		if a, ok := node.(*parser.AggregateExpr); ok {
			return a.Op.String()
		}
	}
	return ""
}

// The page says of every rule, and of no other, what it means and what to do.
func TestPage_ExplainsEveryAlert(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, r := range rules(t) {
		want = append(want, r.Alert)
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Jig\\w+)` \\| [^|]{20,} \\| [^|]{20,} \\|$").FindAllStringSubmatch(page(t), -1) {
		got = append(got, row[1])
	}
	require.Equal(t, want, got)
}
