package metrics_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/metrics"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md")

// The page has one row for each metric, made from the metrics themselves.
func TestPage_ListsEveryMetric(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "metrics.md")
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	m := metrics.New()
	sources{}.read(t.Context(), m)
	shared := map[string]bool{}
	want := withTable(t, string(content), "a worker", m.Families(), func(f metrics.Family) bool {
		shared[f.Name] = true
		return true
	})
	served := metrics.NewServer(func() metrics.Pool { return metrics.Pool{} })
	want = withTable(t, want, "a server", served.Families(), func(f metrics.Family) bool { return !shared[f.Name] })
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(content), "run go test ./internal/metrics -run Page -update")
}

// withTable returns a page with the current rows of the table of a process.
func withTable(t *testing.T, content, process string, families []metrics.Family, shows func(f metrics.Family) bool) string {
	t.Helper()
	begin := "<!-- The metrics of " + process + ": go test ./internal/metrics -run Page -update writes this table. -->\n"
	const head, end = "| --- | --- | --- | --- | --- |\n", "<!-- end -->"
	first, table, found := strings.Cut(content, begin)
	require.True(t, found, begin)
	title, rest, found := strings.Cut(table, head)
	require.True(t, found)
	before := first + begin + title
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	var rows strings.Builder
	for _, f := range families {
		if !shows(f) {
			continue
		}
		labels := "–"
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		over := map[metrics.Scope]string{metrics.ScopeProcess: "sum", metrics.ScopeStore: "max"}[f.Scope]
		rows.WriteString("| `" + f.Name + "` | " + f.Kind + " | " + labels + " | " + over + " | " + strings.TrimSuffix(f.Help, ".") + " |\n")
	}
	return before + head + rows.String() + end + after
}
