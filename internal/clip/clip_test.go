package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/clip"
)

func TestBytes_KeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ab", clip.Bytes("ab", 2))
	require.Equal(t, "a", clip.Bytes("ab", 1))
	require.Equal(t, "aé", clip.Bytes("aéb", 3))
	require.Equal(t, "a", clip.Bytes("aéb", 2))
	require.Empty(t, clip.Bytes("é", 1))
	require.Empty(t, clip.Bytes("a", 0))
}

func TestWhole_DropsIncompleteCharacters(t *testing.T) {
	t.Parallel()
	text := []byte("aé€😀")
	for n := range len(text) + 1 {
		whole := clip.Whole(text[:n])
		require.True(t, utf8.Valid(whole), n)
		require.Less(t, n-len(whole), utf8.UTFMax)
	}
	require.Equal(t, text, clip.Whole(text))
}

func TestRunes_CutsAtCharacters(t *testing.T) {
	t.Parallel()
	require.Equal(t, "äöü", clip.Runes("äöü", 3))
	require.Equal(t, "äö…", clip.Runes("äöüß", 3))
}

func TestLine_HasNoLineBreaks(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b c", clip.Line(" a\n\tb\x1b\u200b c ", 10))
	require.Equal(t, strings.Repeat("x", 9)+"…", clip.Line(strings.Repeat("x", 11), 10))
}
