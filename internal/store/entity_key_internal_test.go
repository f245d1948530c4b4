package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestLargest_CallsLogarithmically(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 100, 1000, maxDeleted} {
		looks := 0
		got, err := largest(func(i int) (bool, error) {
			looks++
			return i < n, nil
		})
		require.NoError(t, err)
		require.Equal(t, n-1, got)
		require.LessOrEqual(t, looks, 41, "%d", n)
	}
	_, err := largest(func(int) (bool, error) { return false, jig.Errorf(jig.CodeUnavailable, "away") })
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
}
