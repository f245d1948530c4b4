package bundle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
)

// shelf holds the bundle names of tenants and counts how often they are read.
type shelf struct {
	names map[string][]string
	reads int
}

func (s *shelf) read(_ context.Context, tenant string) ([]string, error) {
	s.reads++
	return s.names[tenant], nil
}

func TestNames_AreReadOnceASecond(t *testing.T) {
	t.Parallel()
	s := &shelf{names: map[string][]string{"acme": {"notes"}}}
	n := bundle.NewNames(s.read)
	for range 3 {
		names, err := n.BundleNames(t.Context(), "acme")
		require.NoError(t, err)
		require.Equal(t, []string{"notes"}, names)
	}
	require.Equal(t, 1, s.reads)
	names, err := n.BundleNames(t.Context(), "zeta")
	require.NoError(t, err)
	require.Empty(t, names, "each tenant has its own")
	s.names["acme"] = nil
	n.Forget("acme")
	names, err = n.BundleNames(t.Context(), "acme")
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestVisible_ByTenantAndBundle(t *testing.T) {
	t.Parallel()
	all := []jig.Tool{{Name: "a.all"}, {Name: "a.notes", Bundle: "notes"}, {Name: "a.acme", Tenants: []string{"acme"}}}
	require.Len(t, bundle.Visible(all, "acme", []string{"notes"}), 3)
	require.Equal(t, []jig.Tool{{Name: "a.all"}}, bundle.Visible(all, "zeta", nil))
	require.Len(t, all, 3)
}
