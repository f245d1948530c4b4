package bundles_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/spec"
)

func TestAgents(t *testing.T) {
	t.Parallel()
	agents, err := bundles.Documents()
	require.NoError(t, err)
	names := make([]string, 0, len(agents))
	for _, doc := range agents {
		if doc.Kind != spec.KindAgent {
			continue
		}
		names = append(names, doc.Name)
		require.NotEmpty(t, doc.Agent.Description, doc.Path)
		require.NotEmpty(t, doc.Agent.Instructions, doc.Path)
		require.Equal(t, doc.Agent.Version, doc.Version)
	}
	require.Contains(t, names, "dependency-review")
}
