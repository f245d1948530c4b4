package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/web"
	"github.com/jig-run/jig/tools/tooltest"
)

type object = map[string]any

type answer struct {
	Status    int
	Headers   map[string]string
	Body      string
	Truncated bool
}

func serve(t *testing.T, handler http.HandlerFunc) (string, *tooltest.Kit) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, tooltest.New(t, web.Tools(web.Options{AllowLoopback: true})...)
}

func TestGet_ReturnsTheBody(t *testing.T) {
	t.Parallel()
	address, kit := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
			_, _ = fmt.Fprint(w, "caf\xe9")
		case "/large":
			_, _ = fmt.Fprint(w, strings.Repeat("é", web.MaxBody))
		case "/binary":
			_, _ = fmt.Fprint(w, "\x89PNG\x00\xff")
		case "/hop":
			http.Redirect(w, r, "/echo", http.StatusFound)
		default:
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("X-Long", strings.Repeat("x", 5000))
			_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("Accept-Language"), r.UserAgent())
		}
	})
	get := func(path string) (got answer) {
		kit.Succeed("http.get", object{"url": address + path, "headers": object{"accept-language": "k"}}, &got)
		return got
	}
	got := get("/echo")
	require.Equal(t, http.StatusOK, got.Status)
	require.Equal(t, "GET k jig", got.Body)
	require.NotContains(t, got.Headers, "Set-Cookie")
	require.Len(t, got.Headers["X-Long"], 1024)
	require.Equal(t, http.StatusNotFound, get("/missing").Status)
	require.Equal(t, "café", get("/latin").Body)
	require.Equal(t, "GET k jig", get("/hop").Body)
	got = get("/large")
	require.True(t, got.Truncated)
	require.Len(t, got.Body, web.MaxBody)
	e := kit.Fail("http.get", object{"url": address + "/binary"})
	require.Equal(t, "binary_body", e.Reason)
}

func TestRequest_IsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	address, open := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	guarded := tooltest.New(t, web.Tools(web.Options{})...)
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	tests := map[string]struct {
		kit    *tooltest.Kit
		input  object
		code   jig.Code
		reason string
	}{
		"loopback":      {guarded, object{"url": address}, jig.CodeNotPermitted, "address_not_allowed"},
		"mapped":        {guarded, object{"url": "http://[::ffff:127.0.0.1]:" + parsed.Port()}, jig.CodeNotPermitted, "address_not_allowed"},
		"decimal":       {guarded, object{"url": "http://0.0.0.0:" + parsed.Port()}, jig.CodeNotPermitted, "address_not_allowed"},
		"name":          {guarded, object{"url": "http://localhost:" + parsed.Port()}, jig.CodeNotPermitted, "address_not_allowed"},
		"metadata":      {open, object{"url": "http://169.254.169.254/latest"}, jig.CodeNotPermitted, "address_not_allowed"},
		"private":       {open, object{"url": "http://10.0.0.1/"}, jig.CodeNotPermitted, "address_not_allowed"},
		"private IPv6":  {open, object{"url": "http://[fd00::1]/"}, jig.CodeNotPermitted, "address_not_allowed"},
		"file":          {open, object{"url": "file:///etc/passwd"}, jig.CodeInvalidInput, ""},
		"ftp":           {open, object{"url": "ftp://example.com/"}, jig.CodeInvalidInput, ""},
		"no host":       {open, object{"url": "http:///x"}, jig.CodeInvalidInput, ""},
		"relative":      {open, object{"url": "/x"}, jig.CodeInvalidInput, ""},
		"not a URL":     {open, object{"url": "http://[::1"}, jig.CodeInvalidInput, ""},
		"credentials":   {open, object{"url": "http://ana:secret@" + parsed.Host}, jig.CodeInvalidInput, ""},
		"host header":   {open, object{"url": address, "headers": object{"host": "x"}}, jig.CodeInvalidInput, "header_refused"},
		"key header":    {open, object{"url": address, "headers": object{"idempotency-key": "x"}}, jig.CodeInvalidInput, "header_refused"},
		"hop header":    {open, object{"url": address, "headers": object{"Proxy-Authorization": "x"}}, jig.CodeInvalidInput, "header_refused"},
		"other header":  {open, object{"url": address, "headers": object{"X-RGF0YSBvZiB0aGUgdGVuYW50": "a page"}}, jig.CodeInvalidInput, "header_refused"},
		"same header":   {open, object{"url": address, "headers": object{"Accept": "a", "aCCept": "a"}}, jig.CodeInvalidInput, "header_refused"},
		"broken header": {open, object{"url": address, "headers": object{"Accept": "a\r\nY: b"}}, jig.CodeInvalidInput, "header_refused"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := tc.kit.Fail("http.get", tc.input)
			require.Equal(t, tc.code, e.Code, e)
			require.Equal(t, tc.reason, e.Reason)
			require.NotContains(t, e.Error(), "secret")
			tc.input["body"] = object{}
			e = tc.kit.Fail("http.post", tc.input)
			require.Equal(t, tc.code, e.Code)
			require.True(t, e.NotExecuted)
		})
	}
	require.Zero(t, reached.Load())
}

// The name of a header could carry data, and the input of a call is stored, shown and sent to models, so credentials must not be in it. Both are
// refused before the call is recorded.
func TestHeaders_AreAClosedListAtAdmission(t *testing.T) {
	t.Parallel()
	kit := tooltest.New(t, web.Tools(web.Options{AllowLoopback: true})...)
	for _, name := range []string{"Authorization", "authorization", "AUTHORIZATION", "Proxy-Authorization", "proxy-authorization", "Cookie", "cookie", "Cookie2", "X-Api-Key", "", " Accept"} {
		for _, tool := range []string{"http.get", "http.post"} {
			input, err := json.Marshal(object{"url": "http://127.0.0.1:1/", "headers": object{"Accept": "a", name: "Bearer secret"}, "body": "b"})
			require.NoError(t, err)
			if tool == "http.get" {
				input, err = json.Marshal(object{"url": "http://127.0.0.1:1/", "headers": object{name: "Bearer secret"}})
				require.NoError(t, err)
			}
			_, err = kit.Registry.Fill(t.Context(), tool, input, kit.Invocation)
			refused := jig.AsError(err)
			require.Equal(t, jig.CodeInvalidInput, refused.Code, "%s %s", tool, name)
			require.Equal(t, "/headers/"+name, refused.Field)
			require.Contains(t, refused.Hint, "a tool of your own")
			require.NotContains(t, refused.Error(), "secret")
			require.Equal(t, "header_refused", kit.Fail(tool, json.RawMessage(input)).Reason, "also if the input was not checked at admission")
		}
	}
	filled, err := kit.Registry.Fill(t.Context(), "http.post", json.RawMessage(`{"url":"http://a","headers":{"aCCEPT":"<b>"},"body":{"n":1e2,"t":"<&>"}}`), kit.Invocation)
	require.NoError(t, err)
	require.JSONEq(t, `{"url":"http://a","headers":{"Accept":"<b>"},"body":{"n":1e2,"t":"<&>"}}`, string(filled), "everything else stays as it was")
	tool, _ := kit.Registry.Tool("http.get")
	require.Contains(t, string(tool.InputSchema), `"If-None-Match"`, "the schema has the names, so that they are no data")
}

func TestAllowHosts_ReachesOnlyThose(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	kit := tooltest.New(t, web.Tools(web.Options{AllowHosts: []string{"LOCALHOST:" + port}})...)
	kit.Succeed("http.get", object{"url": "http://localhost:" + port}, nil)
	require.Equal(t, "address_not_allowed", kit.Fail("http.get", object{"url": server.URL}).Reason)
	require.Equal(t, "address_not_allowed", kit.Fail("http.get", object{"url": "http://localhost:" + port + "/away"}).Reason)
}

func TestRedirects_AreChecked(t *testing.T) {
	t.Parallel()
	other, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%q %q %q", r.Header.Get("If-Match"), r.Header.Get("Authorization"), r.Header.Get("Accept"))
	})
	address, kit := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/hops/%d", &n); {
		case err == nil && n > 0:
			http.Redirect(w, r, fmt.Sprintf("/hops/%d", n-1), http.StatusFound)
		case r.URL.Path == "/other":
			http.Redirect(w, r, other, http.StatusTemporaryRedirect)
		case r.URL.Path == "/inside":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case r.URL.Path == "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}
	})
	kit.Succeed("http.get", object{"url": address + "/hops/5"}, nil)
	require.Equal(t, "too_many_redirects", kit.Fail("http.get", object{"url": address + "/hops/6"}).Reason)
	require.Equal(t, "address_not_allowed", kit.Fail("http.get", object{"url": address + "/inside"}).Reason)
	require.Equal(t, "redirect_refused", kit.Fail("http.get", object{"url": address + "/file"}).Reason)
	var got answer
	secrets := object{"If-Match": "k", "Accept": "text/html"}
	kit.Succeed("http.get", object{"url": address + "/other", "headers": secrets}, &got)
	require.Equal(t, `"" "" "text/html"`, got.Body)
	kit.Succeed("http.post", object{"url": address + "/other", "headers": secrets, "body": "x"}, &got)
	require.Equal(t, http.StatusTemporaryRedirect, got.Status, "the redirect of a POST is not followed")
	require.Equal(t, other, got.Headers["Location"])
}

func TestPost_SendsTheBody(t *testing.T) {
	t.Parallel()
	address, kit := serve(t, func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/binary" {
			_, _ = fmt.Fprint(w, "\x00\x01")
			return
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(w, "%s|%s|%s|%s", r.Method, r.Header.Get("Content-Type"), r.Header.Get("Idempotency-Key"), content)
	})
	post := func(path, body string, headers object) (got answer) {
		kit.Succeed("http.post", object{"url": address + path, "body": json.RawMessage(body), "headers": headers}, &got)
		return got
	}
	require.Equal(t, answer{Status: 409, Body: `POST|application/json|ses_test/1.1|{"a":[1]}`}, strip(post("/", `{"a":[1]}`, object{})))
	require.Equal(t, `POST|application/json|ses_test/1.1|null`, post("/", `null`, object{}).Body)
	require.Equal(t, `POST|text/plain; charset=utf-8|ses_test/1.1|a "b"`, post("/", `"a \"b\""`, object{}).Body)
	require.Equal(t, `POST|text/csv|ses_test/1.1|a,b`, post("/", `"a,b"`, object{"content-type": "text/csv"}).Body)
	got := post("/binary", `1`, object{})
	require.Equal(t, answer{Status: 200, Truncated: true}, strip(got), "the request was sent, so this is not a failure")
	e := kit.Fail("http.post", object{"url": address, "body": strings.Repeat("x", web.MaxRequestBody+1)})
	require.Equal(t, "/body", e.Field)
	require.True(t, e.NotExecuted)
	tool, _ := kit.Registry.Tool("http.post")
	require.Equal(t, jig.PermissionWrite, tool.Permission)
	require.Equal(t, jig.RiskHigh, tool.Risk)
	require.False(t, tool.Idempotent)
}

func strip(a answer) answer { a.Headers = nil; return a }

func TestPost_MayHaveArrived(t *testing.T) {
	t.Parallel()
	var received atomic.Int32
	arrived := make(chan struct{}, 1)
	hijack := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	address, kit := serve(t, func(w http.ResponseWriter, r *http.Request) {
		received.Add(1)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/reset":
			hijack(w)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = fmt.Fprint(w, "half")
			_ = http.NewResponseController(w).Flush()
			hijack(w)
		case "/hang":
			arrived <- struct{}{}
			<-r.Context().Done()
		}
	})
	kit.Succeed("http.post", object{"url": address + "/", "body": 1}, nil)
	e := kit.Unknown("http.post", object{"url": address + "/reset", "body": 1})
	require.Equal(t, jig.CodeUnavailable, e.Code)
	require.False(t, e.NotExecuted)
	require.Equal(t, int32(2), received.Load(), "nothing is sent twice")

	var got answer
	kit.Succeed("http.post", object{"url": address + "/cut", "body": 1}, &got)
	require.Equal(t, answer{Status: 200, Body: "half", Truncated: true}, strip(got))
	require.Equal(t, jig.CodeUnavailable, kit.Fail("http.get", object{"url": address + "/cut"}).Code)

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	e = kit.Run(ctx, "http.post", object{"url": address + "/hang", "body": 1}).Error
	require.Equal(t, jig.CodeCanceled, e.Code)
	require.False(t, e.NotExecuted)
}

func TestGet_NobodyListens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	kit := tooltest.New(t, web.Tools(web.Options{AllowLoopback: true})...)
	e := kit.Fail("http.post", object{"url": address + "/?key=secret", "body": 1})
	require.Equal(t, jig.CodeUnavailable, e.Code)
	require.True(t, e.NotExecuted)
	require.NotContains(t, e.Error(), "secret")
	e = kit.Fail("http.get", object{"url": "http://nothing.invalid/"})
	require.Equal(t, jig.CodeUnavailable, e.Code)
}

func TestPost_PreviewShowsTheRequestAndSendsNothing(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	address, kit := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	host := strings.TrimPrefix(address, "http://")
	p := kit.Preview("http.post", object{"url": address + "/pay", "body": object{"amount": 7}, "headers": object{"If-Match": "7"}})
	require.Equal(t, "Sends 12 bytes to "+host, p.Title, "%+v", p)
	require.Equal(t, []string{
		"POST " + address + "/pay", "Content-Type: application/json", "If-Match: 7", "User-Agent: jig", "body\n+{\"amount\":7}",
	}, p.Changes)
	require.Empty(t, p.Precondition, "nobody knows what the other system will do")
	require.Contains(t, kit.Preview("http.post", object{"url": "ftp://example.com", "body": "x"}).Missing, "only http and https")
	require.Zero(t, reached.Load())
}
