package server

import (
	"context"
	"fmt"
	"sync"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/temporal"
)

// Server is a running Temporal server.
type Server struct {
	running temporal.Server
	stop    sync.Once
	stopped chan error
}

// Start creates missing databases and tables, and starts the four services. The frontend may need another moment before it answers.
func Start(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	at := opts.addresses()
	main, visibility, err := stores(opts)
	if err != nil {
		return nil, err
	}
	fatal := make(chan error, 1)
	started := make(chan struct{})
	log := logger{slog: opts.Log, fatal: func(err error) {
		select {
		case <-started:
			opts.OnFatal(err)
		case fatal <- err:
		default:
		}
	}}
	if err := setUp(ctx, opts, main, visibility, log); err != nil {
		return nil, err
	}
	cfg, err := configure(ctx, opts, at, main, visibility)
	if err != nil {
		return nil, err
	}
	s := &Server{stopped: make(chan error, 1)}
	if s.running, err = run(ctx, cfg, at, log, fatal, opts.Settings); err != nil {
		return nil, err
	}
	close(started)
	return s, nil
}

// run starts the four services. It runs in a separate goroutine, because a fatal error ends the goroutine in which it happens.
func run(
	ctx context.Context, cfg *config.Config, at addresses, log logger, fatal <-chan error, overrides map[string]any,
) (temporal.Server, error) {
	type outcome struct {
		server temporal.Server
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		server, err := temporal.NewServer(
			temporal.WithConfig(cfg),
			temporal.ForServices(temporal.DefaultServices),
			temporal.WithStaticHosts(at.hosts()),
			temporal.WithLogger(log),
			temporal.WithDynamicConfigClient(settings(overrides)),
			temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
			temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
		)
		if err == nil {
			err = server.Start()
		}
		done <- outcome{server, err}
	}()
	select {
	case out := <-done:
		if out.err != nil {
			return nil, fmt.Errorf("start Temporal: %w", out.err)
		}
		return out.server, nil
	case err := <-fatal:
		return nil, fmt.Errorf("start Temporal: %w", err)
	case <-ctx.Done():
		return nil, fmt.Errorf("start Temporal: %w", ctx.Err())
	}
}

// Stop stops the server. It waits until everything has ended or ctx ends; calling it again waits again.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		go func() {
			s.stopped <- s.running.Stop()
			close(s.stopped)
		}()
	})
	select {
	case err := <-s.stopped:
		if err != nil {
			return fmt.Errorf("stop Temporal: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop Temporal: %w", ctx.Err())
	}
}
