package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/tools/common/schema"
	"go.temporal.io/server/tools/sql"
)

// schemaLock is the key of the advisory lock that makes one process at a time set up the databases ("jig" in ASCII).
const schemaLock = 0x6a6967

// setUp creates the two databases if they do not exist, brings their tables up to date and registers the namespace. It holds an advisory lock, so that
// several processes can start on one PostgreSQL server at the same time.
func setUp(ctx context.Context, opts Options, main, visibility config.SQL, logger log.Logger) error {
	conn, err := pgx.Connect(ctx, opts.DatabaseURL)
	if err != nil {
		return fmt.Errorf("connect to the database for Temporal: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // the lock ends with the connection, even if Close fails
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", schemaLock); err != nil {
		return fmt.Errorf("lock the setup of Temporal's databases: %w", err)
	}
	for _, cfg := range []config.SQL{main, visibility} {
		if err := createDatabase(ctx, conn, cfg, logger); err != nil {
			return err
		}
	}
	updated := make(chan error, 2)
	go func() { updated <- update(main, "postgresql/v12/temporal", logger) }()
	go func() { updated <- update(visibility, "postgresql/v12/visibility", logger) }()
	if err := errors.Join(<-updated, <-updated); err != nil {
		return err
	}
	return register(ctx, opts.Namespace, main, logger)
}

// createDatabase creates a database unless it exists.
func createDatabase(ctx context.Context, conn *pgx.Conn, cfg config.SQL, logger log.Logger) error {
	var exists bool
	err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", cfg.DatabaseName).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look for the database %s: %w", cfg.DatabaseName, err)
	}
	if exists {
		return nil
	}
	// DoCreateDatabase changes its argument, so copy what is still needed.
	name := cfg.DatabaseName
	if err := sql.DoCreateDatabase(&cfg, conn.Config().Database, logger); err != nil {
		return fmt.Errorf("create the database %s for Temporal as %s (the role needs CREATEDB, or create it beforehand): %w",
			name, cfg.User, err)
	}
	return nil
}

// update brings the tables of a database to the version of this server. Both tasks do nothing if the tables are up to date.
func update(cfg config.SQL, schemaName string, logger log.Logger) error {
	conn, err := sql.NewConnection(&cfg, logger)
	if err != nil {
		return fmt.Errorf("connect to the database %s: %w", cfg.DatabaseName, err)
	}
	defer conn.Close()
	if err := schema.NewSetupSchemaTask(conn, &schema.SetupConfig{InitialVersion: "0.0"}, logger).Run(); err != nil {
		return fmt.Errorf("prepare the tables of %s: %w", cfg.DatabaseName, err)
	}
	config := &schema.UpdateConfig{DBName: cfg.DatabaseName, SchemaName: schemaName}
	if err := schema.NewUpdateSchemaTask(conn, config, logger).Run(); err != nil {
		return fmt.Errorf("update the tables of %s: %w", cfg.DatabaseName, err)
	}
	return nil
}
