package starter

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A login needs a server, and commands without a credential say how to get one.
func TestLogin_NeedsAServer(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"login", "logout"} {
		got := jigCLI(t, &fake{}, nil, command)
		require.Equal(t, exitUsage, got.code, command)
		require.Contains(t, got.stderr, "JIG_URL", command)
	}
	got := jigCLI(t, &fake{}, nil, "login", "--url", "http://jig.example.com")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "not an https address")
}

// with sets variables of the environment.
func with(variables map[string]string) func(*app) {
	return func(a *app) { maps.Copy(a.env, variables) }
}

func TestWhoami_ShowsTheCredential(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, &fake{}, with(map[string]string{"JIG_PRINCIPAL": "ana"}), "whoami", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.JSONEq(t, `{"tenant": "default", "principal": "ana", "proof": "claimed"}`, got.stdout)
	require.Contains(t, jigCLI(t, &fake{}, with(map[string]string{"JIG_PRINCIPAL": "ana"}), "whoami").stdout, "ana, tenant default")

	const me = `{"installation": "ins_1", "tenant": "acme", "principal": "ci", "name": "C\u001bI", "groups": [], "roles": ["author"], "permissions": [], "proof": "vouched",
		"credential": {"kind": "api_key", "id": "k", "scopes": ["read", "run"]}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(me)) //nolint:errcheck // the client is gone
	}))
	t.Cleanup(server.Close)
	env := with(map[string]string{"JIG_URL": server.URL, "JIG_API_KEY": "x"})
	got = jigCLI(t, nil, env, "whoami", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.JSONEq(t, me, got.stdout)
	require.Equal(t, `principal   ci (C I)
tenant      acme
server      `+server.URL+`
credential  api key
scopes      read, run
roles       author
groups      none
proof       vouched
`, jigCLI(t, nil, env, "whoami").stdout)
}
