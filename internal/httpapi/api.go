package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Options configure an [API].
type Options struct {
	Engine Engine
	// Credentials are the API keys, logins and embed tokens, and CredentialLog is the record of what happens with them.
	Credentials   CredentialStore
	CredentialLog CredentialLog
	// Providers check access tokens and log people in; nil if no identity provider is configured.
	Providers Providers
	// DevLogin lets everybody log in as whomever they say they are. It is for a server that only its own machine can reach.
	DevLogin bool
	// PublicURL is the address of the server for browsers; empty means that it follows from the request's host.
	PublicURL string
	Tenants   Tenants
	Bundles   Bundles
	Log       Log
	// Installation is the id of this installation of jig.
	Installation string
	// Vouches reports that the server signs statements about the principals of requests.
	Vouches bool
	// Ready returns an error while requests cannot be served, for /readyz. It needs a time limit of its own.
	Ready func(ctx context.Context) error
	// Hosts are the values of the Host header that are accepted, in lower case. Empty accepts all.
	Hosts []string
	// RatePerKey and RatePerAddress are how many requests a second each API key and each address of clients may make; 0 means no limit.
	RatePerKey, RatePerAddress int
	// StartsPerTenant is how many sessions and calls a second each tenant may start, twice as many at once; 0 means no limit.
	StartsPerTenant int
	// MaxStreams is the maximum number of open streams, and MaxRequests that of all other requests at a time. Tenants share them. Default: 5,000 and
	// 500.
	MaxStreams, MaxRequests int
	// Proxies are the networks of the proxies whose X-Forwarded-For counts. Default: none.
	Proxies []netip.Prefix
	// Observer counts requests. Default: nothing is counted.
	Observer Observer
	// Trace wraps the handler of the operations, to write traces. Default: nothing.
	Trace func(http.Handler) http.Handler
	// Now is the clock of the rate limits and of /readyz. Default: time.Now.
	Now func() time.Time
	// Logger receives a line for each request. Default: slog.Default().
	Logger *slog.Logger
}

// API serves the HTTP interface. [API.Run] must run while it does.
type API struct {
	options Options
	mux     *http.ServeMux
	// routed is mux, wrapped by the option Trace.
	routed http.Handler
	huma   huma.API
	// requests and streams are what is being served.
	requests, streams *pool
	// downloads has room for the artifacts that are being read.
	downloads chan struct{}
	// embeddable has the patterns of the operations that take embed tokens.
	embeddable map[string]bool
	// byKey and byAddress limit the rate of requests, and starts that of what tenants start.
	byKey, byAddress, starts *limiter
	// crossOrigin recognizes requests from pages of others.
	crossOrigin *http.CrossOriginProtection
	// drained is closed when the server stops, so that streams and waiting requests end.
	drained chan struct{}
	drain   sync.Once

	readyMu sync.Mutex
	// notReady says why requests could not be served at readyAt; nil if they could.
	notReady error
	readyAt  time.Time
}

// New returns an API.
func New(o Options) *API {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &API{
		options: o, mux: http.NewServeMux(), drained: make(chan struct{}), downloads: make(chan struct{}, maxDownloads),
		requests: newPool(cmp.Or(o.MaxRequests, maxRequests), maxContent), streams: newPool(cmp.Or(o.MaxStreams, maxStreams), 0),
		byKey: newLimiter(o.RatePerKey), byAddress: newLimiter(o.RatePerAddress), starts: newLimiter(o.StartsPerTenant),
		crossOrigin: http.NewCrossOriginProtection(), embeddable: map[string]bool{},
	}
	if a.routed = a.mux; o.Trace != nil {
		a.routed = o.Trace(a.mux)
	}
	replaceErrors()
	a.huma = humago.New(a.mux, settings())
	a.register()
	a.describeAliases()
	a.serveDocument()
	a.serveAliases()
	a.serveDevLogins()
	a.mux.HandleFunc("GET /healthz", a.health)
	a.mux.HandleFunc("GET /readyz", a.ready)
	a.mux.HandleFunc("OPTIONS /v1/", a.preflight)
	a.mux.HandleFunc("/", a.unknown)
	return a
}

// Drain makes the server not ready and ends streams and waiting requests. Streams tell their clients to connect again.
func (a *API) Drain() { a.drain.Do(func() { close(a.drained) }) }

// health answers as long as the process serves.
func (a *API) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, "application/json", state{"ok"})
}

// state is the answer of the two probes.
type state struct {
	Status string `json:"status"`
}

// ready answers whether requests can be served.
func (a *API) ready(w http.ResponseWriter, r *http.Request) {
	select {
	case <-a.drained:
		a.refuse(w, r, failed(http.StatusServiceUnavailable, unavailable("the server is stopping")))
		return
	default:
	}
	if err := a.isReady(r.Context()); err != nil {
		a.refuse(w, r, failed(http.StatusServiceUnavailable, unavailable("the database or Temporal does not answer")))
		return
	}
	writeJSON(w, http.StatusOK, "application/json", state{"ok"})
}

// readyFor is how long the result of a readiness check is reused, because /readyz is open to everybody.
const readyFor = time.Second

// isReady returns an error if requests cannot be served. Concurrent requests share one check.
func (a *API) isReady(ctx context.Context) error {
	a.readyMu.Lock()
	defer a.readyMu.Unlock()
	if now := a.options.Now(); a.readyAt.IsZero() || now.Sub(a.readyAt) >= readyFor {
		a.notReady = a.options.Ready(context.WithoutCancel(ctx))
		a.readyAt = a.options.Now()
		if a.notReady != nil {
			a.options.Logger.WarnContext(ctx, "the server is not ready", slog.Any("error", a.notReady))
		}
	}
	return a.notReady
}

// unknown answers requests for which there is no operation.
func (a *API) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		a.refuse(w, r, failed(http.StatusNotFound, notFound()))
		return
	}
	p := failed(http.StatusMethodNotAllowed, invalid("this address does not accept the method"))
	for _, method := range allowed {
		p.Headers.Add("Allow", method)
	}
	a.refuse(w, r, p)
}
