package embed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/embed"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const origin = "https://shop.example.com"
	for _, good := range []string{origin, "https://shop.example.com:8443", "http://localhost:5173", "http://127.0.0.1:8080", "http://[::1]:1", "https://xn--bcher-kva.example"} {
		require.NoError(t, embed.Token{Session: "acme.s1", Origin: good}.Check(), good)
		require.NoError(t, embed.Token{Tool: "orders.pay", Origin: good}.Check(), good)
	}
	for _, bad := range []string{
		"", "null", "*", "https://*.example.com", origin + "/", origin + "/page", origin + ":443", "http://shop.example.com", "http://localhost:80", "HTTPS://shop.example.com",
		"https://Shop.example.com", "https://ana@shop.example.com", origin + "?a", origin + "#a", "https://", "https://shop.example.com:", "https://shop.example.com:0", "https://bücher.example",
		"file://shop", "https://a b", origin + "\n", origin + " https://other.example.com", "https://" + strings.Repeat("a", 300) + ".com", "http://localhost.example.com:5173",
	} {
		require.Equal(t, "origin", jig.AsError(embed.Token{Session: "acme.s1", Origin: bad}.Check()).Field, bad)
	}
	require.Equal(t, "session", jig.AsError(embed.Token{Origin: origin}.Check()).Field)
	require.Equal(t, "tool", jig.AsError(embed.Token{Origin: origin, Session: "acme.s1", Tool: "orders.pay"}.Check()).Field)
	require.Equal(t, jig.CodeToolNotFound, jig.CodeOf(embed.Token{Origin: origin, Tool: "No Tool"}.Check()))
}

func TestShows_ItsOwnSessionsOnly(t *testing.T) {
	t.Parallel()
	one := embed.Token{Tenant: "acme", ID: "aaaaaaaaaaaaaaaa", Session: "acme.s1"}
	require.True(t, one.Shows("acme.s1"))
	require.False(t, one.Shows("acme.s10"))
	require.False(t, one.Shows(jig.SessionID("acme", one.NewCall(""))))
	page := embed.Token{Tenant: "acme", ID: "aaaaaaaaaaaaaaaa", Tool: "orders.pay"}
	other := embed.Token{Tenant: "acme", ID: "bbbbbbbbbbbbbbbb", Tool: "orders.pay"}
	first, again, unnamed := page.NewCall("k1"), page.NewCall("k1"), page.NewCall("")
	for _, id := range []string{unnamed, first} {
		require.NoError(t, jig.CheckClientID(id))
		require.True(t, page.Shows(jig.SessionID("acme", id)))
		require.False(t, other.Shows(jig.SessionID("acme", id)))
		require.False(t, page.Shows(jig.SessionID("umbrella", id)))
	}
	require.Equal(t, first, again)
	require.NotEqual(t, first, page.NewCall("k2"))
	require.NotEqual(t, first, other.NewCall("k1"))
	require.NotEqual(t, unnamed, page.NewCall(""))
	for _, id := range []string{"", "acme.", "acme.s1", "acme.embed-", "ses_1"} {
		require.False(t, page.Shows(id), id)
	}
}
