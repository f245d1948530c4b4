package store //nolint:testpackage // chunks is not exported

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Joined in order, the chunks are the text. No chunk is too long or empty.
func TestChunks_JoinToTheText(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "word ", "End. ", "Why? ", "\n\n", "ä", "日本", "。", " ", "\r\n", strings.Repeat("x", 700), "1.5 "}
	for range 300 {
		var b strings.Builder
		for range r.IntN(900) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		body := b.String()
		cut := chunks(body)
		require.Equal(t, body, strings.Join(cut, ""))
		for i, c := range cut {
			n := utf8.RuneCountInString(c)
			require.LessOrEqual(t, n, chunkRunes)
			require.Positive(t, n)
			require.True(t, i == len(cut)-1 || n >= chunkRunes/8 || strings.Contains(cut[i+1], strings.Repeat("x", 700)), "%d of %d: %d", i, len(cut), n)
		}
	}
}

func TestChunks_EndWithSentences(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("This is a sentence of fifty characters, or nearly. ", 100)
	for _, c := range chunks(body) {
		require.True(t, strings.HasPrefix(c, "This is"), c)
		require.True(t, strings.HasSuffix(c, "nearly. "), c)
	}
}
