package visible_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/visible"
)

func TestMap_FindsHiddenCharacters(t *testing.T) {
	t.Parallel()
	marked := func(s string) string {
		return visible.Map(s, func(r rune, hidden bool) rune {
			if hidden {
				return '!'
			}
			return r
		})
	}
	for text, want := range map[string]string{
		"a\x1b\n\tb": "a\x1b\n\tb", "grüße 東京 “x”": "grüße 東京 “x”",
		"a\u202eb\u2066c\u200bd\u00ade\u2028f\u2029g\ufeff": "a!b!c!d!e!f!g!", "x\U000e0041": "x!",
		"a\u200db": "a!b", "é\u200cb": "é!b", "а\ufe0f": "а!", "\u200d": "!",
		"👩\u200d💻": "👩\u200d💻", "❤\ufe0f\u200d🔥": "❤\ufe0f\u200d🔥", "می\u200cخواهم": "می\u200cخواهم",
		"❤\ufe0f\ufe0f": "❤\ufe0f!", "💻\u200d\u200d": "💻\u200d!", "a\u200b\u200d": "a!!", "a\xff": "a\ufffd",
	} {
		require.Equal(t, want, marked(text), "%q", text)
	}
}

func TestJSON_MeansTheSame(t *testing.T) {
	t.Parallel()
	const text = "\"a\u202eb\U000e0041<é👩\u200d💻\""
	shown := visible.JSON(text)
	require.Equal(t, "\"a\\u202eb\\udb40\\udc41<é👩\u200d💻\"", shown)
	require.JSONEq(t, text, shown)
	require.True(t, json.Valid([]byte(shown)))
}
