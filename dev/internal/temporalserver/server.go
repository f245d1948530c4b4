package temporalserver

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jig-run/jig/dev/internal/port"
)

// startPatience is how long the program may take to get ready.
const startPatience = 2 * time.Minute

// Server is a running Temporal server with its Web UI.
type Server struct {
	opts    Options
	config  config
	process *process
}

// Start starts the program, which creates missing databases and tables, the namespace and its search attributes, and returns when
// all of them can be used. If a port is in use, the error is a *port.TakenError.
func Start(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	cfg, err := configure(ctx, opts)
	if err != nil {
		return nil, err
	}
	p, err := spawn(ctx, opts, cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, config: cfg, process: p}
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.process.kill())
	}
	go s.watch(context.WithoutCancel(ctx))
	return s, nil
}

// ready waits until the program reports that it has started, and until the frontend answers.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	r, err := s.process.next(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("start Temporal: %w", err)
	case r.Taken != "":
		return fmt.Errorf("start Temporal: %w", &port.TakenError{Addr: r.Taken})
	case !r.Ready:
		return fmt.Errorf("start Temporal: %s", r.Failed)
	}
	return usable(ctx, dialable(s.config.Frontend), s.opts)
}

// watch calls OnFatal if the server cannot continue, until its process has ended.
func (s *Server) watch(ctx context.Context) {
	for {
		r, err := s.process.next(ctx)
		switch {
		case err == nil && r.Failed != "":
			s.opts.OnFatal(errors.New(r.Failed))
		case err != nil && !s.process.asked.Load():
			s.opts.OnFatal(err)
		}
		if err != nil {
			return
		}
	}
}

// Address returns the address of the frontend, host:port.
func (s *Server) Address() string { return s.config.Frontend }

// Namespace returns the namespace that was registered.
func (s *Server) Namespace() string { return s.opts.Namespace }

// UI returns the URL of the Web UI, without a slash at its end, or "" without a Web UI.
func (s *Server) UI() string {
	if s.config.UI == "" {
		return ""
	}
	return "http://" + s.config.UI
}

// Stop shuts the server down gracefully. If ctx ends first, it kills the server and returns an error. Calling it again waits again.
func (s *Server) Stop(ctx context.Context) error {
	s.process.signal(syscall.SIGTERM)
	select {
	case <-s.process.exited:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("stop Temporal: %w", ctx.Err()), s.process.kill())
	}
}
