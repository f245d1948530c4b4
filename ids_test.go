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

func TestSessionIDs_BeginWithANameForPeople(t *testing.T) {
	t.Parallel()
	const unique = "[0-9a-hjkmnp-z]{26}$"
	long := strings.Repeat("Very Long ", 20)
	for name, want := range map[string]string{
		"payer": "payer-", "shop.refund": "shop-refund-", "my agent!": "my-agent-", "Größe": "gr-e-", "": "", "日本": "", "../..": "", "--a--": "a-",
		long: "very-long-very-long-very-long-ve-",
	} {
		require.Regexp(t, "^ses_"+want+unique, jig.NewSessionIDFor(name))
		require.Regexp(t, "^ent_"+want+unique, jig.NewEntityID(name))
		require.Regexp(t, "^ses_"+want+unique, jig.KeyedSessionID("acme", name+"/k"))
		one, other := jig.NewSessionIDFor(name), jig.NewSessionIDFor(name)
		require.NotEqual(t, one, other)
		require.NoError(t, jig.CheckSessionID(jig.NewSessionIDFor(name)))
		require.Empty(t, jig.ClientID(jig.NewSessionIDFor(name)))
		require.Error(t, jig.CheckClientID(jig.NewSessionIDFor(name)))
	}
	require.Regexp(t, "^ses_"+unique, jig.KeyedSessionID("acme", "4f9c1b0e-2d33-4a5b-9c1d"), "what a client keeps to itself is not shown")
	require.NotEqual(t, jig.KeyedSessionID("acme", "payer/k"), jig.KeyedSessionID("acme", "payer/l"))
	require.NotEqual(t, jig.KeyedSessionID("acme", "payer/k"), jig.KeyedSessionID("zoo", "payer/k"))
}

func TestChildSessionID_NamesTheCallThatItAnswers(t *testing.T) {
	t.Parallel()
	const unique = "[0-9a-hjkmnp-z]{26}$"
	parent := jig.NewSessionIDFor("payer")
	child := jig.ChildSessionID(parent, "2.1")
	require.Regexp(t, "^ses_payer-2-1-"+unique, child)
	require.Equal(t, child, jig.ChildSessionID(parent, "2.1"))
	require.NotEqual(t, child, jig.ChildSessionID(jig.NewSessionIDFor("payer"), "2.1"))
	require.NotEqual(t, child, jig.ChildSessionID(parent, "2-1"))
	require.Regexp(t, "^ses_payer-2-1-1-1-asks-"+unique, jig.ChildSessionID(child, "1.1/asks"))
	require.Regexp(t, "^ses_order-7-1-1-"+unique, jig.ChildSessionID("acme.order-7", "1.1"))
	require.Regexp(t, "^ses_1-1-"+unique, jig.ChildSessionID(jig.NewSessionID(), "1.1"))
	require.NoError(t, jig.CheckSessionID(jig.ChildSessionID("acme."+strings.Repeat("x", 64), strings.Repeat("1.1/a", 100))))
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
