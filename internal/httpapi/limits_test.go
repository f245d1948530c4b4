package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/credential"
)

// counts is an observer.
type counts struct {
	mu       sync.Mutex
	requests map[string]int
	refused  map[string]int
	streams  int
}

func newCounts() *counts { return &counts{requests: map[string]int{}, refused: map[string]int{}} }

func (c *counts) Requested(operation string, status int, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[fmt.Sprint(operation, " ", status)]++
}

func (c *counts) Refused(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[reason]++
}

func (c *counts) StreamOpened() { c.move(1) }
func (c *counts) StreamClosed() { c.move(-1) }

func (c *counts) move(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams += by
}

func (c *counts) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams
}

// stopped is a clock that does not go on.
func stopped() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// ask makes a request without a connection, from an address.
func (s *site) ask(address, forwarded, key string) *httptest.ResponseRecorder {
	s.t.Helper()
	request := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/v1/me", nil)
	request.RemoteAddr = address
	if forwarded != "" {
		request.Header.Set("X-Forwarded-For", forwarded)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	s.api.Handler().ServeHTTP(w, request)
	return w
}

// Twice the rate may come at once; the next request is refused, with the time to wait. Each key and each address has its own limit.
func TestRates_AreLimited(t *testing.T) {
	t.Parallel()
	seen := newCounts()
	s := newSiteWith(t, func(o *httpapi.Options) { o.RatePerKey, o.RatePerAddress, o.Observer, o.Now = 1, 3, seen, stopped })
	other := s.keys.add("acme", credential.Scopes()...)
	require.Equal(t, 200, s.ask("192.0.2.1:1", "", s.key).Code)
	require.Equal(t, 200, s.ask("192.0.2.1:2", "", s.key).Code)
	refused := s.ask("192.0.2.1:3", "", s.key)
	require.Equal(t, http.StatusTooManyRequests, refused.Code)
	p := problem(t, reply{refused.Code, refused.Result().Header}, refused.Body.String())
	require.Equal(t, []string{string(jig.CodeRateLimited), "rate"}, []string{p.Code, p.Reason})
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	require.Equal(t, 200, s.ask("192.0.2.1:4", "", other).Code, "another key of the same principal")

	require.Equal(t, 401, s.ask("192.0.2.1:5", "", "").Code)
	require.Equal(t, 401, s.ask("192.0.2.1:5", "", "").Code)
	require.Equal(t, 429, s.ask("192.0.2.1:5", "203.0.113.9", "").Code, "a client cannot name another address")
	require.Equal(t, 401, s.ask("192.0.2.2:5", "", "").Code, "another address")
	require.Equal(t, map[string]int{"rate_of_key": 1, "rate_of_address": 1, "unauthenticated": 3}, seen.refused)
	require.Equal(t, map[string]int{"get-me 200": 3, "get-me 429": 1, " 429": 1, "get-me 401": 3}, seen.requests)
	for range 5 {
		answer, _ := s.send(http.MethodGet, "/healthz", "")
		require.Equal(t, http.StatusOK, answer.StatusCode, "probes have no limit")
	}
}

// A tenant can start so much in a second, with whichever credentials. Other requests, and those of other tenants, are not counted.
func TestRates_OfStarts(t *testing.T) {
	t.Parallel()
	for _, start := range []struct{ path, body string }{
		{"/v1/sessions", `{"agent":"tidy"}`},
		{"/v1/tools/catalog.list/calls", `{"input":{}}`},
		{"/v1/calls", `{"name":"catalog.list"}`},
		{"/v1/schedules/nightly/trigger", ""},
	} {
		seen := newCounts()
		l := &library{}
		s := newSiteWith(t, func(o *httpapi.Options) {
			o.StartsPerTenant, o.Observer, o.Now = 1, seen, stopped
			o.Engine.Calls, o.Engine.Records, o.Engine.Schedules = l, l, l
		})
		s.engine.start = func(client.StartOptions) (client.Started, error) { return client.Started{SessionID: "ses_1"}, nil }
		other, elsewhere := s.keys.add("acme", credential.Scopes()...), s.keys.add("globex", credential.Scopes()...)
		send := func(key string) (reply, string) {
			return s.send(http.MethodPost, start.path, start.body, "Authorization", "Bearer "+key)
		}
		for _, key := range []string{s.key, other} {
			answer, body := send(key)
			require.Equal(t, 2, answer.StatusCode/100, "%s: %s", start.path, body)
		}
		answer, body := send(other)
		require.Equal(t, http.StatusTooManyRequests, answer.StatusCode, body)
		require.Equal(t, "1", answer.Header.Get("Retry-After"))
		p := problem(t, answer, body)
		require.Equal(t, []string{string(jig.CodeRateLimited), "rate"}, []string{p.Code, p.Reason})
		answer, body = send(elsewhere)
		require.Equal(t, 2, answer.StatusCode/100, "%s: %s", start.path, body)
		answer, body = s.send(http.MethodGet, "/v1/me", "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.Equal(t, map[string]int{"rate_of_starts": 1}, seen.refused)
	}
}

// proxies are the networks of the proxies in the tests.
func proxies() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("10.9.0.0/16")}
}

// Behind a proxy, the address is the last one that a proxy has added. IPv6 addresses of one network count as one.
func TestRates_BehindAProxy(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, func(o *httpapi.Options) { o.RatePerAddress, o.Proxies, o.Now = 1, proxies(), stopped })
	for client, want := range map[string][]string{
		"an address":          {"198.51.100.1", "198.51.100.1", "1.2.3.4, 198.51.100.1"},
		"two proxies":         {"198.51.100.7, 10.9.0.3", "1.2.3.4, 198.51.100.7,10.9.4.4", "10.9.0.1, 198.51.100.7"},
		"an address and port": {"198.51.100.2:4711", "198.51.100.2:4712", "198.51.100.2"},
		"a network":           {"2001:db8::1", "2001:db8::2", "[2001:db8:0:0:ff::3]:80"},
		"no address":          {"unknown", "_hidden", "nonsense"},
		"the proxy itself":    {"", "", ""},
	} {
		got := []int{}
		for _, forwarded := range want {
			got = append(got, s.ask("192.0.2.1:1", forwarded, "").Code)
		}
		require.Equal(t, []int{401, 401, 429}, got, client)
	}
	got := []int{}
	for _, forwarded := range []string{"198.51.100.8", "198.51.100.9", "10.9.0.1"} {
		got = append(got, s.ask("192.0.2.77:1", forwarded, "").Code)
	}
	require.Equal(t, []int{401, 401, 429}, got, "somebody else than a proxy")
}

// The server remembers a bounded number of addresses, so that many addresses cannot fill its memory.
func TestRates_AreBounded(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, func(o *httpapi.Options) { o.RatePerAddress, o.Proxies, o.Now = 1, proxies(), stopped })
	forget := func(n int) {
		for i := range n {
			s.ask("192.0.2.1:1", "10."+strconv.Itoa(i>>16)+"."+strconv.Itoa(i>>8&255)+"."+strconv.Itoa(i&255), "")
		}
	}
	for range 3 {
		s.ask("192.0.2.1:1", "198.51.100.1", "")
	}
	require.Equal(t, 429, s.ask("192.0.2.1:1", "198.51.100.1", "").Code)
	forget(20_000)
	require.Equal(t, 401, s.ask("192.0.2.1:1", "198.51.100.1", "").Code, "the oldest of more than 20,000 addresses is forgotten")
}

func (s *site) followTenant() *stream {
	s.t.Helper()
	answer, content := s.open(http.MethodGet, "/v1/events", "", "Accept", "text/event-stream")
	return &stream{bufio.NewScanner(content), answer}
}

// A server has a limited number of open streams, of whatever kind. Another tenant takes the place of the one that has most.
func TestStreams_AreLimited(t *testing.T) {
	t.Parallel()
	seen := newCounts()
	s := newSiteWith(t, func(o *httpapi.Options) { o.MaxStreams, o.Observer = 2, seen })
	s.log.add(jig.EventSessionStarted)
	gives := s.follow()
	gives.until(t, "id: 1")
	stream := s.follow()
	stream.until(t, "id: 1")
	for path, body := range map[string]string{"/v1/sessions/known/events": "", "/v1/events": "", "/v1/tools/file.list/test/stream": `{"input":{}}`} {
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		answer, content := s.send(method, path, body, "Accept", "text/event-stream")
		require.Equal(t, "rate", problem(t, answer, content).Reason, path)
		require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
		require.NotEmpty(t, answer.Header.Get("Retry-After"))
	}
	answer, _ := s.send(http.MethodGet, "/v1/sessions/known/events", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, "a page is no stream")
	first := s.key
	s.key = s.keys.add("globex", credential.Scopes()...)
	s.followTenant().until(t, "event: ready")
	require.Contains(t, gives.rest(t), "retry: 5000")
	require.Equal(t, 3, seen.refused["room"])
	s.key = first
	s.log.add(jig.EventSessionCompleted)
	stream.rest(t)
	for answer.StatusCode = http.StatusTooManyRequests; answer.StatusCode == http.StatusTooManyRequests; { // until the server has noticed
		answer, _ = s.open(http.MethodGet, "/v1/sessions/known/events", "", "Accept", "text/event-stream")
	}
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func TestStreams_AreCounted(t *testing.T) {
	t.Parallel()
	seen := newCounts()
	s := newSiteWith(t, func(o *httpapi.Options) { o.Observer = seen })
	s.log.add(jig.EventSessionStarted)
	stream := s.follow()
	stream.until(t, "id: 1")
	require.Equal(t, 1, seen.open())
	s.log.add(jig.EventSessionCompleted)
	stream.rest(t)
	require.Eventually(t, func() bool { return seen.open() == 0 }, time.Minute, time.Millisecond)
}

// A body that ends before its Content-Length is refused, also if what arrived is valid JSON.
func TestBodies_MayNotEndEarly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := httptest.NewServer(s.api.Handler())
	t.Cleanup(server.Close)
	for _, c := range []struct{ body, says string }{
		{`{"call":"a","undo":true}`, "the body of the request ended early"},
		{`{"call":"a"`, "the body of the request is not valid JSON"},
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "POST /v1/approvals/ses_a/delegate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n%s", s.key, c.body)
		require.NoError(t, err)
		half, ok := conn.(*net.TCPConn)
		require.True(t, ok)
		require.NoError(t, half.CloseWrite())
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.NoError(t, conn.Close())
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, string(text))
		require.Contains(t, string(text), c.says)
	}
}
