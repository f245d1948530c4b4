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
	const head, end = "| --- | --- | --- | --- | --- |\n", "<!-- end -->"
	before, rest, found := strings.Cut(string(content), head)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	m := metrics.New()
	sources{}.read(t.Context(), m)
	var rows strings.Builder
	for _, f := range m.Families() {
		labels := "–"
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		over := map[metrics.Scope]string{metrics.ScopeProcess: "sum", metrics.ScopeStore: "max"}[f.Scope]
		rows.WriteString("| `" + f.Name + "` | " + f.Kind + " | " + labels + " | " + over + " | " + strings.TrimSuffix(f.Help, ".") + " |\n")
	}
	want := before + head + rows.String() + end + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(content), "run go test ./internal/metrics -run Page -update")
}
