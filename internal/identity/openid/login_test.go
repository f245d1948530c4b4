package openid_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/openid"
)

const (
	callback = "https://jig.example.com/v1/login/callback"
	clientID = "jig-server"
)

// forLogins adds a client to a binding.
func forLogins(b *openid.Binding) { b.ClientID, b.ClientSecretEnv = clientID, "SECRET" }

// login is an attempt on the way.
type login struct {
	providers *openid.Providers
	cookie    string
	// sent is what the provider got, and query what it answers.
	sent, query url.Values
}

// begin begins a login at a provider that answers with an id token. change changes its claims.
func (p *provider) begin(t *testing.T, providers *openid.Providers, change map[string]any) *login {
	t.Helper()
	cookie, address, err := providers.BeginLogin(t.Context(), "", callback, "/v1/me?x=1")
	require.NoError(t, err)
	u, err := url.Parse(address)
	require.NoError(t, err)
	l := &login{providers: providers, cookie: cookie, sent: u.Query(), query: url.Values{"code": {"the-code"}, "state": {u.Query().Get("state")}}}
	p.exchange = func(r *http.Request) (int, map[string]any) {
		id, secret, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if id != clientID || secret != "secret" || r.FormValue("code") != "the-code" || r.FormValue("redirect_uri") != callback || encode(sum[:]) != l.sent.Get("code_challenge") {
			return http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
		}
		claims := changed(map[string]any{"aud": clientID, "nonce": l.sent.Get("nonce")}, change)
		return http.StatusOK, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(map[string]any{"typ": "JWT"}, claims)}
	}
	return l
}

func (l *login) finish(t *testing.T) (openid.LoggedIn, error) {
	t.Helper()
	return l.providers.FinishLogin(t.Context(), l.cookie, l.query)
}

// refused makes sure that the login does not count, for a reason.
func (l *login) refused(t *testing.T, why string) {
	t.Helper()
	_, err := l.finish(t)
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err), err)
	require.Equal(t, "login", jig.AsError(err).Reason)
	require.Contains(t, err.Error(), why)
}

func TestLogin_IsIdentifiedByItsAttempt(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	l := p.begin(t, p.bound(forLogins), nil)
	require.Equal(t, []string{clientID, "code", "S256", callback, "openid profile"}, []string{
		l.sent.Get("client_id"), l.sent.Get("response_type"), l.sent.Get("code_challenge_method"), l.sent.Get("redirect_uri"), l.sent.Get("scope"),
	})
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		require.NotEmpty(t, l.sent.Get(name))
		require.NotContains(t, l.cookie, l.sent.Get(name))
	}
	who, err := l.finish(t)
	require.NoError(t, err)
	require.Len(t, who.Attempt, sha256.Size)
	require.Equal(t, "/v1/me?x=1", who.ReturnTo)
	who.ExpiresAt = time.Time{}
	require.Equal(t, openid.Identity{Tenant: "acme", Issuer: p.url, Subject: "248289761001", Name: "Ana Ferreira", Groups: []string{"finance-team"}}, who.Identity)

	again, err := l.finish(t) // the provider of this test accepts its code again, and the caller must recognize the attempt
	require.NoError(t, err)
	require.Equal(t, who.Attempt, again.Attempt)
	other := p.begin(t, p.bound(forLogins), nil)
	second, err := other.finish(t)
	require.NoError(t, err)
	require.NotEqual(t, who.Attempt, second.Attempt)
}

// A login that the browser did not begin, or that the provider answers with something else, does not count.
func TestLogin_ThatDoesNotCount(t *testing.T) {
	t.Parallel()
	p, stranger := newProvider(t), newProvider(t)
	providers := p.bound(forLogins)
	for why, change := range map[string]map[string]any{
		"its nonce is not that": {"nonce": "another"}, "expected audience": {"aud": server}, "issued by a different provider": {"iss": stranger.url},
		"expired": {"exp": time.Now().Add(-time.Hour).Unix()}, "before the nbf": {"nbf": time.Now().Add(time.Hour).Unix()}, "for another client": {"azp": "other"},
		"its subject is not usable": {"sub": ""}, "made for another": {"aud": []string{clientID, "other"}},
	} {
		p.begin(t, providers, change).refused(t, why)
	}
	for why, change := range map[string]func(l *login){
		"begun no login":               func(l *login) { l.cookie = "" },
		"not that of the browser's":    func(l *login) { l.query.Set("state", "another") },
		"another identity provider":    func(l *login) { l.query.Set("iss", stranger.url) },
		"did not sign the person in":   func(l *login) { l.query.Set("error", "access_denied") },
		"refused the code":             func(l *login) { l.query.Set("code", "another") },
		"attempt":                      func(l *login) { l.cookie = p.begin(t, providers, nil).cookie },
		"the state is not that of the": func(l *login) { l.query.Del("state") },
	} {
		l := p.begin(t, providers, nil)
		change(l)
		l.refused(t, why)
	}
	ofOthers := p.begin(t, providers, nil)
	stranger.exchange = p.exchange
	ofOthers.providers = stranger.bound(forLogins)
	ofOthers.refused(t, "not configured any more")
	byClaim := p.begin(t, p.bound(func(b *openid.Binding) {
		forLogins(b)
		b.Tenant, b.TenantClaim, b.Tenants = "", "org", []string{"acme"}
	}), map[string]any{"org": "umbrella"})
	byClaim.refused(t, "names no tenant of the binding")
}

// The code and the client's secret go to the provider alone, also if it sends the server to another address.
func TestLogin_CodeIsNotSentElsewhere(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	p := newProvider(t)
	p.elsewhere = other.URL
	_, err := p.begin(t, p.bound(forLogins), nil).finish(t)
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
	require.False(t, reached.Load())
}

// Whoever steals the cookie and the answer of the provider cannot change what the cookie says: the provider has signed a hash of it.
func TestLogin_CookieCannotBeChanged(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for _, change := range []map[string]any{{"begun": time.Now().Add(-time.Minute).Unix()}, {"return_to": "/elsewhere"}, {"more": 1}} {
		l := p.begin(t, p.bound(forLogins), nil)
		l.cookie = rewritten(t, l.cookie, change)
		l.refused(t, "the state is not that")
		l.query.Set("state", derived("state", l.cookie))
		l.refused(t, "its nonce is not that")
	}
	old := p.begin(t, p.bound(forLogins), nil)
	old.cookie = rewritten(t, old.cookie, map[string]any{"begun": time.Now().Add(-openid.AttemptLifetime - time.Second).Unix()})
	old.query.Set("state", derived("state", old.cookie))
	old.refused(t, "took too long")
	away := p.begin(t, p.bound(forLogins), nil)
	away.cookie = rewritten(t, away.cookie, map[string]any{"return_to": "//elsewhere.example.com"})
	away.query.Set("state", derived("state", away.cookie))
	away.refused(t, "begun no login")
}

// rewritten returns the cookie of an attempt with other members.
func rewritten(t *testing.T, cookie string, change map[string]any) string {
	t.Helper()
	var content map[string]any
	require.NoError(t, json.Unmarshal(decode(t, cookie), &content))
	text, err := json.Marshal(changed(content, change))
	require.NoError(t, err)
	return encode(text)
}

func derived(label, cookie string) string {
	sum := sha256.Sum256([]byte(label + "\x00" + cookie))
	return encode(sum[:])
}

func TestLogin_ChoosesTheProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	_, _, err := p.bound(nil).BeginLogin(t.Context(), "", callback, "/")
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), "the binding has no client")
	file, err := json.Marshal(map[string]any{"bindings": []openid.Binding{
		{Issuer: p.url, Audience: "one", Tenant: "acme", ClientID: "a"}, {Issuer: p.url, Audience: "two", TenantClaim: "org", Tenants: []string{"umbrella", "initech"}, ClientID: "b"},
	}})
	require.NoError(t, err)
	bindings, err := openid.ReadBindings(file, nil)
	require.NoError(t, err)
	several := openid.New(bindings, nil)
	for tenant, client := range map[string]string{"acme": "a", "initech": "b"} {
		_, address, err := several.BeginLogin(t.Context(), tenant, callback, "/")
		require.NoError(t, err)
		require.Contains(t, address, "client_id="+client+"&")
	}
	_, _, err = several.BeginLogin(t.Context(), "", callback, "/")
	require.Equal(t, "tenant", jig.AsError(err).Field)
	_, _, err = several.BeginLogin(t.Context(), "nobody", callback, "/")
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
}

func TestCommandLine_FindsTheOnlyBinding(t *testing.T) {
	t.Parallel()
	file := `{"bindings": [
		{"issuer": "https://one.example.com", "audience": "one", "tenant": "acme", "client_id": "a", "command_line_client_id": "b"},
		{"issuer": "https://two.example.com", "audience": "two", "tenant": "umbrella", "client_id": "a", "audience_parameter": "none"}
	]}`
	bindings, err := openid.ReadBindings([]byte(file), nil)
	require.NoError(t, err)
	p := openid.New(bindings, nil)
	for _, tenant := range []string{"", "acme"} {
		b, err := p.CommandLine(tenant)
		require.NoError(t, err)
		require.Equal(t, []string{"b", "resource"}, []string{b.CommandLineClientID, b.AudienceParameter})
	}
	_, err = p.CommandLine("umbrella")
	require.Contains(t, jig.AsError(err).Hint, "command_line_client_id")
	_, err = openid.ReadBindings([]byte(strings.Replace(file, "none", "aud", 1)), nil)
	require.Equal(t, "audience_parameter", jig.AsError(err).Field)
}

func TestLocalPath_LeavesNoHost(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"/", "/v1/me", "/a?b=c#d", "/a//b"} {
		require.True(t, openid.LocalPath(good), good)
	}
	for _, bad := range []string{
		"", "v1", "//evil.example.com", "https://evil.example.com", `/\evil.example.com`, "/\t/evil.example.com", "/a\r\nb", "javascript:alert(1)", "/é", "/%zz", "/" + strings.Repeat("a", 1000),
	} {
		require.False(t, openid.LocalPath(bad), bad)
	}
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	return b
}
