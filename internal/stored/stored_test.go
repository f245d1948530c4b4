package stored_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/stored"
)

func TestClean_MakesTextStorable(t *testing.T) {
	t.Parallel()
	require.Equal(t, "añ", stored.Clean("añ"))
	require.Equal(t, "a\uFFFDb\uFFFDc", stored.Clean("a\x00b\xffc"))
}

func TestEncode_MakesJSONStorable(t *testing.T) {
	t.Parallel()
	b, err := stored.Encode(map[string]any{"a": json.RawMessage("\"\xff\"")})
	require.NoError(t, err)
	require.True(t, utf8.Valid(b))
	_, err = stored.Encode(func() {})
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}

func TestCut_KeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	for n, want := range []string{"", "a", "a", "añ", "añb", "añb"} {
		require.Equal(t, want, stored.Cut("añb", n))
	}
}

func TestPreview_IsCut(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		raw       string
		want      string
		truncated bool
	}{
		"short JSON":     {`{"a":1}`, `{"a":1}`, false},
		"short, no JSON": {`{"a`, `"{\"a"`, false},
		"nothing":        {"", `""`, false},
		"long JSON":      {`"` + strings.Repeat("x", 5000) + `"`, `"\"` + strings.Repeat("x", jig.ExcerptBytes-257) + `"`, true},
	} {
		shown, truncated := stored.Preview([]byte(row.raw))
		require.Equal(t, row.want, string(shown), name)
		require.Equal(t, row.truncated, truncated, name)
	}
	shown, _ := stored.Preview([]byte(strings.Repeat("\x01", 5000)))
	require.LessOrEqual(t, len(shown), jig.ExcerptBytes, "escapes are counted")
	require.True(t, json.Valid(shown))
}

func TestPreviewInput_KeepsMembers(t *testing.T) {
	t.Parallel()
	shown, truncated := stored.PreviewInput([]byte(`{"path":"a","text":"` + strings.Repeat("x", 5000) + `"}`))
	require.True(t, truncated)
	var members map[string]string
	require.NoError(t, json.Unmarshal(shown, &members))
	require.Equal(t, "a", members["path"])
	shown, _ = stored.PreviewInput([]byte("[1"))
	require.Equal(t, `"[1"`, string(shown))
}

func TestReadable_ReplacesHalfPairsAndNUL(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"a":"b\u003c\n\\"}`:                          `{"a":"b\u003c\n\\"}`,
		`{"a\u0000":"\u0000\\u0000\\\u0000"}`:          `{"a\ufffd":"\ufffd\\u0000\\\ufffd"}`,
		`["\ud83d\ude00","\uD83D","\ude00\ud83d","a"]`: `["\ud83d\ude00","\ufffd","\ufffd\ufffd","a"]`,
	} {
		require.Equal(t, want, string(stored.Readable([]byte(given))))
	}
}

// What a tool gets and returns can be large; its events stay small and keep the beginning of every member.
func TestDetails_AreBounded(t *testing.T) {
	t.Parallel()
	shown := func(v any) []byte {
		raw, ok := v.(json.RawMessage)
		require.True(t, ok)
		require.True(t, json.Valid(raw))
		require.LessOrEqual(t, len(raw), 512)
		return raw
	}
	long := []byte(`{"path":"a","text":"` + strings.Repeat("x", 5000) + `"}`)
	begun := stored.InputDetails(long)
	require.Equal(t, true, begun["truncated"])
	ended := stored.ResultDetails(jig.ToolResult{Summary: "done", Data: long})
	require.NotContains(t, ended, "data")
	for _, excerpt := range []any{begun["input"], ended["data_preview"]} {
		var members map[string]string
		require.NoError(t, json.Unmarshal(shown(excerpt), &members))
		require.Equal(t, "a", members["path"])
	}

	short := `{"path":"a"}`
	begun = stored.InputDetails([]byte(short))
	require.Equal(t, false, begun["truncated"])
	require.JSONEq(t, short, string(shown(begun["input"])))
	require.JSONEq(t, short, string(shown(stored.ResultDetails(jig.ToolResult{Data: []byte(short)})["data"])))
	for _, odd := range []string{"", "[1", "[" + strings.Repeat("\xff\x00", 5000), "[1,2]"} {
		shown(stored.InputDetails([]byte(odd))["input"])
	}
}
