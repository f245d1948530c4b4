package confine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/confine"
)

func TestContexts_AreIndependent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	require.False(t, confine.IsReadOnly(ctx))
	require.False(t, confine.IsOffline(ctx))
	require.True(t, confine.IsReadOnly(confine.ReadOnly(ctx)))
	require.False(t, confine.IsOffline(confine.ReadOnly(ctx)))
	require.True(t, confine.IsOffline(confine.Offline(ctx)))
	require.True(t, confine.IsReadOnly(confine.Offline(confine.ReadOnly(ctx))))
}
