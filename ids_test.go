package jig_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestIdempotencyKeys_FitAHeaderAndAreUnique(t *testing.T) {
	t.Parallel()
	require.Equal(t, "prod/acme/ses_1/1.1", jig.IdempotencyKey("prod", "acme", "ses_1", "1.1"))
	seen := map[string]bool{}
	for _, installation := range []string{"prod", "staging"} {
		for _, tenant := range []string{"a", "a-b", strings.Repeat("t", 63)} {
			for _, session := range []string{"ses_1", "ses_2", strings.Repeat("s", 128), "sha256:1"} {
				for _, call := range []string{"1.1", "1.2", "1.1/é", "1.1/ê", "1.1/a b", "1.1/" + strings.Repeat("x/", 200), "1.1/" + strings.Repeat("x/", 201)} {
					key := jig.IdempotencyKey(installation, tenant, session, call)
					require.LessOrEqual(t, len(key), jig.MaxIdempotencyKey)
					require.NotContains(t, strings.Map(func(r rune) rune {
						if r > ' ' && r <= '~' {
							return 'x'
						}
						return '!'
					}, key), "!", key)
					require.False(t, seen[key], key)
					seen[key] = true
				}
			}
		}
	}
}

func TestShortVersion_HasSixteenDigits(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("0123456789abcdef", 4)
	for in, want := range map[string]string{
		full:                                  "0123456789abcdef",
		"shop@" + full:                        "shop@0123456789abcdef",
		"shop@" + full + " till@" + full:      "shop@0123456789abcdef till@0123456789abcdef",
		"policy/shop@" + full:                 "policy/shop@0123456789abcdef",
		"0123456789abcdef":                    "0123456789abcdef",
		"1.4.0":                               "1.4.0",
		"":                                    "",
		full + "0":                            full + "0",
		strings.ToUpper(full):                 strings.ToUpper(full),
		"bundle/a@1.0.0+" + full + ", really": "bundle/a@1.0.0+0123456789abcdef, really",
	} {
		require.Equal(t, want, jig.ShortVersion(in))
	}
}
