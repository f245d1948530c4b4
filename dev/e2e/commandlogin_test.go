package e2e_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/dev/internal/port"
)

// browserUser is a person whose browser the commands open.
type browserUser struct {
	t      *testing.T
	p      *identityProvider
	person string
	// address is the file to which the commands' browser writes where it shall go.
	address string
}

// openBrowser gives the commands of an environment a browser, and a person who signs in with it.
func (d *testEnv) openBrowser(p *identityProvider, person string) browserUser {
	d.t.Helper()
	folder := d.t.TempDir()
	s := browserUser{t: d.t, p: p, person: person, address: filepath.Join(folder, "address")}
	program := filepath.Join(folder, "browser")
	require.NoError(d.t, os.WriteFile(program, []byte("#!/bin/sh\nprintf %s \"$1\" > '"+s.address+".new' && mv '"+s.address+".new' '"+s.address+"'\n"), 0o700))
	d.env = append(d.env, "BROWSER="+program)
	return s
}

// asked waits until a command has opened the browser, and returns the address.
func (s browserUser) asked() string {
	s.t.Helper()
	var address []byte
	require.True(s.t, eventually(s.t.Context(), patience, func() (there bool) {
		var err error
		address, err = os.ReadFile(s.address)
		return err == nil
	}), "no browser was opened")
	require.NoError(s.t, os.Remove(s.address))
	return string(address)
}

// expects signs the person in for the next commands, which open the browser n times.
func (s browserUser) expects(n int) {
	go func() {
		for range n {
			b := newBrowser(s.t)
			b.signIn(s.p, b.open(s.asked()), s.person)
		}
	}()
}

// background runs a command. line returns the first line of its stderr that matches.
func (d *testEnv) background(args ...string) (line func(pattern string) []string, done func() commandResult) {
	d.t.Helper()
	cmd := exec.Command(shared.cli.path(d.t), args...)
	cmd.Env, cmd.Dir = d.env, d.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var mu sync.Mutex
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = lockedBuilder{&mu, &out}, lockedBuilder{&mu, &errs}
	require.NoError(d.t, cmd.Start())
	line = func(pattern string) (found []string) {
		d.t.Helper()
		require.True(d.t, eventually(d.t.Context(), patience, func() bool {
			mu.Lock()
			defer mu.Unlock()
			found = regexp.MustCompile(pattern).FindStringSubmatch(errs.String())
			return found != nil
		}), pattern)
		return found
	}
	return line, func() commandResult {
		_ = cmd.Wait() //nolint:errcheck // the exit code says it
		return commandResult{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
	}
}

// lockedBuilder is a builder that several goroutines use.
type lockedBuilder struct {
	mu *sync.Mutex
	b  *strings.Builder
}

func (w lockedBuilder) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// commandLoginTenant starts a server whose address is the audience of a provider's tokens, and an environment without credentials. logins is the file of its
// logins.
func commandLoginTenant(t *testing.T) (o tenantEnv, p *identityProvider, server *serverProcess, logins string) {
	t.Helper()
	o = joinTenantEnv(t)
	address, err := port.Claim(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	p = newIdentityProviderFor(t, "http://"+address, "http://"+address)
	server = o.serveAt(address, p.bound(o.tenant, nil), clientSecret)
	home := t.TempDir()
	o.env = append(o.env, "JIG_URL="+server.url, "JIG_API_KEY=", "JIG_TENANT=", "JIG_PRINCIPAL=", "JIG_KEYRING=off", "HOME="+home, "XDG_CONFIG_HOME="+home)
	logins = filepath.Join(home, "jig", "logins.json")
	if runtime.GOOS == "darwin" {
		logins = filepath.Join(home, "Library", "Application Support", "jig", "logins.json")
	}
	return o, p, server, logins
}

// commandLogin is the part of a stored login that the tests look at.
type commandLogin struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
}

// stored returns the login at a server in a file of logins.
func stored(t *testing.T, file, server string) (login commandLogin) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	all := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(text, &all))
	require.Contains(t, all, server)
	require.NoError(t, json.Unmarshal(all[server], &login))
	return login
}

// A person logs the command line in with the browser at a real identity provider, works, and logs out.
func TestCommandLogin_WithABrowser(t *testing.T) {
	t.Parallel()
	o, p, server, logins := commandLoginTenant(t)
	got := o.jig("whoami")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, "jig login")

	person := o.openBrowser(p, "ana")
	_, done := o.background("login", "--output", "json")
	address := person.asked()
	asked, err := url.Parse(address)
	require.NoError(t, err)
	back := asked.Query().Get("redirect_uri")
	forged := newBrowser(t).open(back + "?code=stolen&state=wrong")
	require.Equal(t, http.StatusBadRequest, forged.status, "an answer with another state is refused")
	b := newBrowser(t)
	seen := b.signIn(p, b.open(address), "ana")
	require.Contains(t, seen.body, "close this page")
	got = done()
	require.Zero(t, got.code, got.err)
	var said struct{ Server, Tenant, Principal, Name, Stored string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &said))
	require.Equal(t, []string{server.url, o.tenant, p.url + "#ana", "Ana Ferreira", logins}, []string{said.Server, said.Tenant, said.Principal, said.Name, said.Stored})
	info, err := os.Stat(logins)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	me := o.jig("whoami", "--output", "json")
	require.Zero(t, me.code, me.err)
	require.Contains(t, me.out, `"kind":"access_token"`)
	require.Contains(t, me.out, `"principal":"`+p.url+`#ana"`)
	o.env = append(o.env, "JIG_API_KEY="+o.apiKey(o.tenant))
	me = o.jig("whoami", "--output", "json")
	require.Contains(t, me.out, `"kind":"api_key"`, "an API key wins")
	o.env = append(o.env, "JIG_API_KEY=")

	// The token is for this server alone.
	login := stored(t, logins, server.url)
	require.Equal(t, p.url+"#ana", get[whoami](apiClient{server, login.AccessToken}, "/v1/me").Principal)
	other := o.serve(p.bound(o.tenant, map[string]any{"audience": p.audience + "/other"}), clientSecret)
	apiClient{other, login.AccessToken}.refuses("a token for another server")
	got = o.jig("login", "--url", other.url)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "--audience")

	got = o.jig("logout")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "logged out of "+server.url+"\n", got.out)
	text, err := os.ReadFile(logins)
	require.NoError(t, err)
	require.NotContains(t, string(text), login.RefreshToken)
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {login.RefreshToken}, "client_id": {"jig-cli"}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/token", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusBadRequest, answer.StatusCode, "the provider knows that the login has ended")
	require.Equal(t, 2, o.jig("whoami").code)
}

// A person without a browser on the machine logs in on another device. Access tokens that end are renewed without anybody.
func TestCommandLogin_WithADevice(t *testing.T) {
	t.Parallel()
	o, p, _, logins := commandLoginTenant(t)
	audience := p.audience + "/brief" // its tokens end after two seconds
	server := o.serve(p.bound(o.tenant, map[string]any{"audience": audience}), clientSecret)
	o.env = append(o.env, "JIG_URL="+server.url, "BROWSER=", "DISPLAY=", "WAYLAND_DISPLAY=")
	line, done := o.background("login", "--audience", audience, "--output", "json")
	code := line(`open (\S+) and enter the code (\S+)`)
	b := newBrowser(t)
	for seen := b.submit(b.open(code[1]), "user_code", code[2]); strings.Contains(seen.body, "<form"); {
		fields := []string{}
		if strings.Contains(seen.body, `name="login"`) {
			fields = []string{"login", "ana", "password", "x"}
		}
		seen = b.submit(seen, fields...)
	}
	got := done()
	require.Zero(t, got.code, got.err)

	first := stored(t, logins, server.url)
	old := apiClient{server, first.AccessToken}
	require.True(t, eventually(t.Context(), patience, func() bool {
		answer, _ := old.send(http.MethodGet, "/v1/me", nil)
		return answer.StatusCode == http.StatusUnauthorized
	}), "the first access token has ended")
	got = o.jig("whoami", "--output", "json")
	require.Zero(t, got.code, got.err)
	var me whoami
	require.NoError(t, json.Unmarshal([]byte(got.out), &me))
	require.Equal(t, p.url+"#ana", me.Principal)
	second := stored(t, logins, server.url)
	require.NotEqual(t, first.AccessToken, second.AccessToken)
	require.NotEqual(t, first.RefreshToken, second.RefreshToken)

	// A login that ends at the provider ends here.
	form := url.Values{"token": {second.RefreshToken}, "client_id": {"jig-cli"}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/token/revocation", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	got = o.jig("whoami", "--output", "json")
	require.Equal(t, 1, got.code, got.err)
	var failure struct{ Error jig.Error }
	require.NoError(t, json.Unmarshal([]byte(got.err), &failure))
	require.Contains(t, failure.Error.Hint, "jig login")
}
