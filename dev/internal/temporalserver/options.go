package temporalserver

import (
	"cmp"
	"log/slog"
	"time"
)

// Options says where a server keeps its data and where it listens.
type Options struct {
	// Program is the path of the built module dev/temporal. Required.
	Program string
	// DatabaseURL connects to any database of the PostgreSQL server, as a role that may create databases or owns
	// "temporal" and "temporal_visibility". Required. TCP only.
	DatabaseURL string
	// Address is the address of the frontend, host:port; port 0 picks a free port. Default "127.0.0.1:7233".
	Address string
	// UIAddress is the address of the Web UI, host:port; port 0 picks a free port. If it is empty, there is no Web UI.
	UIAddress string
	// Namespace is the namespace to register, with jig's search attributes. Default "default".
	Namespace string
	// Retention is how long closed workflows are kept. It applies only when Namespace is created. Default seven days.
	Retention time.Duration
	// Settings holds dynamic configuration by Temporal's names. It overrides the program's settings. JSON must be able to represent the
	// values.
	Settings map[string]any
	// Log receives the warnings and errors of the server; nil discards them.
	Log *slog.Logger
	// OnFatal is called with the reason if the server cannot continue after Start. It must not call Stop and wait. It may be nil.
	OnFatal func(error)
}

// withDefaults returns the options with defaults for empty fields.
func (o Options) withDefaults() Options {
	o.Address = cmp.Or(o.Address, "127.0.0.1:7233")
	o.Namespace = cmp.Or(o.Namespace, "default")
	o.Retention = cmp.Or(o.Retention, 7*24*time.Hour)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnFatal == nil {
		o.OnFatal = func(error) {}
	}
	return o
}
