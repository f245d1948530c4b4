package workflows_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/workflows"
)

// The table of timeouts in the documentation matches the code.
func TestTimeouts_TableIsCurrent(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/timeouts.md")
	require.NoError(t, err)
	for _, row := range workflows.TimeoutRows() {
		require.Contains(t, string(doc), row)
	}
}
