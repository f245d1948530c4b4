package signin_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zalando/go-keyring"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/remote/signin"
)

// site is a server together with its identity provider.
type site struct {
	t   *testing.T
	url string
	// describes is the server's description of itself, and says the provider's metadata.
	describes, says map[string]any
	// renewals counts the refresh tokens that were taken. The current one is "refresh-N".
	renewals atomic.Int64
	revoked  atomic.Pointer[string]
	// pending is how often the provider still answers that nobody has entered the code.
	pending atomic.Int64
	broken  atomic.Bool
	// elsewhere is where requests for tokens are sent instead; empty for nowhere.
	elsewhere string
	mu        sync.Mutex
	asked     []url.Values
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("tenant") == "nobody" {
			s.answer(w, http.StatusNotFound, map[string]any{"code": "NOT_FOUND", "detail": "no provider", "hint": "add one"})
			return
		}
		s.answer(w, http.StatusOK, s.describes)
	})
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, s.says) })
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		s.noted(r)
		s.answer(w, http.StatusOK, map[string]any{"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": s.url + "/enter", "interval": 1, "expires_in": 60})
	})
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) {
		token := r.FormValue("token")
		s.revoked.Store(&token)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	s.describes = map[string]any{
		"resource": s.url, "authorization_servers": []string{s.url},
		"jig_command_line": map[string]any{"client_id": "cli", "scopes": []string{"openid"}, "audience_parameter": "resource"},
	}
	s.says = map[string]any{
		"issuer": s.url, "jwks_uri": s.url + "/keys", "authorization_endpoint": s.url + "/auth", "token_endpoint": s.url + "/token",
		"device_authorization_endpoint": s.url + "/device", "revocation_endpoint": s.url + "/revoke", "authorization_response_iss_parameter_supported": true,
	}
	return s
}

func (s *site) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errcheck // the client is gone
}

// noted records what a request asks for.
func (s *site) noted(r *http.Request) {
	_ = r.ParseForm() //nolint:errcheck // an empty form is noticed
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, maps.Clone(r.Form))
}

// token answers requests for tokens. A refresh token counts once.
func (s *site) token(w http.ResponseWriter, r *http.Request) {
	if s.elsewhere != "" {
		http.Redirect(w, r, s.elsewhere, http.StatusPermanentRedirect)
		return
	}
	s.noted(r)
	refuse := func(code string) { s.answer(w, http.StatusBadRequest, map[string]any{"error": code}) }
	n := s.renewals.Load()
	switch r.FormValue("grant_type") {
	case "refresh_token":
		if s.broken.Load() {
			s.answer(w, http.StatusBadGateway, nil)
			return
		}
		if r.FormValue("refresh_token") != name("refresh", n) || !s.renewals.CompareAndSwap(n, n+1) {
			refuse("invalid_grant")
			return
		}
		n++
	case "authorization_code":
		if r.FormValue("code") != "right" || r.FormValue("code_verifier") == "" {
			refuse("invalid_grant")
			return
		}
	default:
		if s.pending.Add(-1) >= 0 {
			refuse("authorization_pending")
			return
		}
	}
	s.answer(w, http.StatusOK, map[string]any{"access_token": name("access", n), "refresh_token": name("refresh", n), "token_type": "Bearer", "expires_in": 3600})
}

func name(what string, n int64) string { return what + "-" + string(rune('0'+n)) }

func (s *site) discover(o signin.Options) (*signin.Provider, error) {
	o.Server = s.url
	return signin.Discover(s.t.Context(), o)
}

// browse logs in with a browser that sends answers to the address that the command waits at.
func (s *site) browse(answers ...url.Values) (signin.Login, []int, error) {
	s.t.Helper()
	p, err := s.discover(signin.Options{})
	require.NoError(s.t, err)
	var statuses []int
	l, err := p.Browser(s.t.Context(), func(address string) {
		u, err := url.Parse(address)
		require.NoError(s.t, err)
		asked := u.Query()
		require.Equal(s.t, []string{"cli", "code", "S256", "openid", s.url}, []string{
			asked.Get("client_id"), asked.Get("response_type"), asked.Get("code_challenge_method"), asked.Get("scope"), asked.Get("resource"),
		})
		require.Regexp(s.t, `^http://127\.0\.0\.1:\d+/callback$`, asked.Get("redirect_uri"))
		for _, answer := range answers {
			if !answer.Has("state") {
				answer.Set("state", asked.Get("state"))
			}
			request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, asked.Get("redirect_uri")+"?"+answer.Encode(), http.NoBody)
			require.NoError(s.t, err)
			got, err := http.DefaultClient.Do(request)
			require.NoError(s.t, err)
			_, err = io.Copy(io.Discard, got.Body)
			require.NoError(s.t, err)
			require.NoError(s.t, got.Body.Close())
			statuses = append(statuses, got.StatusCode)
		}
	})
	return l, statuses, err
}

func TestBrowser_SignsIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	right := url.Values{"code": {"right"}, "iss": {s.url}}
	forged := url.Values{"code": {"right"}, "iss": {s.url}, "state": {"wrong"}}
	l, statuses, err := s.browse(forged, right, url.Values{"code": {"late"}, "iss": {s.url}})
	require.NoError(t, err)
	require.Equal(t, []int{400, 200, 200}, statuses, "an answer with another state is refused, and the login goes on")
	require.Equal(t, []string{s.url, s.url, "cli", "access-0", "refresh-0"}, []string{l.Server, l.Issuer, l.ClientID, l.AccessToken, l.RefreshToken})
	require.NotZero(t, l.ExpiresAt)
	require.Equal(t, s.url, s.asked[0].Get("resource"))

	for why, answer := range map[string]url.Values{
		"does not come from the identity provider": {"code": {"right"}, "iss": {"https://evil.example.com"}}, "the response does not come from": {"code": {"right"}},
		"access_denied": {"error": {"access_denied"}, "iss": {s.url}}, "invalid_grant": {"code": {"stolen"}, "iss": {s.url}},
	} {
		_, _, err := s.browse(answer)
		require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err), why)
		require.ErrorContains(t, err, why)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p, err := s.discover(signin.Options{})
	require.NoError(t, err)
	_, err = p.Browser(ctx, func(string) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
}

func TestDevice_SignsIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pending.Store(1)
	p, err := s.discover(signin.Options{})
	require.NoError(t, err)
	var shown signin.Code
	l, err := p.Device(t.Context(), func(c signin.Code) { shown = c })
	require.NoError(t, err)
	require.Equal(t, signin.Code{Address: s.url + "/enter", Code: "ABCD-EFGH"}, shown)
	require.Equal(t, "access-0", l.AccessToken)
	require.Equal(t, s.url, s.asked[0].Get("resource"))
	delete(s.says, "device_authorization_endpoint")
	p, err = s.discover(signin.Options{})
	require.NoError(t, err)
	require.False(t, p.TakesDevices())
	_, err = p.Device(t.Context(), nil)
	require.Equal(t, "device", jig.AsError(err).Field)
}

// A server cannot have tokens made that another server takes, unless the user names the audience.
func TestDiscover_RefusesOtherAudiences(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.describes["resource"] = s.url + "/"
	_, err := s.discover(signin.Options{})
	require.NoError(t, err, "the address is the same")
	s.describes["resource"] = "https://other.example.com"
	_, err = s.discover(signin.Options{})
	require.Equal(t, []string{"NOT_PERMITTED", "audience"}, []string{string(jig.CodeOf(err)), jig.AsError(err).Field})
	_, err = s.discover(signin.Options{Audience: s.url})
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
	_, err = s.discover(signin.Options{Audience: "https://other.example.com"})
	require.NoError(t, err)
}

func TestDiscover_Errors(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.discover(signin.Options{Tenant: "nobody"})
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
	require.Equal(t, "add one", jig.AsError(err).Hint)
	for _, address := range []string{"http://jig.example.com", "jig.example.com", "ftp://127.0.0.1", "https://a@jig.example.com", ""} {
		_, err = signin.Discover(t.Context(), signin.Options{Server: address})
		require.Equal(t, "url", jig.AsError(err).Field, address)
	}
	_, err = signin.Discover(t.Context(), signin.Options{Server: "http://127.0.0.1:1"})
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
	s.says["token_endpoint"] = "http://login.example.com/token"
	_, err = s.discover(signin.Options{})
	require.ErrorContains(t, err, "does not use https")
	s.says["token_endpoint"], s.says["issuer"] = s.url+"/token", "https://evil.example.com"
	_, err = s.discover(signin.Options{})
	require.ErrorContains(t, err, "cannot be reached")
	s.describes["authorization_servers"] = []string{"http://login.example.com"}
	_, err = s.discover(signin.Options{})
	require.ErrorContains(t, err, "does not use https")
	s.describes = map[string]any{}
	_, err = s.discover(signin.Options{})
	require.ErrorContains(t, err, "not as a jig server does")
}

// storeIn returns a store below a folder.
func storeIn(t *testing.T, useKeyring bool) (*signin.Store, string) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", folder)
	t.Setenv("HOME", folder)
	s, err := signin.NewStore(useKeyring)
	require.NoError(t, err)
	config, err := os.UserConfigDir()
	require.NoError(t, err)
	return s, filepath.Join(config, "jig", "logins.json")
}

// expired is a login of a site whose access token has ended.
func (s *site) expired() signin.Login {
	return signin.Login{
		Server: s.url, Issuer: s.url, ClientID: "cli", TokenURL: s.url + "/token", RevocationURL: s.url + "/revoke", Audience: "aud", AudienceParameter: "audience",
		AccessToken: "old", RefreshToken: "refresh-0", ExpiresAt: time.Now().Add(-time.Second).UTC(),
	}
}

//nolint:paralleltest // it sets the environment
func TestStore_File(t *testing.T) {
	store, file := storeIn(t, false)
	s, other := newSite(t), newSite(t)
	_, ok, err := store.Load(s.url)
	require.NoError(t, err)
	require.False(t, ok)
	for _, l := range []signin.Login{s.expired(), other.expired()} {
		where, err := store.Save(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, file, where)
		got, ok, err := store.Load(strings.ToUpper(l.Server[:4]) + l.Server[4:] + "/")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, l, got)
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(filepath.Dir(file))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, os.Chmod(file, 0o644))
	require.NoError(t, store.Remove(t.Context(), s.url))
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "a change puts the mode right")
	_, ok, err = store.Load(s.url)
	require.NoError(t, err)
	require.False(t, ok)
	_, ok, err = store.Load(other.url)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, _, err = store.Load(other.url)
	require.Contains(t, jig.AsError(err).Hint, file)
}

//nolint:paralleltest // there is one keyring
func TestStore_Keyring(t *testing.T) {
	s := newSite(t)
	store, file := storeIn(t, true)
	keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
	where, err := store.Save(t.Context(), s.expired())
	require.NoError(t, err)
	require.Equal(t, file, where)
	keyring.MockInit()
	_, ok, err := store.Load(s.url)
	require.NoError(t, err)
	require.True(t, ok, "the login in the file counts")
	stored := s.expired()
	where, err = store.Save(t.Context(), stored)
	require.NoError(t, err)
	require.Equal(t, signin.InKeyring, where)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(content), "refresh", "the login is in one place only")
	l, ok, err := store.Load(s.url)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, stored, l)
	require.NoError(t, store.Remove(t.Context(), s.url))
	_, err = keyring.Get("jig", s.url)
	require.ErrorIs(t, err, keyring.ErrNotFound)
	_, ok, err = store.Load(s.url)
	require.NoError(t, err)
	require.False(t, ok)
}

// Several processes that find an access token ended renew it once: the provider takes the refresh token once.
//
//nolint:paralleltest // it sets the environment
func TestKeeper_RenewsOnce(t *testing.T) {
	store, _ := storeIn(t, false)
	s := newSite(t)
	_, err := store.Save(t.Context(), s.expired())
	require.NoError(t, err)
	tokens := make([]string, 8)
	var group sync.WaitGroup
	for i := range tokens {
		group.Go(func() {
			own, err := signin.NewStore(false) // as another process has it
			if err == nil {
				tokens[i], _ = signin.NewKeeper(own).Token(t.Context(), s.url) //nolint:errcheck // then the token is empty
			}
		})
	}
	group.Wait()
	for _, token := range tokens {
		require.Equal(t, "access-1", token)
	}
	require.EqualValues(t, 1, s.renewals.Load())
	require.Equal(t, "aud", s.asked[0].Get("audience"))
	l, _, err := store.Load(s.url)
	require.NoError(t, err)
	require.Equal(t, "refresh-1", l.RefreshToken)
	require.NoError(t, l.Revoke(t.Context()))
	require.Equal(t, "refresh-1", *s.revoked.Load())
}

// A refresh token goes to the provider alone, also if that sends the command to another address. The login is kept.
//
//nolint:paralleltest // it sets the environment
func TestKeeper_TokensAreNotSentElsewhere(t *testing.T) {
	store, _ := storeIn(t, false)
	s := newSite(t)
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	s.elsewhere = other.URL
	_, err := store.Save(t.Context(), s.expired())
	require.NoError(t, err)
	_, err = signin.NewKeeper(store).Token(t.Context(), s.url)
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
	require.False(t, reached.Load())
}

//nolint:paralleltest // it sets the environment
func TestKeeper_LoginsThatEnd(t *testing.T) {
	store, _ := storeIn(t, false)
	s := newSite(t)
	keeper := signin.NewKeeper(store)
	for _, address := range []string{s.url, "http://jig.example.com"} {
		token, err := keeper.Token(t.Context(), address)
		require.NoError(t, err)
		require.Empty(t, token)
	}
	_, err := store.Save(t.Context(), s.expired())
	require.NoError(t, err)
	s.broken.Store(true)
	_, err = keeper.Token(t.Context(), s.url)
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err), "the login may still be good")
	s.broken.Store(false)
	s.renewals.Store(7)
	_, err = keeper.Token(t.Context(), s.url)
	require.Equal(t, []string{"NOT_PERMITTED", "login"}, []string{string(jig.CodeOf(err)), jig.AsError(err).Reason})
	require.Contains(t, jig.AsError(err).Hint, "jig login")
	without := s.expired()
	without.RefreshToken = ""
	_, err = store.Save(t.Context(), without)
	require.NoError(t, err)
	_, err = keeper.Token(t.Context(), s.url)
	require.ErrorContains(t, err, "has ended")
	require.NoError(t, without.Revoke(t.Context()))
	require.Nil(t, s.revoked.Load())
}
