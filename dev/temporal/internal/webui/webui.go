// Package webui serves Temporal's Web UI from this process, for one Temporal frontend without authentication.
package webui

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/temporalio/ui-server/v2/server"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

// Options says where the Web UI listens and what it shows.
type Options struct {
	// Address is the address to listen on, host:port. The port must be free. Required.
	Address string
	// TemporalAddress is the address of Temporal's frontend, host:port. Required.
	TemporalAddress string
	// Namespace is the namespace that is shown first. Required.
	Namespace string
}

// Server is a running Web UI.
type Server struct {
	addr    string
	running *server.Server
	done    chan struct{}
}

// Start serves the Web UI and returns when it answers.
func Start(ctx context.Context, opts Options) (*Server, error) {
	host, service, err := net.SplitHostPort(opts.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %q of the Web UI: %w", opts.Address, err)
	}
	number, err := strconv.Atoi(service)
	if err != nil {
		return nil, fmt.Errorf("the address %q of the Web UI: %w", opts.Address, err)
	}
	s := &Server{addr: opts.Address, done: make(chan struct{})}
	s.running = server.NewServer(server_options.WithConfigProvider(&config.Config{
		TemporalGRPCAddress: opts.TemporalAddress,
		Host:                host,
		Port:                number,
		EnableUI:            true,
		DefaultNamespace:    opts.Namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		CORS:                config.CORS{CookieInsecure: true},
	}))
	go func() {
		defer close(s.done)
		// Start never returns an error: it ends the process if it cannot listen.
		_ = s.running.Start() //nolint:errcheck // see above
	}()
	if err := s.ready(ctx); err != nil {
		s.running.Stop()
		return nil, err
	}
	return s, nil
}

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/healthz", nil)
		if err != nil {
			return fmt.Errorf("the Web UI: %w", err)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
			if err == nil && response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Web UI at %s does not answer: %w (last: %w)", s.addr, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// Stop stops the Web UI and closes open connections.
func (s *Server) Stop(ctx context.Context) error {
	s.running.Stop()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the Web UI: %w", ctx.Err())
	}
}
