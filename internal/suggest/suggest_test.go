package suggest_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/suggest"
)

func TestNames_OrdersByDistance(t *testing.T) {
	t.Parallel()
	known := []string{"file.read", "file.write", "file.list", "deps.list", "deps.license", "todo.write"}
	tests := map[string]struct {
		want string
		near []string
	}{
		"typo":       {"file.raed", []string{"file.read"}},
		"case":       {"FILE.READ", []string{"file.read"}},
		"part":       {"list", []string{"deps.list", "file.list"}},
		"nothing":    {"weather.forecast", nil},
		"empty":      {"", nil},
		"huge":       {strings.Repeat("x", 4096), nil},
		"ties":       {"file.", []string{"file.list", "file.read"}},
		"swapped":    {"deps.lsit", []string{"deps.list"}},
		"underscore": {"file_read", []string{"file.read"}},
		"nearest":    {"deps.lists", []string{"deps.list"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.near, suggest.Names(tc.want, known, 2))
		})
	}
}

// The number and length of the compared names is bounded, however many names are known.
func TestNames_PassesOverNamesBeyondItsLimit(t *testing.T) {
	t.Parallel()
	known := slices.Repeat([]string{strings.Repeat("x", 128)}, 2_000)
	known = append(known, "file.read")
	require.Equal(t, []string{"file.read"}, suggest.Names("file.raed", known[1:], 1))
	require.Empty(t, suggest.Names("file.raed", known, 1))
}

func TestHint_FallsBackToTheLookup(t *testing.T) {
	t.Parallel()
	require.Equal(t, "did you mean path?", suggest.Hint("pth", []string{"path", "limit"}, ""))
	require.Equal(t, "see the catalog", suggest.Hint("zzz", []string{"path"}, "see the catalog"))
}

func TestQuoted_JoinsNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, `did you mean "path"?`, suggest.Quoted("pth", []string{"path", "limit"}))
	require.Equal(t, `did you mean "aaa", "aab" or "aac"?`, suggest.Quoted("aax", []string{"aac", "aaa", "aab", "aad"}))
	require.Empty(t, suggest.Quoted("zzz", []string{"path"}))
}

func TestOrKnown_ListsFewNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, `did you mean "file.read"?`, suggest.OrKnown("file.reed", []string{"file.read", "todo.write"}))
	require.Equal(t, "known are a, b", suggest.OrKnown("completely.else", []string{"b", "a"}))
	require.Empty(t, suggest.OrKnown("x", nil))
	require.Empty(t, suggest.OrKnown("x", slices.Repeat([]string{"other"}, 21)))
}

func TestDistance_CountsTypingMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 3, 0},
		{"same", "same", 3, 0},
		{"same", "sane", 3, 1},
		{"same", "sme", 3, 1},
		{"same", "samen", 3, 1},
		{"same", "asme", 3, 1},
		{"same", "sema", 3, 2},
		{"", "ab", 3, 2},
		{"kitten", "sitting", 4, 3},
		{"kitten", "sitting", 3, 3},
		{"kitten", "sitting", 2, 2},
		{"a", "abcdef", 3, 3},
		{"abcdef", "a", 3, 3},
	} {
		require.Equal(t, c.want, suggest.Distance(c.a, c.b, c.limit), "%s, %s, %d", c.a, c.b, c.limit)
	}
	require.Equal(t, 3, suggest.Distance(strings.Repeat("x", 1<<24), "short", 3), "lengths that are far apart cost nothing")
}

// plain computes the full table of distances, without a limit.
func plain(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func FuzzDistance(f *testing.F) {
	f.Add("kitten", "sitting", 3)
	f.Add("abcdef", "bacdfe", 2)
	f.Add(strings.Repeat("ab", 40), strings.Repeat("ba", 40), 6)
	f.Fuzz(func(t *testing.T, a, b string, limit int) {
		a, b = a[:min(len(a), 200)], b[:min(len(b), 200)]
		limit = min(max(limit, 0), 300)
		require.Equal(t, min(plain(a, b), limit), suggest.Distance(a, b, limit))
	})
}

func TestDistance_AgreesWithTheFullComputation(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, random.IntN(9))
		for i := range b {
			b[i] = "abc"[random.IntN(3)]
		}
		return string(b)
	}
	for range 20_000 {
		a, b, limit := word(), word(), random.IntN(8)
		require.Equal(t, min(plain(a, b), limit), suggest.Distance(a, b, limit), "%s %s %d", a, b, limit)
	}
}

// Distance stops early for words that are far apart; the full table of these words would have 10^12 cells.
func TestDistance_EndsWhenTheLimitIsCertain(t *testing.T) {
	t.Parallel()
	require.Equal(t, 6, suggest.Distance(strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20), 6))
	require.Equal(t, 0, suggest.Distance(strings.Repeat("ab", 1<<16), strings.Repeat("ab", 1<<16), 6))
}
