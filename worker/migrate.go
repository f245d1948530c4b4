package worker

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/store"
)

// Migrate brings the schema up to date as the schema's owner and grants the roles of the application and of the server their rights.
func Migrate(ctx context.Context, s Settings) error {
	if s.DatabaseOwnerURL == "" {
		return missing(EnvDatabaseOwnerURL, "the role that owns the schema")
	}
	role := ""
	if s.DatabaseURL != "" {
		var err error
		if role, err = store.RoleOf(s.DatabaseURL); err != nil {
			return err
		}
	}
	if err := store.Migrate(ctx, s.DatabaseOwnerURL, role); err != nil || s.ServerDatabaseURL == "" {
		return err
	}
	role, err := store.RoleOf(s.ServerDatabaseURL)
	if err != nil {
		return err
	}
	return store.GrantServer(ctx, s.DatabaseOwnerURL, role)
}

func missing(name, what string) error {
	return jig.Errorf(jig.CodeInvalidInput, "%s is not set: it is the URL of the database, with %s", name, what).WithField(name).
		WithHint("jig-dev starts a database and writes its URL to " + client.DevEnvFile + ", which is found in this folder and those above it; " +
			"elsewhere, set " + client.EnvDevEnv + " to the file's path")
}

// MarkRestored marks the open calls that may have run since the backup was made from which the database was restored. If dry is true, it
// only lists them. It needs no connection to Temporal.
func MarkRestored(ctx context.Context, s Settings, logger *slog.Logger, dry bool) ([]store.Restored, error) {
	db, err := openStore(ctx, s, nil, logger)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.MarkRestored(ctx, dry)
}
