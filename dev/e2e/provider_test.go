package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/port"
)

// identityAudience is the audience of the tests' access tokens.
const identityAudience = "https://jig.test"

// openIDProvider is the folder with the identity provider of the tests and its pinned packages.
const openIDProvider = "testdata/openid"

// installed is the folder where the provider's packages are. They are installed once, into the user's cache.
var installed = sync.OnceValues(func() (string, error) {
	sum := sha256.New()
	for _, name := range []string{"package-lock.json", "provider.mjs"} {
		content, err := os.ReadFile(filepath.Join(openIDProvider, name))
		if err != nil {
			return "", err
		}
		sum.Write(content)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "jig", "test-openid-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "test-openid-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := os.CopyFS(fresh, os.DirFS(openIDProvider)); err != nil {
		return "", err
	}
	npm := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir, npm.Stderr = fresh, os.Stderr
	if err := npm.Run(); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil && !os.IsExist(err) { // another process was faster
		if _, there := os.Stat(dir); there != nil {
			return "", err
		}
	}
	return dir, nil
})

// identityProvider is a running identity provider.
type identityProvider struct {
	t   *testing.T
	url string
	// audience is that of its access tokens.
	audience string
}

// newIdentityProvider starts an identity provider whose logins return to an address of a server.
func newIdentityProvider(t *testing.T, server string) *identityProvider {
	t.Helper()
	return newIdentityProviderFor(t, server, identityAudience)
}

// newIdentityProviderFor starts an identity provider for an audience.
func newIdentityProviderFor(t *testing.T, server, audience string) *identityProvider {
	t.Helper()
	dir, err := installed()
	require.NoError(t, err, "the test needs Node.js and npm")
	address, err := port.Claim(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	node := exec.Command("node", "provider.mjs", strings.TrimPrefix(address, "127.0.0.1:"), audience, server+"/v1/login/callback")
	var said strings.Builder
	node.Dir, node.Stdout, node.Stderr = dir, &said, &said
	node.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = node.Process.Kill() //nolint:errcheck // it may have ended
		_ = node.Wait()         //nolint:errcheck // it was killed, which Wait reports
		if t.Failed() {
			t.Logf("the identity provider's output:\n%s", tail(said.String(), 3000))
		}
	})
	p := &identityProvider{t: t, url: "http://" + address, audience: audience}
	require.True(t, eventually(t.Context(), patience, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/.well-known/openid-configuration", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}), "the identity provider is not ready")
	return p
}

// token returns an access token for a person, of the kind that the provider's script lists.
func (p *identityProvider) token(person, kind string) string {
	p.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {p.audience + kind}, "scope": {"api"}}
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+"/token", strings.NewReader(form.Encode()))
	require.NoError(p.t, err)
	request.SetBasicAuth(person, "a-secret-of-a-test")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(p.t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(p.t, http.StatusOK, answer.StatusCode)
	var said struct {
		Token string `json:"access_token"`
	}
	require.NoError(p.t, json.NewDecoder(answer.Body).Decode(&said))
	require.NotEmpty(p.t, said.Token)
	return said.Token
}

// bound writes a file that binds the provider to a tenant, and returns the setting that names it.
func (p *identityProvider) bound(tenant string, more map[string]any) string {
	p.t.Helper()
	binding := map[string]any{
		"issuer": p.url, "audience": p.audience, "tenant": tenant, "client_id": "jig-server", "client_secret_env": "TEST_CLIENT_SECRET",
		"command_line_client_id": "jig-cli",
	}
	for name, value := range more {
		if binding[name] = value; value == nil {
			delete(binding, name)
		}
	}
	text, err := json.Marshal(map[string]any{"bindings": []any{binding}})
	require.NoError(p.t, err)
	file := filepath.Join(p.t.TempDir(), "providers.json")
	require.NoError(p.t, os.WriteFile(file, text, 0o600))
	return "JIG_OIDC_FILE=" + file
}

// clientSecret is the secret of the server's client at the provider.
const clientSecret = "TEST_CLIENT_SECRET=a-secret-of-the-server"
