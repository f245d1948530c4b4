package nearest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/nearest"
)

func TestNames(t *testing.T) {
	t.Parallel()
	known := []string{"file.read", "file.write", "file.list", "deps.list", "todo.write"}
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
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.near, nearest.Names(tc.want, known, 2))
		})
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	require.Equal(t, "did you mean path?", nearest.Hint("pth", []string{"path", "limit"}, ""))
	require.Equal(t, "see the catalogue", nearest.Hint("zzz", []string{"path"}, "see the catalogue"))
}

func TestDistance(t *testing.T) {
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
		require.Equal(t, c.want, nearest.Distance(c.a, c.b, c.limit), "%s, %s, %d", c.a, c.b, c.limit)
	}
	require.Equal(t, 3, nearest.Distance(strings.Repeat("x", 1<<24), "short", 3), "lengths that are far apart cost nothing")
}
