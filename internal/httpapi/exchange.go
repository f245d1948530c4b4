package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/openid"
)

// Limits of requests. The server limits headers and the time in which they arrive.
const (
	// MaxBody bounds the body of a request, in bytes.
	MaxBody = 1 << 20
	// bodyTimeout is how long a body may take to arrive.
	bodyTimeout = 20 * time.Second
	// answerTimeout is how long an answer may take, not counting streams. It is longer than the longest wait that a client may ask for.
	answerTimeout = 2 * time.Minute
	// statusClosed is counted for a client that has gone before it got an answer, as proxies do.
	statusClosed = 499
)

// Names of headers.
const (
	headerRequestID = "X-Request-Id"
	headerKey       = "Idempotency-Key"
	headerLastEvent = "Last-Event-ID"
)

// exchange is one request with what is known about it.
type exchange struct {
	id      string
	request *http.Request
	// body holds what was read of the request's body, for [exchange.values].
	body bytes.Buffer
	// operation is the id of the operation, once its credential is checked.
	operation string
	// waited is how long the client asked to wait and did, and streams says that the answer is a stream.
	waited  time.Duration
	streams bool
	// place is the request's place among all requests, and stream that of the stream which answers it; nil if it has none. release ends the
	// context that belongs to place.
	place, stream *lease
	release       func()
	// caller is who the request acts for, once its credential was checked, and scope is the scope that the operation needs.
	caller caller
	scope  string
}

type exchangeKey struct{}

// exchangeOf returns the exchange of a request's context. Outside of a request it is empty.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// Handler returns the handler of all requests.
func (a *API) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		x := &exchange{id: "req_" + strings.ToLower(rand.Text())}
		ctx := context.WithValue(r.Context(), exchangeKey{}, x)
		ctx = identity.WithAddress(ctx, a.addressOf(r))
		r = r.WithContext(ctx)
		r.Body = recorded{io.TeeReader(r.Body, &x.body), r.Body}
		x.request = r
		answer := &recorder{ResponseWriter: w, exchange: x, pool: a.requests}
		defer a.finish(ctx, answer, x, began)
		defer a.leave(x)
		a.protect(answer, x.id)
		control := http.NewResponseController(answer)
		_ = control.SetWriteDeadline(began.Add(answerTimeout)) //nolint:errcheck // not every writer has deadlines
		if r.ContentLength != 0 {                              // huma ends the deadline when it has read the body
			_ = control.SetReadDeadline(began.Add(bodyTimeout)) //nolint:errcheck // not every reader has deadlines
		}
		if !a.expects(r) {
			a.options.Observer.Refused(refusedHost)
			a.refuse(answer, r, failed(http.StatusMisdirectedRequest, invalid("this server does not serve the host of the request").
				WithHint("use the address in JIG_PUBLIC_URL")))
			return
		}
		if wait := a.byAddress.take(a.addressOf(r), a.options.Now()); wait > 0 && !probe(r) {
			a.options.Observer.Refused(refusedAddress)
			a.refuse(answer, r, tooMany("from this address", wait))
			return
		}
		if !cleanPath(r.URL.Path) {
			a.refuse(answer, r, failed(http.StatusNotFound, notFound()))
			return
		}
		a.routed.ServeHTTP(answer, r)
	})
}

// recorded is a body of which a copy is kept.
type recorded struct {
	io.Reader
	io.Closer
}

// protect sets the headers that every answer has.
func (a *API) protect(w http.ResponseWriter, id string) {
	h := w.Header()
	h.Set(headerRequestID, id)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
}

// expects reports whether the request names a host of this server. Probes may come to any address.
func (a *API) expects(r *http.Request) bool {
	return len(a.options.Hosts) == 0 || probe(r) || slices.Contains(a.options.Hosts, strings.ToLower(r.Host))
}

// cleanPath reports whether a path is one that the mux answers itself. It would answer others with a page that repeats them.
func cleanPath(p string) bool {
	clean := path.Clean(p)
	return strings.HasPrefix(p, "/") && (p == clean || p == clean+"/")
}

// probe reports whether a request asks for the state of the process.
func probe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// finish answers 500 if the request's goroutine panicked, and logs the request. The log has no values of the request.
func (a *API) finish(ctx context.Context, w *recorder, x *exchange, began time.Time) {
	if reason := recover(); reason != nil {
		if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(reason)
		}
		a.options.Logger.ErrorContext(ctx, "a request panicked", slog.String("request_id", x.id), slog.Any("panic", reason), slog.String("stack", string(debug.Stack())))
		if w.status == 0 {
			a.refuse(w, x.request, malformed(http.StatusInternalServerError, nil, nil))
		}
	}
	took, status := time.Since(began)-x.waited, w.status
	if x.streams {
		took = 0
	} else if ctx.Err() != nil {
		took, status = 0, statusClosed
	}
	a.options.Observer.Requested(x.operation, status, took)
	a.options.Logger.InfoContext(ctx, "request", slog.String("request_id", x.id), slog.String("operation", x.request.Pattern), slog.Int("status", status),
		slog.Duration("took", time.Since(began)), slog.String("tenant", x.caller.tenant), slog.String("credential", x.caller.kind),
		slog.String("key", x.caller.id))
}

// recorder remembers the status of an answer, and counts its content until the client has read it.
type recorder struct {
	http.ResponseWriter
	status   int
	exchange *exchange
	pool     *pool
}

// WriteHeader implements [http.ResponseWriter].
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if size := int64(len(b)); size >= largeContent && r.exchange.place != nil && !r.exchange.streams {
		if !r.pool.resize(r.exchange.place, size) {
			panic(http.ErrAbortHandler) // the status was sent already
		}
		defer r.pool.resize(r.exchange.place, -size)
	}
	return r.ResponseWriter.Write(b) //nolint:wrapcheck // it is the caller's writer
}

// Unwrap lets [http.ResponseController] find the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// getProtectedResource returns the identity provider whose tokens the server accepts.
func (a *API) getProtectedResource(_ context.Context, in *api.ProtectedResourceRequest) (api.ProtectedResource, error) {
	if a.options.Providers == nil {
		return api.ProtectedResource{}, jig.Errorf(jig.CodeNotFound, "no identity provider is configured").WithHint("set JIG_OIDC_FILE")
	}
	b, err := a.options.Providers.CommandLine(in.Tenant)
	if err != nil {
		return api.ProtectedResource{}, err
	}
	parameter := b.AudienceParameter
	if parameter == openid.NoParameter {
		parameter = ""
	}
	return api.ProtectedResource{
		Resource: b.Audience, AuthorizationServers: []string{b.Issuer}, BearerMethods: []string{"header"}, Name: "jig",
		CommandLine: api.CommandLine{
			ClientID: b.CommandLineClientID, Scopes: slices.Concat([]string{"openid", "offline_access"}, b.Scopes), AudienceParameter: parameter,
		},
	}, nil
}
