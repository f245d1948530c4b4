package stack

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"time"
)

const (
	// OwnerRole owns the database of jig and runs its migrations.
	OwnerRole = "jig_owner"
	// AppRole is what the worker connects as: bound by row-level security.
	AppRole = "jig_app"
	// temporalRole owns Temporal's databases.
	temporalRole = "temporal"
	// databaseName is jig's own database.
	databaseName = "jig"
)

// Options say what to start, where it listens and where it keeps its data. The zero value keeps data in .jig and picks
// free ports.
type Options struct {
	// DataDir keeps the data, the logs and the lock. Default ".jig".
	DataDir string
	// Fresh removes the data of earlier runs first.
	Fresh bool
	// Ephemeral keeps the data in a temporary folder until Stop; several ephemeral stacks may share a DataDir.
	Ephemeral bool

	// PGPort of PostgreSQL at 127.0.0.1; 0 picks a free one.
	PGPort int
	// PGSettings are further settings of PostgreSQL.
	PGSettings map[string]string
	// OwnerURL is a database on a PostgreSQL that is there already, as its owner; then none is started, and Temporal's
	// databases are made beside it. Fresh and Ephemeral cannot be combined with it.
	OwnerURL string
	// AppURL is the same database as the role of the worker. When it is empty and OwnerURL is not, the role jig_app is
	// made, or given a new password, on that server.
	AppURL string

	// TemporalAddress of the frontend, host:port. Default "127.0.0.1:0", a free port.
	TemporalAddress string
	// Namespace to register. Default "default".
	Namespace string
	// Retention of closed workflows. Default seven days.
	Retention time.Duration
	// TemporalSettings are dynamic configuration by Temporal's names.
	TemporalSettings map[string]any

	// UIAddress of the Web UI, host:port. Default "127.0.0.1:0", a free port.
	UIAddress string
	// NoUI leaves the Web UI out.
	NoUI bool

	// Permissions are what everybody may in tenants without a document, for the environment; nothing when empty.
	Permissions string

	// Migrate brings jig's tables up to date, once the database is there; nil does nothing.
	Migrate func(ctx context.Context, ownerURL, appRole string) error
	// Log gets warnings of the servers; nil is silent.
	Log *slog.Logger
	// Progress is told about each step, when it begins (took is 0) and when it is done; nil is silent.
	Progress func(step string, took time.Duration)
}

// withDefaults fills in what was left empty.
func (o Options) withDefaults() (Options, error) {
	dir, err := filepath.Abs(cmp.Or(o.DataDir, ".jig"))
	if err != nil {
		return o, err //nolint:wrapcheck // says which folder already
	}
	o.DataDir = dir
	o.TemporalAddress = cmp.Or(o.TemporalAddress, "127.0.0.1:0")
	o.UIAddress = cmp.Or(o.UIAddress, "127.0.0.1:0")
	o.Namespace = cmp.Or(o.Namespace, "default")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string, time.Duration) {}
	}
	return o, nil
}
