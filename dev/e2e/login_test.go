package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/port"
)

// loginTenant starts an identity provider and two servers on which its people log in.
func loginTenant(t *testing.T) (o tenantEnv, p *identityProvider, one, two *serverProcess) {
	t.Helper()
	o = newTenantEnv(t)
	address, err := port.Claim(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	p = newIdentityProvider(t, "http://"+address)
	return o, p, o.serveAt(address, p.bound(o.tenant, nil), clientSecret), o.serve(p.bound(o.tenant, nil), clientSecret)
}

// me asks who the browser's login is on a server.
func (c cookied) me() (int, whoami) {
	c.t.Helper()
	answer, body := c.send(http.MethodGet, "/v1/me", nil)
	var me whoami
	require.NoError(c.t, json.Unmarshal(body, &me), string(body))
	return answer.StatusCode, me
}

// A person logs in with a browser at a real identity provider. The cookie counts on every server until they log out or are disabled, and
// neither the provider's answer nor the cookie can be used again.
func TestLogin_WithABrowser(t *testing.T) {
	t.Parallel()
	o, p, one, two := loginTenant(t)
	o.install("tenant.yaml", p.people(o.tenant, "author", ""), o.trusting)
	ana := newBrowser(t)
	asked := ana.open(one.url + "/v1/login?return_to=/v1/me")
	require.Equal(t, p.url, origin(asked.at))
	attempt := ana.header(one.url + "/")
	seen := ana.signIn(p, asked, "ana")
	require.Equal(t, one.url+"/v1/me", seen.at.String())
	require.Contains(t, seen.body, `"principal":"ana"`)
	for _, r := range []*serverProcess{one, two} {
		require.True(t, eventually(t.Context(), patience, func() bool {
			status, me := cookied{apiClient{r, ""}, ana.header(one.url + "/")}.me()
			return status == http.StatusOK && me.Principal == "ana" && me.Name == "Ana Ferreira" && me.Credential.Kind == "login" &&
				strings.Join(me.Groups, " ") == "finance" && strings.Join(me.Credential.Scopes, " ") == "author read run"
		}))
	}

	// The session that she starts acts for her.
	answer, body := ana.as(one).send(http.MethodPost, "/v1/sessions", map[string]any{"id": "s1", "document": writer()}, "Origin", one.url)
	require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	answer, body = ana.as(one).send(http.MethodPost, "/v1/sessions", map[string]any{"id": "s2", "document": writer()}, "Origin", "http://evil.example.com")
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Contains(t, string(body), `"reason":"cross_origin"`)

	// The provider's answer again, with the cookie of the attempt as it was: on both servers, the login does not count.
	back := ana.visited[len(ana.visited)-2]
	require.Equal(t, "/v1/login/callback", back.Path)
	for _, r := range []*serverProcess{one, two} {
		thief := cookied{apiClient{r, ""}, attempt}
		answer, body = thief.send(http.MethodGet, back.RequestURI(), nil)
		require.Equal(t, http.StatusForbidden, answer.StatusCode, string(body))
		require.Contains(t, string(body), `"reason":"login"`)
		require.NotContains(t, strings.Join(answer.Header.Values("Set-Cookie"), "\n"), "__Host-jig_login")
	}
	ben := newBrowser(t)
	ben.open(one.url + "/v1/login")
	require.Equal(t, http.StatusForbidden, ben.open(back.String()).status, "the answer to one browser is nothing to another")

	// Somebody who says no at the provider is not logged in.
	ben = newBrowser(t)
	refused := ben.open(ben.open(one.url+"/v1/login").at.String() + "/abort")
	require.Equal(t, http.StatusForbidden, refused.status, refused.body)
	require.Contains(t, refused.body, "Log in")

	// Logging out ends the login everywhere, also for a copy of the cookie. Another browser stays.
	second := newBrowser(t)
	second.signIn(p, second.open(one.url+"/v1/login"), "ana")
	copied := ana.as(two)
	answer, body = ana.as(one).send(http.MethodPost, "/v1/logout", nil)
	require.Equal(t, http.StatusNoContent, answer.StatusCode, string(body))
	answer, _ = copied.send(http.MethodGet, "/v1/me", nil)
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	other := second.as(one)
	status, _ := other.me()
	require.Equal(t, http.StatusOK, status)

	// A disabled person's logins count nowhere.
	o.install("tenant.yaml", p.people(o.tenant, "author", "    disabled: true\n"), func(id string) {
		o.signal(id, "approve", map[string]string{"call": "1.1", "by": "robot"})
	})
	for _, r := range []*serverProcess{one, two} {
		require.True(t, eventually(t.Context(), patience, func() bool {
			answer, _ := cookied{apiClient{r, ""}, other.cookies}.send(http.MethodGet, "/v1/me", nil)
			return answer.StatusCode == http.StatusForbidden
		}))
	}
}

// An owner makes an API key on one server and revokes it there. The other one refuses it from then on and ends its stream.
func TestAPIKeys_OverHTTP(t *testing.T) {
	t.Parallel()
	o, p, one, two := loginTenant(t)
	o.install("tenant.yaml", p.people(o.tenant, "owner", ""), o.trusting)
	ana := apiClient{one, p.token("ana", "")}
	ana.is("author", "decide", "manage", "operate", "read", "run")
	answer, body := ana.send(http.MethodPost, "/v1/api-keys", map[string]any{"principal": "ci", "name": "nightly"})
	require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	var made struct{ ID, Key, Principal string }
	require.NoError(t, json.Unmarshal(body, &made))
	ci := apiClient{two, made.Key}
	require.Equal(t, "ci", get[whoami](ci, "/v1/me").Principal)
	answer, body = ci.send(http.MethodPost, "/v1/sessions", map[string]any{"id": "s1", "document": writer()})
	require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	ci.waits("s1")
	stream := ci.follow("s1", 0)
	_, more := stream.next()
	require.True(t, more)
	answer, body = ci.send(http.MethodPost, "/v1/api-keys", map[string]any{})
	require.Equal(t, http.StatusForbidden, answer.StatusCode, string(body))

	answer, body = ana.send(http.MethodPost, "/v1/api-keys/"+made.ID+"/revoke", nil)
	require.Equal(t, http.StatusNoContent, answer.StatusCode, string(body))
	for more {
		_, more = stream.next()
	}
	ci.refuses("revoked on the other server")
	answer, body = ana.send(http.MethodGet, "/v1/api-keys", nil)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Contains(t, string(body), `"revoked_by":"ana"`)
	require.NotContains(t, string(body), made.Key)
}
