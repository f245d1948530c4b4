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
	// AppRole is the worker's role, to which row-level security applies.
	AppRole = "jig_app"
	// ServerRole is the server's role, which reads what tenants have and writes only the server's own tables.
	ServerRole = "jig_server"
	// temporalRole owns Temporal's databases.
	temporalRole = "temporal"
	// databaseName is jig's own database.
	databaseName = "jig"
)

// Options says what to start, where it listens and where it keeps its data. The zero value keeps data in .jig and picks
// free ports.
type Options struct {
	// DataDir is the folder for the data, the logs and the lock. Default ".jig".
	DataDir string
	// Fresh removes the data of earlier runs first.
	Fresh bool
	// Ephemeral keeps the data in a temporary folder until Stop; several ephemeral stacks may share a DataDir. The owner of the database may
	// create more databases, as tests do.
	Ephemeral bool

	// PGPort is PostgreSQL's port at 127.0.0.1; 0 picks a free port.
	PGPort int
	// PGSettings holds further settings of PostgreSQL.
	PGSettings map[string]string
	// OwnerURL connects to a database on an existing PostgreSQL server, as its owner. If it is set, no PostgreSQL is started, and
	// Temporal's databases are created on that server. It cannot be combined with Fresh or Ephemeral.
	OwnerURL string
	// AppURL connects to the same database with the worker's role. If it is empty and OwnerURL is set, the role jig_app is created
	// on that server, or gets a new password.
	AppURL string
	// ServerURL connects to the same database with the server's role. It is treated like AppURL, with the role jig_server.
	ServerURL string

	// TemporalAddress is the address of Temporal's frontend, host:port. Default "127.0.0.1:0", a free port.
	TemporalAddress string
	// Namespace is the namespace to register. Default "default".
	Namespace string
	// Retention is how long closed workflows are kept. Default seven days.
	Retention time.Duration
	// TemporalSettings holds dynamic configuration by Temporal's names.
	TemporalSettings map[string]any

	// UIAddress is the address of the Web UI, host:port. Default "127.0.0.1:0", a free port.
	UIAddress string
	// NoUI disables the Web UI.
	NoUI bool

	// Permissions are the permissions of everybody in tenants without a document. They become part of the Environment. By
	// default there are none.
	Permissions string

	// Migrate brings jig's tables up to date after the database has been created. nil does nothing.
	Migrate func(ctx context.Context, ownerURL, appRole string) error
	// GrantServer gives the server's role its rights after the migration. nil gives none, and then there is no such role.
	GrantServer func(ctx context.Context, ownerURL, serverRole string) error
	// Log receives warnings of the servers; nil discards them.
	Log *slog.Logger
	// Progress is called when a step begins (took is 0) and when it is done. It may be nil.
	Progress func(step string, took time.Duration)
}

// withDefaults returns the options with defaults for empty fields.
func (o Options) withDefaults() (Options, error) {
	dir, err := filepath.Abs(cmp.Or(o.DataDir, ".jig"))
	if err != nil {
		return o, err //nolint:wrapcheck // the error already names the folder
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
