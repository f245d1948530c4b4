package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/tenancy"
)

// BeginLogin and FinishLogin are those of a provider that signs in whoever comes with the cookie of an attempt and its state.

func (i issued) BeginLogin(_ context.Context, tenant, callback, returnTo string) (cookie, address string, err error) {
	if !openid.LocalPath(returnTo) {
		return "", "", jig.Errorf(jig.CodeInvalidInput, "not a path").WithField("return_to")
	}
	return "attempt:" + returnTo, issuer + "/auth?" + url.Values{"tenant": {tenant}, "redirect_uri": {callback}}.Encode(), nil
}

func (i issued) FinishLogin(_ context.Context, cookie string, query url.Values) (openid.LoggedIn, error) {
	returnTo, ok := strings.CutPrefix(cookie, "attempt:")
	if !ok || query.Get("state") != "right" {
		return openid.LoggedIn{}, jig.Errorf(jig.CodeNotPermitted, "the login is not valid: a secret reason").WithReason("login")
	}
	who := openid.Identity{Tenant: "acme", Issuer: issuer, Subject: "248", Name: "Ana Ferreira", Groups: []string{"finance-team"}}
	return openid.LoggedIn{Identity: who, ReturnTo: returnTo, Attempt: []byte(query.Get("code"))}, nil
}

// CommandLine is that of a provider for the command lines of acme alone.
func (i issued) CommandLine(tenant string) (openid.Binding, error) {
	if tenant != "" && tenant != "acme" {
		return openid.Binding{}, jig.Errorf(jig.CodeNotFound, "no identity provider is configured for these logins")
	}
	return openid.Binding{Issuer: issuer, Audience: "https://jig.example.com", CommandLineClientID: "cli", Scopes: []string{"api"}, AudienceParameter: "resource"}, nil
}

// Everybody may know which tokens the server takes.
func TestProtectedResource_NamesTheIssuer(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, nil)
	for _, path := range []string{"", "?tenant=acme"} {
		answer, body := s.with("/.well-known/oauth-protected-resource" + path)
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.JSONEq(t, `{
			"resource": "https://jig.example.com", "authorization_servers": ["`+issuer+`"], "bearer_methods_supported": ["header"], "resource_name": "jig",
			"jig_command_line": {"client_id": "cli", "scopes": ["openid", "offline_access", "api"], "audience_parameter": "resource"}
		}`, body)
	}
	answer, body := s.with("/.well-known/oauth-protected-resource?tenant=umbrella")
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
	require.Equal(t, "NOT_FOUND", problem(t, answer, body).Code)
	answer, body = newLoginSite(t, func(o *httpapi.Options) { o.Providers = nil }).with("/.well-known/oauth-protected-resource")
	require.Contains(t, problem(t, answer, body).Hint, "JIG_OIDC_FILE")
}

// newLoginSite is a site where people log in.
func newLoginSite(t *testing.T, change func(o *httpapi.Options)) *site {
	t.Helper()
	s := newSiteWith(t, func(o *httpapi.Options) {
		if change != nil {
			change(o)
		}
	})
	s.gives("author", "finance")
	return s
}

// visit makes a request as a browser does, which follows no redirect.
func (s *site) visit(method, path string, form url.Values, headers ...string) (reply, string, []*http.Cookie) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	request.Header.Set("Accept", "text/html,*/*")
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return reply{answer.StatusCode, answer.Header}, string(body), answer.Cookies()
}

// logIn logs in with an attempt, and returns the cookie header of the login.
func (s *site) logIn(code string) string {
	s.t.Helper()
	answer, body, cookies := s.visit(http.MethodGet, "/v1/login/callback?state=right&code="+code, nil, "Cookie", "__Host-jig_attempt=attempt:/v1/tools")
	require.Equal(s.t, http.StatusSeeOther, answer.StatusCode, body)
	require.Len(s.t, cookies, 2)
	return cookies[1].Name + "=" + cookies[1].Value
}

// cookied makes a request with a cookie instead of a key.
func (s *site) cookied(method, path, body, cookie string, headers ...string) (reply, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("Cookie", cookie)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return reply{answer.StatusCode, answer.Header}, string(text)
}

func TestLogin_GoesToTheProviderAndBack(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, func(o *httpapi.Options) { o.PublicURL = "https://jig.example.com/" })
	answer, _, cookies := s.visit(http.MethodGet, "/v1/login?tenant=acme&return_to=/v1/tools", nil)
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	require.Equal(t, issuer+"/auth?redirect_uri=https%3A%2F%2Fjig.example.com%2Fv1%2Flogin%2Fcallback&tenant=acme", answer.Header.Get("Location"))
	require.Equal(t, "__Host-jig_attempt=attempt:/v1/tools; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax", cookies[0].String())

	answer, _, cookies = s.visit(http.MethodGet, "/v1/login/callback?state=right&code=1", nil, "Cookie", "__Host-jig_attempt=attempt:/v1/tools")
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	require.Equal(t, "/v1/tools", answer.Header.Get("Location"))
	require.Equal(t, "__Host-jig_attempt=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax", cookies[0].String())
	require.Regexp(t, `^__Host-jig_login=[a-z2-7]{16}_[a-z2-7]{52}; Path=/; Max-Age=60(4800|4799); HttpOnly; Secure; SameSite=Lax$`, cookies[1].String())
	answer, body := s.cookied(http.MethodGet, "/v1/me", "", cookies[1].Name+"="+cookies[1].Value)
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	for _, part := range []string{`"principal":"https://login.example.com#248"`, `"name":"Ana Ferreira"`, `"groups":["finance"]`, `"roles":["author"]`, `"kind":"login"`, `"scopes":["author","read","run"]`, `"expires_at"`} {
		require.Contains(t, body, part)
	}

	answer, _, _ = newLoginSite(t, nil).visit(http.MethodGet, "/v1/login?return_to=//evil.example.com", nil)
	require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode)
	answer, body = newLoginSite(t, func(o *httpapi.Options) { o.Providers = nil }).send(http.MethodGet, "/v1/login", "")
	require.Contains(t, problem(t, answer, body).Hint, "JIG_OIDC_FILE")
}

// An answer that does not fit the browser's attempt, or comes a second time, gives no login, and the page does not say why.
func TestLogin_RefusedAnswers(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, nil)
	s.logIn("1")
	for name, request := range map[string]struct{ query, cookie string }{
		"the same attempt again": {"state=right&code=1", "__Host-jig_attempt=attempt:/"},
		"no attempt":             {"state=right&code=2", ""},
		"another state":          {"state=wrong&code=2", "__Host-jig_attempt=attempt:/"},
		"two attempts":           {"state=right&code=2", "__Host-jig_attempt=attempt:/; __Host-jig_attempt=attempt:/"},
	} {
		answer, body, cookies := s.visit(http.MethodGet, "/v1/login/callback?"+request.query, nil, "Cookie", request.cookie)
		require.Equal(t, http.StatusForbidden, answer.StatusCode, name)
		require.Equal(t, "text/html; charset=utf-8", answer.Header.Get("Content-Type"))
		require.Contains(t, body, `<a href="/v1/login">Log in</a>`)
		require.NotContains(t, body, "secret reason")
		require.Len(t, cookies, 1, name)
		require.Empty(t, cookies[0].Value, name)
	}
	answer, body := s.send(http.MethodGet, "/v1/login/callback?state=wrong", "")
	require.Equal(t, "login", problem(t, answer, body).Reason)
}

// A cookie counts alone, only for the login that it is of, and not for changes that a page of another origin asks for.
func TestLogin_Cookie(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, nil)
	s.engine.start = func(o client.StartOptions) (client.Started, error) {
		require.Equal(t, jig.Principal{ID: issuer + "#248", Groups: []string{"finance"}, Claimed: true}, o.Principal)
		return client.Started{SessionID: "acme.one"}, nil
	}
	cookie, start := s.logIn("1"), `{"agent":"a"}`
	for name, headers := range map[string][]string{
		"the same origin": {"Sec-Fetch-Site", "same-origin"}, "an older browser": {"Origin", s.url}, "no browser": nil,
	} {
		answer, body := s.cookied(http.MethodPost, "/v1/sessions", start, cookie, headers...)
		require.Equal(t, http.StatusCreated, answer.StatusCode, "%s: %s", name, body)
	}
	for name, headers := range map[string][]string{
		"another site": {"Sec-Fetch-Site", "cross-site"}, "a neighbor": {"Sec-Fetch-Site", "same-site"}, "another origin": {"Origin", "https://evil.example.com"},
	} {
		answer, body := s.cookied(http.MethodPost, "/v1/sessions", start, cookie, headers...)
		require.Equal(t, "cross_origin", problem(t, answer, body).Reason, name)
		answer, body = s.cookied(http.MethodPost, "/v1/logout", "", cookie, headers...)
		require.Equal(t, "cross_origin", problem(t, answer, body).Reason, name)
		answer, _ = s.cookied(http.MethodGet, "/v1/me", "", cookie, headers...)
		require.Equal(t, http.StatusOK, answer.StatusCode, "following a link changes nothing")
	}
	last := cookie[len(cookie)-1:]
	for name, bad := range map[string]string{
		"another secret": cookie[:len(cookie)-1] + map[bool]string{true: "b", false: "a"}[last == "a"], "twice": cookie + "; " + cookie, "another name": "jig_login" + cookie[len("__Host-jig_login"):],
	} {
		answer, body := s.cookied(http.MethodGet, "/v1/me", "", bad)
		require.Equal(t, "unauthenticated", problem(t, answer, body).Reason, name)
	}
	answer, body := s.cookied(http.MethodGet, "/v1/me", "", cookie, "Authorization", "Bearer nothing")
	require.Equal(t, "unauthenticated", problem(t, answer, body).Reason, "the header counts, not the cookie")
}

// A stream lasts as long as the login that opened it.
func TestLogin_KeepsItsStreams(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, nil)
	s.log.add(jig.EventSessionStarted)
	cookie := s.logIn("1")
	s.key = ""
	stream := s.follow("Cookie", cookie)
	stream.until(t, "event: session.started")
	require.Eventually(t, func() bool { return s.keys.checks.Load() > 1 }, time.Minute, time.Millisecond)
	s.log.add(jig.EventPassStarted)
	stream.until(t, "event: pass.started")
}

// Logging out ends the login and its streams, also for whoever has copied the cookie. Logging in again ends the former login.
func TestLogout_EndsTheLogin(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, nil)
	s.log.add(jig.EventSessionStarted)
	cookie, other := s.logIn("1"), s.logIn("2")
	s.key = ""
	stream := s.follow("Cookie", cookie)
	stream.until(t, "")
	answer, _, cookies := s.visit(http.MethodPost, "/v1/logout", nil, "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusNoContent, answer.StatusCode)
	require.Equal(t, "__Host-jig_login=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax", cookies[0].String())
	stream.rest(t)
	answer, body := s.cookied(http.MethodGet, "/v1/me", "", cookie)
	require.Equal(t, "unauthenticated", problem(t, answer, body).Reason)
	answer, _ = s.cookied(http.MethodGet, "/v1/me", "", other)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	answer, _ = s.cookied(http.MethodPost, "/v1/logout", "", cookie)
	require.Equal(t, http.StatusNoContent, answer.StatusCode, "again changes nothing")

	answer, _, _ = s.visit(http.MethodGet, "/v1/login/callback?state=right&code=3", nil, "Cookie", "__Host-jig_attempt=attempt:/; "+other)
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	answer, _ = s.cookied(http.MethodGet, "/v1/me", "", other)
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
}

// Development logins exist only where they are asked for.
func TestDevLogin_SignsIn(t *testing.T) {
	t.Parallel()
	form := url.Values{"name": {"ben"}, "tenant": {"acme"}}
	answer, _, _ := newLoginSite(t, nil).visit(http.MethodPost, "/v1/login/dev", form)
	require.Equal(t, http.StatusNotFound, answer.StatusCode)

	s := newLoginSite(t, func(o *httpapi.Options) { o.DevLogin, o.Providers = true, nil })
	s.tenants.change(func(all *tenancy.Settings) {
		all.People = []jig.Principal{{ID: "ben", Permissions: []string{"api.read"}}}
	})
	answer, _, _ = s.visit(http.MethodGet, "/v1/login?return_to=/v1/tools", nil)
	require.Equal(t, "/v1/login/dev?return_to=%2Fv1%2Ftools", answer.Header.Get("Location"))
	answer, body, _ := s.visit(http.MethodGet, answer.Header.Get("Location"), nil)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Contains(t, body, "development server")
	require.Contains(t, body, `value="/v1/tools"`)
	answer, _, cookies := s.visit(http.MethodPost, "/v1/login/dev", form, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	answer, body = s.cookied(http.MethodGet, "/v1/me", "", cookies[0].Name+"="+cookies[0].Value)
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Contains(t, body, `"kind":"dev_login"`)
	require.Contains(t, body, `"principal":"ben"`)
	for name, bad := range map[string]url.Values{
		"no name": {"tenant": {"acme"}}, "no tenant": {"name": {"ben"}}, "elsewhere": {"name": {"ben"}, "tenant": {"acme"}, "return_to": {"https://evil.example.com"}},
		"a line": {"name": {"b\nn"}, "tenant": {"acme"}},
	} {
		answer, _, cookies := s.visit(http.MethodPost, "/v1/login/dev", bad, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode, name)
		require.Empty(t, cookies, name)
	}
	answer, _, _ = s.visit(http.MethodPost, "/v1/login/dev", form, "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
}
