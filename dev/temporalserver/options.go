package temporalserver

import (
	"cmp"
	"log/slog"
	"time"
)

// Options say where a server keeps its data and where it listens.
type Options struct {
	// Program is the path of the built module dev/temporal. Required.
	Program string
	// DatabaseURL connects to any database of the PostgreSQL server, as a role that may create databases or owns
	// "temporal" and "temporal_visibility". Required. TCP only.
	DatabaseURL string
	// Address of the frontend, host:port; port 0 picks a free one. Default "127.0.0.1:7233".
	Address string
	// UIAddress of the Web UI, host:port; port 0 picks a free one. Empty leaves the Web UI out.
	UIAddress string
	// Namespace is registered, with jig's search attributes. Default "default".
	Namespace string
	// Retention of closed workflows in Namespace when it is made. Default seven days.
	Retention time.Duration
	// Settings are dynamic configuration, by Temporal's names, and win over ours. Values must be representable in JSON.
	Settings map[string]any
	// Log gets warnings and errors of the server; nil is silent.
	Log *slog.Logger
	// OnFatal is told why the server cannot go on, should that happen after Start. It must not call Stop and wait; nil
	// ignores it.
	OnFatal func(error)
}

// withDefaults fills in what was left empty.
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
