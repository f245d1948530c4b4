package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jig-run/jig"
)

// Serve serves the metrics at /metrics on address until stop is called. If address is empty, it does nothing. Errors name the setting from
// which the address comes.
func (e *exported) Serve(ctx context.Context, setting, address string, logger *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "metrics cannot be served at %s: %w", address, err).WithField(setting).
			WithHint("use a free host:port, e.g. 127.0.0.1:9464; without the setting no metrics are served")
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{ctx: ctx, logger: logger}, ErrorHandling: promhttp.ContinueOnError, Registry: e.registry,
	}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.ErrorContext(ctx, "metrics are no longer served", slog.Any("error", err))
		}
	}()
	logger.InfoContext(ctx, "metrics are served", slog.String("address", listener.Addr().String()))
	return func() {
		_ = server.Close()
		<-served
	}, nil
}

// scrapeLog logs the errors of scrapes that could not read all metrics.
type scrapeLog struct {
	ctx    context.Context //nolint:containedctx // promhttp.Logger passes no context
	logger *slog.Logger
}

func (l scrapeLog) Println(v ...any) {
	l.logger.WarnContext(l.ctx, "a scrape could not read all metrics", slog.Any("error", v))
}
