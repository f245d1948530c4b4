package bundles_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/spec"
)

func TestAgents(t *testing.T) {
	t.Parallel()
	agents, err := bundles.Agents()
	require.NoError(t, err)
	names := make([]string, 0, len(agents))
	for _, doc := range agents {
		names = append(names, doc.Name)
		require.Equal(t, spec.KindAgent, doc.Kind)
		require.NotEmpty(t, doc.Agent.Description, doc.Path)
		require.NotEmpty(t, doc.Agent.Instructions, doc.Path)
		require.Equal(t, doc.Agent.Version, doc.Version)
	}
	require.Contains(t, names, "dependency-review")
}
