package e2e_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/dev/internal/port"
)

const operationsPage = "docs/operations.md"

// proxied are the parts of the section about a proxy: the settings of a server, the proxy's configuration, the commands and what they print.
func proxied(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, f := range codeBlocks(t, operationsPage) {
		if f.section == "Two servers behind a proxy" {
			require.Empty(t, found[f.language], "the section has two blocks of this language")
			found[f.language] = f.body
		}
	}
	require.Len(t, found, 4)
	return found
}

// Two servers with the settings of the page work behind a proxy with its configuration: streams arrive at once, and continue on the other server
// when one is stopped.
func TestOperationsPage_TwoServersBehindAProxy(t *testing.T) {
	t.Parallel()
	parts := proxied(t)
	d := startEnv(t)
	front, err := port.Claim(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	d.env = append(d.env, "JIG_URL=http://"+front)
	var servers []*serverProcess
	var addresses []string
	for range 2 {
		address, err := port.Claim(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		settings := strings.Fields(strings.NewReplacer("10.0.0.11:8480", address, "10.0.0.5", "127.0.0.1", "https://jig.example.com", "http://"+front).Replace(parts["ini"]))
		servers, addresses = append(servers, d.serveAt(address, settings...)), append(addresses, address)
	}
	proxy(t, front, addresses, parts["nginx"])
	c := apiClient{&serverProcess{t: t, url: "http://" + front}, d.apiKey(jig.DefaultTenant, everything()...)}
	d.env = append(d.env, "JIG_API_KEY="+c.key)
	page := func() {
		got := d.command("sh", "-ec", parts["sh"])
		require.Zero(t, got.code, got.err)
		require.Equal(t, parts["text"], got.out)
	}
	page()
	direct := apiClient{servers[0], c.key}
	answer, body := direct.send(http.MethodGet, "/v1/me", nil)
	require.Equal(t, http.StatusMisdirectedRequest, answer.StatusCode, "a request past the proxy names another host: %s", body)

	id := "p-" + d.name
	started, body := c.send(http.MethodPost, "/v1/sessions", map[string]any{"id": id, "document": writer()})
	require.Equal(t, http.StatusCreated, started.StatusCode, string(body))
	asked := c.waits(id)
	streams := []*eventReader{c.follow(id, 0), c.follow(id, 0)} // the proxy spreads them
	seen := make([]int64, len(streams))
	read := func(i int) bool {
		event, more := streams[i].next()
		if more {
			seen[i]++
			require.Equal(t, seen[i], event.Seq)
		}
		return more
	}
	for i := range streams {
		require.True(t, read(i), "the proxy does not hold events back")
	}
	require.NoError(t, servers[0].cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, servers[0].cmd.Wait())
	page()
	decided, body := c.send(http.MethodPost, "/v1/approvals/"+id+"/decision", map[string]any{"call": asked.Call, "answer": "approve", "digest": asked.Digest})
	require.Equal(t, http.StatusOK, decided.StatusCode, string(body))
	for i := range streams {
		for {
			for read(i) { // until the stream ends
			}
			if streams[i] = c.follow(id, seen[i]); streams[i].answer.StatusCode == http.StatusNoContent {
				break
			}
			require.Equal(t, http.StatusOK, streams[i].answer.StatusCode)
		}
		require.Len(t, d.events(id), int(seen[i]))
	}
}

// proxy runs nginx with the page's configuration, for other addresses and without TLS. Where nginx is not installed, a proxy of the standard
// library takes its place.
func proxy(t *testing.T, front string, servers []string, configuration string) {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		goProxy(t, front, servers)
		return
	}
	_, number, err := net.SplitHostPort(front)
	require.NoError(t, err)
	configuration = strings.NewReplacer("10.0.0.11:8480", servers[0], "10.0.0.12:8480", servers[1], "listen 443 ssl", "listen 127.0.0.1:"+number,
		"server_name jig.example.com", "server_name 127.0.0.1", "    ssl_certificate", "    # ssl_certificate").Replace(configuration)
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	var temporary strings.Builder
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary.WriteString(name + "_temp_path " + filepath.Join(dir, name) + ";\n")
	}
	whole := "daemon off;\nmaster_process off;\npid " + filepath.Join(dir, "pid") + ";\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n" + temporary.String() + configuration + "}\n"
	require.NoError(t, os.WriteFile(file, []byte(whole), 0o600))
	cmd := exec.Command(program, "-p", dir, "-c", file)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() //nolint:errcheck // it may have ended
		_ = cmd.Wait()         //nolint:errcheck // it was killed, which Wait reports
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("nginx:\n%s", tail(string(text), 4000))
		}
		_ = log.Close()
	})
	require.True(t, eventually(t.Context(), patience, func() bool {
		answer, err := http.Get("http://" + front + "/readyz")
		return err == nil && answer.Body.Close() == nil
	}), "nginx does not answer")
}

// goProxy is a proxy that does what the page asks of one.
func goProxy(t *testing.T, front string, servers []string) {
	t.Helper()
	var turn atomic.Int64
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "jig"})
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			at := int(turn.Add(1))
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, network, servers[at%len(servers)])
			if err != nil { // this one is being replaced
				conn, err = dialer.DialContext(ctx, network, servers[(at+1)%len(servers)])
			}
			return conn, err
		}},
	}
	listener, err := net.Listen("tcp", front)
	require.NoError(t, err)
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: p}}
	s.Start()
	t.Cleanup(s.CloseClientConnections)
}
