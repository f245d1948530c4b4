package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/metrics"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/startup"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/telemetry"
	"github.com/jig-run/jig/internal/tenancy/current"
)

// Limits of connections. Those of requests are in internal/httpapi.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// MaxHeader bounds the headers of a request, in bytes.
	MaxHeader = 16 << 10
	// readyTimeout is how long the database and Temporal may take to answer a probe.
	readyTimeout = 3 * time.Second
)

// Server is a running server.
type Server struct {
	settings Settings
	logger   *slog.Logger
	store    *store.DB
	temporal sdk.Client
	metrics  *metrics.Server
	tracing  *telemetry.Tracer
	api      *httpapi.API
	http     *http.Server
	listener net.Listener
	broken   chan error
	// unmeasured ends serving the metrics.
	unmeasured func()
	// beside tracks the background work, and end stops it.
	beside sync.WaitGroup
	end    context.CancelFunc
	stop   sync.Once
}

// Start starts a server and returns once it accepts requests. Its errors are written for the person who configured the server.
func Start(ctx context.Context, s Settings, logger *slog.Logger) (*Server, error) {
	running := &Server{settings: s, logger: logger, broken: make(chan error, 1), end: func() {}, unmeasured: func() {}}
	if err := running.start(ctx); err != nil {
		running.Stop(ctx)
		return nil, err
	}
	return running, nil
}

func (s *Server) start(ctx context.Context) (err error) {
	if err := s.settings.check(); err != nil {
		return err
	}
	if s.store, err = openStore(ctx, s.settings, s.logger); err != nil {
		return err
	}
	s.metrics = metrics.NewServer(func() metrics.Pool { return metrics.Pool(s.store.PoolStats()) })
	temporal := s.settings.Temporal.Temporal
	temporal.MetricsHandler = s.metrics.Temporal()
	temporal.Logger = sdklog.NewStructuredLogger(s.logger)
	if s.tracing, err = telemetry.Start(ctx, s.settings.Tracing, "jig-server", s.logger); err != nil {
		return err
	}
	temporal.ContextPropagators = append(temporal.ContextPropagators, s.tracing.Propagators()...)
	if s.temporal, err = client.DialTemporal(ctx, temporal, 0); err != nil {
		return err
	}
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.settings.Address); err != nil {
		return jig.Errorf(jig.CodeUnavailable, "cannot listen on %s: %w", s.settings.Address, err).WithField(EnvAddress)
	}
	return s.serve(ctx)
}

// serve begins to accept requests, which it answers from the store and through Temporal.
func (s *Server) serve(ctx context.Context) error {
	_, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return fmt.Errorf("the address that the server listens on: %w", err)
	}
	vouches, err := readKey(ctx, s.settings, s.store, s.logger)
	if err != nil {
		return err
	}
	engine := client.New(s.temporal, client.Options{TaskQueue: s.settings.Temporal.TaskQueue, Reader: newReads(s.store, s.logger), Voucher: vouches})
	options := httpapi.Options{
		Engine: httpapi.Engine{
			Asker: engine, Sessions: engine, Calls: engine, Reviews: engine, Governance: engine, Records: engine, Documents: engine, Schedules: engine,
		},
		Credentials: s.store, CredentialLog: s.store, DevLogin: s.settings.DevLogin, PublicURL: s.settings.PublicURL,
		Tenants: tenants(s.store, s.settings), Bundles: s.store, Log: s.store, Installation: s.store.Installation(), Vouches: vouches != nil, Ready: s.ready, Hosts: s.settings.hosts(port),
		Logger: s.logger, Observer: s.metrics, Trace: s.tracing.Handler,
		RatePerKey: s.settings.RatePerKey, RatePerAddress: s.settings.RatePerAddress, StartsPerTenant: s.settings.StartsPerTenant, Proxies: s.settings.Proxies,
		MaxStreams: s.settings.MaxStreams, MaxRequests: s.settings.MaxRequests,
	}
	if len(s.settings.Providers) > 0 {
		options.Providers = openid.New(s.settings.Providers, nil)
	}
	s.api = httpapi.New(options) //nolint:contextcheck // each request has its own
	if s.unmeasured, err = s.metrics.Serve(ctx, EnvMetrics, s.settings.MetricsAddress, s.logger); err != nil {
		s.unmeasured = func() {}
		return err
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.http = &http.Server{
		Handler: s.api.Handler(), ConnState: newIdle(s.settings.Proxies).note, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: MaxHeader,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	if s.settings.TLSCert != "" {
		own, err := loadCertificate(s.settings.TLSCert, s.settings.TLSKey, s.logger)
		if err != nil {
			return err
		}
		s.http.TLSConfig = &tls.Config{GetCertificate: own.forHandshake, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
		s.listener = tls.NewListener(s.listener, s.http.TLSConfig)
	}
	s.beside.Go(func() { s.api.Run(ctx) })
	s.beside.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.broken <- err
		}
	})
	s.logger.InfoContext(ctx, "server ready", slog.String("address", s.listener.Addr().String()), slog.String("url", s.URL()))
	return nil
}

// ready returns an error while requests cannot be served.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.store.Ready(ctx); err != nil {
		return err
	}
	_, err := s.temporal.CheckHealth(ctx, &sdk.CheckHealthRequest{})
	return err //nolint:wrapcheck // it is only logged
}

// URL returns the address of the server: the public one if it is set, else the one that it listens on.
func (s *Server) URL() string {
	switch {
	case s.settings.PublicURL != "":
		return s.settings.PublicURL
	case s.settings.TLSCert != "":
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// Broken returns a channel that receives the error after which the server accepts no more requests.
func (s *Server) Broken() <-chan error { return s.broken }

// Stop accepts no more requests, ends streams, gives other requests time to finish, even if ctx has ended, and closes the connections. It may
// be called again.
func (s *Server) Stop(ctx context.Context) {
	s.stop.Do(func() {
		if s.http != nil {
			s.api.Drain()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.settings.StopTimeout)
			defer cancel()
			if err := s.http.Shutdown(ctx); err != nil {
				s.logger.WarnContext(ctx, "requests were cut off", slog.Any("error", err))
				_ = s.http.Close()
			}
		} else if s.listener != nil {
			_ = s.listener.Close()
		}
		s.end()
		s.beside.Wait()
		s.unmeasured()
		if err := s.tracing.Stop(ctx); err != nil {
			s.logger.WarnContext(ctx, "the last traces were not sent", slog.Any("error", err))
		}
		if s.temporal != nil {
			s.temporal.Close()
		}
		if s.store != nil {
			s.store.Close()
		}
	})
}

// Run runs a server until ctx ends. If PostgreSQL or Temporal does not answer yet, it waits for them.
func Run(ctx context.Context, s Settings, logger *slog.Logger) error {
	var running *Server
	err := startup.Wait(ctx, s.StartTimeout, logger, func(ctx context.Context) (err error) {
		running, err = Start(ctx, s, logger)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer running.Stop(ctx)
	select {
	case err := <-running.Broken():
		return fmt.Errorf("the server cannot continue: %w", err)
	case <-ctx.Done():
		logger.InfoContext(ctx, "server is stopping: requests get time to finish", slog.Duration("at_most", s.StopTimeout))
		return nil
	}
}

// tenants returns the settings of tenants: who has which role, and who is disabled. The secrets that documents name are the workers' alone, so
// what lacks them is not worth a warning.
func tenants(db *store.DB, s Settings) *current.Tenants {
	return current.NewTenants(current.Options{
		Documents: db, Environ: func(string) string { return "" }, Everybody: s.Permissions, Logger: slog.New(slog.DiscardHandler),
	})
}

// OpenAPI returns the OpenAPI document of the server's interface, as indented JSON.
func OpenAPI() ([]byte, error) { return httpapi.Document() }

func openStore(ctx context.Context, s Settings, logger *slog.Logger) (*store.DB, error) {
	if err := s.needsDatabase(); err != nil {
		return nil, err
	}
	return store.Open(ctx, s.DatabaseURL, store.Options{
		MaxConns: s.DatabaseMaxConns, Installation: s.Installation, Setting: EnvDatabaseURL, Logger: logger,
	})
}

// reads answers requests that read, by name, with the functions with which workers answer them. It neither writes nor asks Temporal.
type reads map[string]func(ctx context.Context, request, answer any) error

func newReads(db *store.DB, logger *slog.Logger) reads {
	a := activities.New(activities.Deps{Store: db, Logger: logger})
	answers := reads{}
	for _, answer := range activities.StoreAnswers(a) {
		answers[answer.Name] = answer.Here
	}
	return answers
}

// Read implements [client.Reader].
func (r reads) Read(ctx context.Context, name string, request, answer any) (bool, error) {
	read, ok := r[name]
	if pending, lists := request.(protocol.PendingRequest); !ok || lists && pending.Filter.For != "" { // workers know the groups of people
		return false, nil
	}
	if err := read(ctx, request, answer); err != nil {
		return true, activities.ErrorFrom(err)
	}
	return true, nil
}

// certificateAge is how long a certificate is used before its files are read again.
const certificateAge = time.Minute

// certificate is the server's certificate with its key. It rereads the files from time to time, so that a renewed certificate takes effect without a
// restart.
type certificate struct {
	file, keyFile string
	logger        *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	readAt  time.Time
}

// loadCertificate reads a certificate and its key from PEM files. It returns an error if they cannot be used.
func loadCertificate(file, keyFile string, logger *slog.Logger) (*certificate, error) {
	pair, err := tls.LoadX509KeyPair(file, keyFile)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the certificate cannot be used: %w", err).WithField(EnvTLSCert)
	}
	return &certificate{file: file, keyFile: keyFile, logger: logger, current: &pair, readAt: time.Now()}, nil
}

// forHandshake implements GetCertificate of [tls.Config]. While the files cannot be used, for example because only one of them has been replaced, it
// returns the previous certificate.
func (c *certificate) forHandshake(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.readAt) < certificateAge {
		return c.current, nil
	}
	c.readAt = time.Now()
	pair, err := tls.LoadX509KeyPair(c.file, c.keyFile)
	if err != nil {
		c.logger.WarnContext(hello.Context(), "the certificate cannot be reread; using the previous one", slog.Any("error", err))
		return c.current, nil
	}
	c.current = &pair
	return c.current, nil
}
