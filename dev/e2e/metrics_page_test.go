package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const metricsPage = "docs/metrics.md"

// Every command on the page prints what the page shows.
func TestMetricsPage_Works(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	address := freeAddress(t)
	d := startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "NO_COLOR=1", "JIG_METRICS_ADDRESS="+address)
	m := &pageRunner{tenantEnv: tenantEnv{tenant: "default", testEnv: d}}
	ran := 0
	for _, f := range codeBlocks(t, metricsPage) {
		switch f.language {
		case "sh":
			m.run(f.body, "", 0)
			ran++
		case "text":
			m.shows(f)
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	require.Equal(t, 1, ran)
	text, err := scrapeText(t.Context(), address)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("..", "..", metricsPage))
	require.NoError(t, err)
	for _, name := range regexp.MustCompile("(?m)^\\| `(temporal_\\w+)` \\|").FindAllStringSubmatch(string(page), -1) {
		if name[1] == "temporal_workflow_task_execution_failed_total" || name[1] == "temporal_request_failure_total" {
			continue // there were no failures
		}
		require.Contains(t, text, "\n"+name[1], "the page names a metric of the SDK that the worker does not serve")
	}
}
