package temporalserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jig-run/jig/dev/internal/port"
)

// config is the document that the program reads from standard input; Config in dev/temporal/internal/config describes the fields.
type config struct {
	DatabaseURL      string            `json:"database_url"`
	Frontend         string            `json:"frontend"`
	History          string            `json:"history"`
	Matching         string            `json:"matching"`
	Worker           string            `json:"worker"`
	UI               string            `json:"ui,omitempty"`
	Namespace        string            `json:"namespace"`
	Retention        time.Duration     `json:"retention"`
	SearchAttributes map[string]string `json:"search_attributes"`
	Settings         map[string]any    `json:"settings,omitempty"`
	LogLevel         slog.Level        `json:"log_level"`
}

// report is a line of the program's standard output; Report in dev/temporal/internal/config describes the fields.
type report struct {
	Ready  bool   `json:"ready"`
	Taken  string `json:"taken"`
	Failed string `json:"failed"`
}

// configure picks the ports and returns the document for the program.
func configure(ctx context.Context, opts Options) (config, error) {
	cfg := config{
		DatabaseURL: opts.DatabaseURL, Frontend: opts.Address, History: "127.0.0.1:0", Matching: "127.0.0.1:0",
		Worker: "127.0.0.1:0", UI: opts.UIAddress, Namespace: opts.Namespace, Retention: opts.Retention,
		SearchAttributes: searchAttributes(),
		Settings:         make(map[string]any, len(opts.Settings)), LogLevel: lowest(ctx, opts.Log),
	}
	for name, addr := range map[string]*string{
		"Temporal": &cfg.Frontend, "Temporal's history service": &cfg.History, "Temporal's matching service": &cfg.Matching,
		"Temporal's worker service": &cfg.Worker, "the Web UI": &cfg.UI,
	} {
		if *addr == "" {
			continue
		}
		claimed, err := port.Claim(ctx, *addr)
		if err != nil {
			return cfg, fmt.Errorf("the address of %s: %w", name, err)
		}
		*addr = claimed
	}
	for name, value := range opts.Settings {
		if d, ok := value.(time.Duration); ok {
			value = d.String() // Temporal would read a number as seconds
		}
		cfg.Settings[name] = value
	}
	return cfg, nil
}

// lowest returns the lowest of the server's levels that a logger has enabled.
func lowest(ctx context.Context, log *slog.Logger) slog.Level {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if log.Enabled(ctx, level) {
			return level
		}
	}
	return slog.LevelError + 1
}

// dialable returns the address at which this machine reaches a listener. It replaces an unspecified host by the loopback address.
func dialable(addr string) string {
	host, number, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, number)
}
