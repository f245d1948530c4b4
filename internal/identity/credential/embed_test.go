package credential_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/credential"
)

func TestCheckEmbed_OriginAndTarget(t *testing.T) {
	t.Parallel()
	const origin = "https://shop.example.com"
	for _, good := range []string{origin, "https://shop.example.com:8443", "http://localhost:5173", "http://127.0.0.1:8080", "http://[::1]:1", "https://xn--bcher-kva.example"} {
		require.NoError(t, credential.Credential{Session: "acme.s1", Origin: good}.CheckEmbed(), good)
		require.NoError(t, credential.Credential{Tool: "orders.pay", Origin: good}.CheckEmbed(), good)
	}
	for _, bad := range []string{
		"", "null", "*", "https://*.example.com", origin + "/", origin + "/page", origin + ":443", "http://shop.example.com", "http://localhost:80", "HTTPS://shop.example.com",
		"https://Shop.example.com", "https://ana@shop.example.com", origin + "?a", origin + "#a", "https://", "https://shop.example.com:", "https://shop.example.com:0", "https://bücher.example",
		"file://shop", "https://a b", origin + "\n", origin + " https://other.example.com", "https://" + strings.Repeat("a", 300) + ".com", "http://localhost.example.com:5173",
	} {
		require.Equal(t, "origin", jig.AsError(credential.Credential{Session: "acme.s1", Origin: bad}.CheckEmbed()).Field, bad)
	}
	require.Equal(t, "session", jig.AsError(credential.Credential{Origin: origin}.CheckEmbed()).Field)
	require.Equal(t, "tool", jig.AsError(credential.Credential{Origin: origin, Session: "acme.s1", Tool: "orders.pay"}.CheckEmbed()).Field)
	require.Equal(t, jig.CodeToolNotFound, jig.CodeOf(credential.Credential{Origin: origin, Tool: "No Tool"}.CheckEmbed()))
}

func TestShows_ItsOwnSessionsOnly(t *testing.T) {
	t.Parallel()
	one := credential.Credential{Tenant: "acme", ID: "aaaaaaaaaaaaaaaa", Session: "acme.s1"}
	require.True(t, one.Shows("acme.s1"))
	require.False(t, one.Shows("acme.s10"))
	require.False(t, one.Shows(jig.SessionID("acme", one.NewCall(""))))
	page := credential.Credential{Tenant: "acme", ID: "aaaaaaaaaaaaaaaa", Tool: "orders.pay"}
	other := credential.Credential{Tenant: "acme", ID: "bbbbbbbbbbbbbbbb", Tool: "orders.pay"}
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
