package tools_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// failing returns a transport whose dials fail with an error, except those to a host that up names.
func failing(err error, up ...string) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, host := range up {
			if strings.HasSuffix(host, address) {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
		}
		return nil, err
	}}
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// hangUp reads a request and resets its connection.
func hangUp(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(r.Body); err != nil {
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok && tcp.SetLinger(0) != nil {
		return
	}
}

// A tool that is not idempotent makes one request. Only if nothing of it was sent is it certain that nothing happened.
func TestTransport_SaysThatNothingWasSent(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, row := range map[string]struct {
		transport func(t *testing.T) (*http.Transport, string)
		unsent    bool
	}{
		"refused": {func(*testing.T) (*http.Transport, string) {
			return failing(dial(syscall.ECONNREFUSED)), "http://shop.test"
		}, true},
		"unreachable": {func(*testing.T) (*http.Transport, string) {
			return failing(dial(syscall.EHOSTUNREACH)), "http://shop.test"
		}, true},
		"no such host": {func(*testing.T) (*http.Transport, string) {
			return failing(dial(&net.DNSError{Err: "no such host", Name: "shop.test", IsNotFound: true})), "http://shop.test"
		}, true},
		"nobody listens": {func(t *testing.T) (*http.Transport, string) {
			t.Helper()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			require.NoError(t, listener.Close())
			return nil, "http://" + listener.Addr().String()
		}, true},
		"a certificate of somebody else": {func(t *testing.T) (*http.Transport, string) {
			t.Helper()
			server := httptest.NewTLSServer(http.NotFoundHandler())
			t.Cleanup(server.Close)
			server.Config.ErrorLog = nil
			return &http.Transport{}, server.URL
		}, true},
		"TLS with a server that has none": {func(t *testing.T) (*http.Transport, string) {
			t.Helper()
			return &http.Transport{}, strings.Replace(serve(t, http.NotFound), "http:", "https:", 1)
		}, true},
		"reset after the request": {func(t *testing.T) (*http.Transport, string) {
			t.Helper()
			return &http.Transport{}, serve(t, hangUp)
		}, false},
		"refused after a redirect": {func(t *testing.T) (*http.Transport, string) {
			t.Helper()
			address := serve(t, http.RedirectHandler("http://moved.test", http.StatusTemporaryRedirect).ServeHTTP)
			return failing(dial(syscall.ECONNREFUSED), address), address
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport, address := row.transport(t)
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				_, err := send(t.Context(), tools.Transport(transport), method, address)
				require.Error(t, err)
				require.Equal(t, row.unsent, jig.AsError(err).NotExecuted, "%s: %v", method, err)
				if row.unsent {
					require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
				}
			}
		})
	}
}

// send makes a request with a body that may be sent again.
func send(ctx context.Context, transport http.RoundTripper, method, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// What a run of a tool has sent before a request that fails decides whether the call may have had an effect.
func TestTransport_KnowsTheOtherRequestsOfTheRun(t *testing.T) {
	t.Parallel()
	up := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	transport := tools.Transport(failing(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, up))
	for first, unsent := range map[string]bool{http.MethodGet: true, http.MethodHead: true, http.MethodPost: false, http.MethodDelete: false} {
		pay := tools.New(jig.Tool{Name: "shop.pay", Description: "Pays.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}},
			func(ctx context.Context, _ jig.Invocation, _ struct{}) (struct{}, error) {
				if _, err := send(ctx, transport, first, up); err != nil {
					return struct{}{}, err
				}
				_, err := send(ctx, transport, http.MethodPost, "http://down.test")
				return struct{}{}, err
			})
		registry, err := tools.NewRegistry(pay)
		require.NoError(t, err)
		result := registry.Run(t.Context(), "shop.pay", []byte(`{}`), jig.Invocation{})
		require.Equal(t, unsent, result.Error.NotExecuted, "after a %s: %v", first, result.Error)
		result = registry.Run(t.Context(), "shop.pay", []byte(`{}`), jig.Invocation{})
		require.Equal(t, unsent, result.Error.NotExecuted, "another run has sent nothing yet")
	}
}

func TestTransport_EndsBeforeItConnects(t *testing.T) {
	t.Parallel()
	for code, timeout := range map[jig.Code]time.Duration{jig.CodeCanceled: time.Minute, jig.CodeTimeout: time.Millisecond} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		transport := tools.Transport(&http.Transport{DialContext: func(dialing context.Context, _, _ string) (net.Conn, error) {
			if code == jig.CodeCanceled {
				cancel()
			}
			<-dialing.Done()
			return nil, context.Cause(dialing)
		}})
		pay := tools.New(jig.Tool{Name: "shop.pay", Description: "Pays.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}, Timeout: timeout},
			func(ctx context.Context, _ jig.Invocation, _ struct{}) (struct{}, error) {
				_, err := send(ctx, transport, http.MethodPost, "http://slow.test")
				return struct{}{}, err
			})
		registry, err := tools.NewRegistry(pay)
		require.NoError(t, err)
		e := registry.Run(ctx, "shop.pay", []byte(`{}`), jig.Invocation{}).Error
		require.Equal(t, code, e.Code)
		require.True(t, e.NotExecuted, e)
	}
}
