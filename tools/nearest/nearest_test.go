package nearest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/tools/nearest"
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
