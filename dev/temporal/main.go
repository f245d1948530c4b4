// Command temporal runs a Temporal server and, if requested, Temporal's Web UI, for the process that started it. It reads one
// JSON document, [config.Config], from standard input. It writes JSON lines: reports ([config.Report]) to standard output, and
// the log to standard error. SIGTERM shuts it down gracefully. The end of standard input means that the parent is gone, and the
// process exits at once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jig-run/jig/dev/temporal/internal/config"
	"github.com/jig-run/jig/dev/temporal/internal/server"
	"github.com/jig-run/jig/dev/temporal/internal/webui"
)

const (
	exitFailed   = 1
	exitOrphaned = 3
	// stopPatience limits a graceful shutdown. A parent that cannot wait that long kills the process.
	stopPatience = 30 * time.Second
)

func main() {
	cfg, err := config.Read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	go func() {
		// The parent writes nothing after the document, so this returns when the parent has closed the pipe or is gone.
		_, _ = io.Copy(io.Discard, os.Stdin) //nolint:errcheck // a broken pipe means the same as a closed one
		os.Exit(exitOrphaned)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	logger := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	err = run(ctx, cfg, logger)
	stop()
	var taken *takenError
	switch {
	case err == nil:
		return
	case errors.As(err, &taken):
		report(config.Report{Taken: taken.addr})
	default:
		report(config.Report{Failed: err.Error()})
	}
	os.Exit(exitFailed)
}

// report writes a line for the parent. If the parent is gone, this process is about to exit anyway.
func report(r config.Report) {
	_ = json.NewEncoder(os.Stdout).Encode(r) //nolint:errcheck // see above
}

// run starts everything, reports that, and stops everything when ctx ends.
func run(ctx context.Context, cfg config.Config, logger *slog.Logger) error {
	for _, addr := range cfg.Addresses() {
		if err := free(ctx, addr); err != nil {
			return err
		}
	}
	temporal, err := server.Start(ctx, server.Options{
		DatabaseURL: cfg.DatabaseURL,
		Frontend:    cfg.Frontend, History: cfg.History, Matching: cfg.Matching, Worker: cfg.Worker,
		Namespace: server.Namespace{Name: cfg.Namespace, Retention: cfg.Retention, SearchAttributes: cfg.SearchAttributes},
		Settings:  cfg.Settings, Log: logger,
		OnFatal: func(err error) { report(config.Report{Failed: err.Error()}) },
	})
	if err != nil {
		return err
	}
	var ui *webui.Server
	if cfg.UI != "" {
		ui, err = webui.Start(ctx, webui.Options{Address: cfg.UI, TemporalAddress: cfg.Frontend, Namespace: cfg.Namespace})
	}
	if err == nil {
		report(config.Report{Ready: true})
		<-ctx.Done()
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	if ui != nil {
		err = errors.Join(err, ui.Stop(stopping))
	}
	return errors.Join(err, temporal.Stop(stopping))
}

// takenError says that another process listens on an address.
type takenError struct{ addr string }

// Error names the address.
func (e *takenError) Error() string { return e.addr + " is taken by another process" }

// free checks that this process can listen on an address. Temporal and the Web UI do not report well that an address is in use.
func free(ctx context.Context, addr string) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return &takenError{addr: addr}
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	if err := listener.Close(); err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return nil
}
