package openid_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/openid"
)

const server = "https://jig.example.com"

// provider is an identity provider that signs whatever a test wants.
type provider struct {
	t       *testing.T
	url     string
	key     *rsa.PrivateKey
	fetches atomic.Int64
	broken  atomic.Bool
	// exchange answers the requests for tokens. If elsewhere is set, they are sent there instead.
	exchange  func(r *http.Request) (status int, body map[string]any)
	elsewhere string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	p := &provider{t: t, key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": p.url, "jwks_uri": p.url + "/keys", "authorization_endpoint": p.url + "/auth", "token_endpoint": p.url + "/token"})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		if p.elsewhere != "" {
			http.Redirect(w, r, p.elsewhere, http.StatusTemporaryRedirect)
			return
		}
		status, body := p.exchange(r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) //nolint:errcheck // the client is gone
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.fetches.Add(1)
		if p.broken.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "one", "use": "sig", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) //nolint:errcheck // the client is gone
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// part encodes a part of a token.
func (p *provider) part(v any) string {
	p.t.Helper()
	b, err := json.Marshal(v)
	require.NoError(p.t, err)
	return encode(b)
}

// changed returns a copy of a map with some entries replaced; a nil value removes one.
func changed(m, with map[string]any) map[string]any {
	m = maps.Clone(m)
	for k, v := range with {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
	return m
}

// sign returns a token with a changed header and changed claims.
func (p *provider) sign(header, claims map[string]any) string {
	p.t.Helper()
	now := time.Now()
	head := changed(map[string]any{"alg": "RS256", "typ": "at+jwt", "kid": "one"}, header)
	body := changed(map[string]any{
		"iss": p.url, "aud": server, "sub": "248289761001", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "name": "Ana Ferreira", "groups": []string{"finance-team"},
	}, claims)
	text := p.part(head) + "." + p.part(body)
	sum := sha256.Sum256([]byte(text))
	switch head["alg"] {
	case "none":
		return text + "."
	case "HS256": // with the public key as the secret, as in the attack that confuses the two
		mac := hmac.New(sha256.New, p.key.N.Bytes())
		mac.Write([]byte(text))
		return text + "." + encode(mac.Sum(nil))
	case "PS256":
		signature, err := rsa.SignPSS(rand.Reader, p.key, crypto.SHA256, sum[:], nil)
		require.NoError(p.t, err)
		return text + "." + encode(signature)
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	require.NoError(p.t, err)
	return text + "." + encode(signature)
}

// bound returns the providers of one binding.
func (p *provider) bound(change func(b *openid.Binding)) *openid.Providers {
	p.t.Helper()
	b := openid.Binding{Issuer: p.url, Audience: server, Tenant: "acme", Algorithms: []string{"RS256"}}
	if change != nil {
		change(&b)
	}
	file, err := json.Marshal(map[string]any{"bindings": []openid.Binding{b}})
	require.NoError(p.t, err)
	bindings, err := openid.ReadBindings(file, func(string) string { return "secret" })
	require.NoError(p.t, err)
	return openid.New(bindings, nil)
}

func TestAccessToken_SaysWhoItIs(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	got, err := p.bound(nil).AccessToken(t.Context(), p.sign(nil, nil))
	require.NoError(t, err)
	require.False(t, got.ExpiresAt.IsZero())
	got.ExpiresAt = time.Time{}
	require.Equal(t, openid.Identity{Tenant: "acme", Issuer: p.url, Subject: "248289761001", Name: "Ana Ferreira", Groups: []string{"finance-team"}}, got)

	got, err = p.bound(func(b *openid.Binding) { b.NameClaim, b.GroupsClaim, b.AnyType = "email", "role", true }).
		AccessToken(t.Context(), p.sign(map[string]any{"typ": nil}, map[string]any{"aud": []string{"other", server}, "email": "ana@example.com", "role": "admins"}))
	require.NoError(t, err)
	require.Equal(t, []string{"ana@example.com", "admins"}, []string{got.Name, got.Groups[0]})
}

func TestAccessToken_ThatDoesNotCount(t *testing.T) {
	t.Parallel()
	p, stranger := newProvider(t), newProvider(t)
	providers := p.bound(func(b *openid.Binding) { b.ClientID = "the-client" })
	good := p.sign(nil, nil)
	_, err := providers.AccessToken(t.Context(), good)
	require.NoError(t, err)
	now := time.Now()
	for name, token := range map[string]string{
		"no token":             "",
		"not a token":          "a.b.c",
		"two parts":            good[:len(good)-400],
		"changed":              good[:len(good)-8] + "AAAAAAAA",
		"another issuer":       stranger.sign(nil, nil),
		"another issuer's key": stranger.sign(nil, map[string]any{"iss": p.url}),
		"another audience":     p.sign(nil, map[string]any{"aud": "https://other.example.com"}),
		"no audience":          p.sign(nil, map[string]any{"aud": nil}),
		"the client, too":      p.sign(nil, map[string]any{"aud": []string{server, "the-client"}}),
		"expired":              p.sign(nil, map[string]any{"exp": now.Add(-time.Second).Unix()}),
		"no expiry":            p.sign(nil, map[string]any{"exp": nil}),
		"not valid yet":        p.sign(nil, map[string]any{"nbf": now.Add(2 * time.Minute).Unix()}),
		"an odd start":         p.sign(nil, map[string]any{"nbf": 1e300}),
		"no signature":         p.sign(map[string]any{"alg": "none"}, nil),
		"a shared secret":      p.sign(map[string]any{"alg": "HS256"}, nil),
		"another algorithm":    p.sign(map[string]any{"alg": "PS256"}, nil),
		"an unknown key":       p.sign(map[string]any{"kid": "two"}, nil),
		"another type":         p.sign(map[string]any{"typ": "JWT"}, nil),
		"an id token":          p.sign(nil, map[string]any{"nonce": "n"}),
		"an id token's hash":   p.sign(nil, map[string]any{"at_hash": "h"}),
		"no subject":           p.sign(nil, map[string]any{"sub": nil}),
		"an odd subject":       p.sign(nil, map[string]any{"sub": "a\nb"}),
		"a long one":           p.sign(nil, map[string]any{"pad": string(make([]byte, 13<<10))}),
	} {
		_, err := providers.AccessToken(t.Context(), token)
		require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err), "%s: %v", name, err)
	}
}

// A claim may choose the tenant, among those of the binding.
func TestAccessToken_TenantByClaim(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	providers := p.bound(func(b *openid.Binding) { b.Tenant, b.TenantClaim, b.Tenants = "", "org", []string{"acme", "globex"} })
	got, err := providers.AccessToken(t.Context(), p.sign(nil, map[string]any{"org": "globex"}))
	require.NoError(t, err)
	require.Equal(t, "globex", got.Tenant)
	for _, org := range []any{"initech", "", nil, []string{"acme"}} {
		_, err := providers.AccessToken(t.Context(), p.sign(nil, map[string]any{"org": org}))
		require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err), org)
	}
}

// Tokens with unknown keys do not make the server ask the issuer each time, and an issuer that is away is not the client's fault.
func TestAccessToken_IssuerIsAskedSparingly(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	providers := p.bound(nil)
	for i := range 20 {
		_, err := providers.AccessToken(t.Context(), p.sign(map[string]any{"kid": strconv.Itoa(i)}, nil))
		require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
	}
	require.EqualValues(t, 1, p.fetches.Load())
	_, err := providers.AccessToken(t.Context(), p.sign(nil, nil))
	require.NoError(t, err)

	away := newProvider(t)
	away.broken.Store(true)
	_, err = away.bound(nil).AccessToken(t.Context(), away.sign(nil, nil))
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err), "%v", err)
}

func TestReadBindings_RefusesWhatIsNotSafe(t *testing.T) {
	t.Parallel()
	read := func(text string) error {
		_, err := openid.ReadBindings([]byte(text), func(name string) string { return map[string]string{"SECRET": "s"}[name] })
		return err
	}
	one := func(rest string) string {
		return `{"bindings": [{"issuer": "https://login.example.com", "audience": "https://jig.example.com"` + rest + `}]}`
	}
	require.NoError(t, read(one(`, "tenant": "acme", "client_id": "jig", "client_secret_env": "SECRET"`)))
	require.NoError(t, read(one(`, "tenant_claim": "org", "tenants": ["acme"]`)))
	for text, field := range map[string]string{
		`{"bindings": []}`: "bindings",
		`{"bindings": [{"issuer": "http://login.example.com", "audience": "a", "tenant": "acme"}]}`:    "issuer",
		`{"bindings": [{"issuer": "https://login.example.com?a", "audience": "a", "tenant": "acme"}]}`: "issuer",
		`{"bindings": [{"issuer": "https://login.example.com", "tenant": "acme"}]}`:                    "audience",
		one(`, "tenant": "acme", "client_id": "https://jig.example.com"`):                              "audience",
		one(``):                        "tenant",
		one(`, "tenant_claim": "org"`): "tenant",
		one(`, "tenant": "acme", "tenants": ["globex"]`):          "tenant",
		one(`, "tenant": "_global"`):                              "tenant",
		one(`, "tenant": "acme", "algorithms": ["HS256"]`):        "algorithms",
		one(`, "tenant": "acme", "algorithms": ["none"]`):         "algorithms",
		one(`, "tenant": "acme", "client_secret_env": "MISSING"`): "client_secret_env",
		`{"bindings": [` + twice + `,` + twice + `]}`:             "audience",
		`{"bindings": [` + twice + `,` + logsIn + `]}`:            "audience",
	} {
		require.Equal(t, field, jig.AsError(read(text)).Field, text)
	}
	require.ErrorContains(t, read(one(`, "tenants_claim": "org"`)), "tenants_claim")
}

const twice = `{"issuer": "https://login.example.com", "audience": "https://jig.example.com", "tenant": "acme"}`

// logsIn has a client whose id is the audience of the other binding.
const logsIn = `{"issuer": "https://login.example.com", "audience": "b", "tenant": "globex", "command_line_client_id": "https://jig.example.com"}`
