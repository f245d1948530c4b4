package jig_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestCutKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", jig.Cut("short", 5))
	require.Equal(t, "éé…", jig.Cut("ééé", 5))
	require.Equal(t, "…", jig.Cut("é", 1))
	require.Empty(t, jig.Cut("", 0))
	for n := range 14 {
		cut := jig.Cut("añb→c😀d", n)
		require.True(t, utf8.ValidString(cut), cut)
		require.LessOrEqual(t, len(cut), max(n, 0)+len("…"))
	}
}
