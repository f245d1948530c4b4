package jig_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestExcerpt_ShowsEveryArgument(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long \"text\"\n", 500)
	marshal := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return b
	}
	input := marshal(map[string]any{"content": long, "path": "reports/a.md", "mode": 0o644})
	shown, cut := jig.Excerpt(input, jig.ExcerptBytes)
	require.True(t, cut)
	require.LessOrEqual(t, len(shown), jig.ExcerptBytes)
	require.Greater(t, len(shown), jig.ExcerptBytes-64, "the room is used")
	var got struct {
		Content, Path string
		Mode          int
	}
	require.NoError(t, json.Unmarshal(shown, &got))
	require.Equal(t, "reports/a.md", got.Path)
	require.Equal(t, 0o644, got.Mode)
	begin, found := strings.CutSuffix(got.Content, "…")
	require.True(t, found)
	require.True(t, strings.HasPrefix(long, begin))

	again, cut := jig.Excerpt(shown, 200)
	require.True(t, cut, "a preview can be cut further")
	require.NoError(t, json.Unmarshal(again, &got))
	require.Equal(t, "reports/a.md", got.Path)

	whole, cut := jig.Excerpt(json.RawMessage(`{"path": "a.md"}`), 100)
	require.False(t, cut)
	require.Len(t, whole, len(`{"path": "a.md"}`))

	shown, cut = jig.Excerpt(marshal(map[string]any{"page": map[string]any{"body": long, "id": 7}, "list": strings.Split(long, " ")}), 400)
	require.True(t, cut)
	require.Contains(t, string(shown), `"id":7`, "objects within keep their form")
	require.Contains(t, string(shown), `"list":"[`, "a list becomes a text")
}

func TestExcerpt_IsBounded(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 300 {
		many[fmt.Sprintf("argument_%d", i)] = strings.Repeat("x", i)
	}
	members, err := json.Marshal(many)
	require.NoError(t, err)
	inputs := map[string]string{
		"a text":           `"` + strings.Repeat(`\u0007<é世`, 900) + `"`,
		"a list":           `[` + strings.Repeat(`"a", `, 900) + `1]`,
		"a number":         strings.Repeat("1", 4000),
		"many members":     string(members),
		"objects within":   strings.Repeat(`{"a":`, 900) + `1` + strings.Repeat(`}`, 900),
		"no JSON":          `{"a": ` + strings.Repeat("x", 4000),
		"no UTF-8":         `{"a": "` + strings.Repeat("\xff", 4000) + `"}`,
		"nothing but room": strings.Repeat(" ", 4000),
	}
	for name, input := range inputs {
		for _, n := range []int{8, 40, 333, jig.ExcerptBytes} {
			shown, cut := jig.Excerpt(json.RawMessage(input), n)
			require.True(t, cut, name)
			require.LessOrEqual(t, len(shown), n, name)
			require.True(t, json.Valid(shown), "%s: %s", name, shown)
		}
	}
}

func TestCut_KeepsCharactersWhole(t *testing.T) {
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
