package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// A document of a kind with a backend is never compiled as a composition, and no backend is there in vain.
func TestExecutions_HaveTheBackendsThatKindsNeed(t *testing.T) {
	t.Parallel()
	registry, err := tools.NewRegistry()
	require.NoError(t, err)
	backends := newExecutions(&store.DB{}, guarded.Entities{}, nil, Settings{}, registry).backends
	for _, kind := range spec.Kinds() {
		if kind.HasBackend() {
			require.Contains(t, backends, kind)
		} else {
			require.NotContains(t, backends, kind)
		}
	}
}
