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

func TestClean(t *testing.T) {
	t.Parallel()
	require.Equal(t, "añ", stored.Clean("añ"))
	require.Equal(t, "a\uFFFDb\uFFFDc", stored.Clean("a\x00b\xffc"))
}

func TestEncode(t *testing.T) {
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

func TestPreview(t *testing.T) {
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

func TestReadable(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"a":"b\u003c\n\\"}`:                          `{"a":"b\u003c\n\\"}`,
		`{"a\u0000":"\u0000\\u0000\\\u0000"}`:          `{"a\ufffd":"\ufffd\\u0000\\\ufffd"}`,
		`["\ud83d\ude00","\uD83D","\ude00\ud83d","a"]`: `["\ud83d\ude00","\ufffd","\ufffd\ufffd","a"]`,
	} {
		require.Equal(t, want, string(stored.Readable([]byte(given))))
	}
}
