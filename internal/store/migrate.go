package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/jig-run/jig"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// versionTable is the table that records the applied migrations.
const versionTable = "jig_schema_version"

// grantsLock is the advisory lock under which privileges are granted: PostgreSQL fails when two programs grant at the same time.
const grantsLock = 7_307_441

// schemaVersions returns the numbers of the first and the last migration of this program.
func schemaVersions() (first, last int64, err error) {
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return 0, 0, jig.Errorf(jig.CodeInternal, "reading the embedded migrations: %w", err)
	}
	for i, entry := range entries {
		number, _, _ := strings.Cut(entry.Name(), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, 0, jig.Errorf(jig.CodeInternal, "the migration %s has no number", entry.Name())
		}
		if i == 0 {
			first = version
		}
		last = max(last, version)
	}
	return first, last, nil
}

// refuseOutdated returns an error for a database whose migrations have been replaced since. lowest is the lowest number of a migration
// that was applied to it, or 0 for a new database. Migrations that replace others get higher numbers.
func refuseOutdated(lowest int64) error {
	first, _, err := schemaVersions()
	if err != nil || lowest == 0 || lowest >= first {
		return err
	}
	return jig.Errorf(jig.CodeUnavailable, "the database was created by an older version of jig and cannot be upgraded").
		WithHint("run `jig migrate` on a new, empty database, or keep using this one with the older version; " +
			"for `jig-dev`, delete the folder .jig")
}

// Migrate brings the schema of the database at ownerURL to this program's version and gives appRole the privileges it needs ("" grants
// nothing). Several may run at once: one works while the others wait.
func Migrate(ctx context.Context, ownerURL, appRole string) error {
	config, db, err := openOwner(ctx, ownerURL)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := checkOutdated(ctx, db, config); err != nil {
		return err
	}
	provider, err := migrations(db)
	if err != nil {
		return translate(err, config, settingOwner)
	}
	if _, err := provider.Up(ctx); err != nil {
		return migrationError(err, config)
	}
	if appRole == "" {
		return nil
	}
	return grant(ctx, db, config, appRole)
}

// RoleOf returns the role that a database URL connects as.
func RoleOf(url string) (string, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return "", badURL("JIG_DATABASE_URL")
	}
	return config.User, nil
}

// openOwner connects as the owner of the tables. The search path is the owner's schema and pg_temp, and contains no other schema
// that anybody may write to. A security definer function captures that path with `set search_path from current`, so that no object
// of the caller, not even one in its temporary schema, can replace a table or function that the function names.
func openOwner(ctx context.Context, url string) (*pgx.ConnConfig, *sql.DB, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, nil, badURL("JIG_DATABASE_OWNER_URL")
	}
	config.RuntimeParams["application_name"] = "jig migrate"
	schema, err := schemaOf(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	config.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize() + ", pg_temp"
	return config, stdlib.OpenDB(*config), nil
}

// schemaOf returns the schema in which a role creates its tables.
func schemaOf(ctx context.Context, config *pgx.ConnConfig) (string, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", migrationError(err, config)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var schema *string
	if err := conn.QueryRow(ctx, "select current_schema()").Scan(&schema); err != nil {
		return "", migrationError(err, config)
	}
	if schema == nil {
		return "", jig.Errorf(jig.CodeNotFound, "no schema on the search path of %q exists", config.User).
			WithHint("create one, or name it in JIG_DATABASE_OWNER_URL and JIG_DATABASE_URL with ?search_path=")
	}
	return *schema, nil
}

// checkOutdated calls refuseOutdated if the database has been migrated before.
func checkOutdated(ctx context.Context, db *sql.DB, config *pgx.ConnConfig) error {
	var migrated bool
	if err := db.QueryRowContext(ctx, "select to_regclass($1) is not null", versionTable).Scan(&migrated); err != nil {
		return migrationError(err, config)
	}
	if !migrated {
		return nil
	}
	list, err := loadQueries()
	if err != nil {
		return err
	}
	var lowest, latest int64
	if err := db.QueryRowContext(ctx, list["SchemaVersions"]).Scan(&lowest, &latest); err != nil {
		return migrationError(err, config)
	}
	return refuseOutdated(lowest)
}

func migrations(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err //nolint:wrapcheck // translated by the caller
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err //nolint:wrapcheck // translated by the caller
	}
	return goose.NewProvider(goose.DialectPostgres, db, files, //nolint:wrapcheck // translated by the caller
		goose.WithTableName(versionTable), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
}

func migrationError(err error, config *pgx.ConnConfig) error {
	var partial *goose.PartialError
	if errors.As(err, &partial) && partial.Failed != nil {
		e := jig.AsError(translate(err, config, settingOwner))
		return jig.Errorf(e.Code, "migration %d failed: %s", partial.Failed.Source.Version, e.Message)
	}
	e := jig.AsError(translate(err, config, settingOwner))
	if e.Code == jig.CodeUnavailable {
		return e.WithHint("check that the server runs and that JIG_DATABASE_OWNER_URL is right")
	}
	return e
}

// grant gives the application role its privileges: it reads and inserts everywhere, updates what has a state, and deletes nothing.
func grant(ctx context.Context, db *sql.DB, config *pgx.ConnConfig, role string) error {
	return grantAs(ctx, db, config, role, func(to string) []string {
		return []string{
			"grant select, insert on tenants, sessions, messages, turns, pass_ends, events, calls, approvals, decisions, artifacts, artifact_chunks, " +
				"documents, frames, frame_values, undos, received, received_consumed, grants, pauses, notices, notice_deliveries, askers" + to,
			"grant update (pass) on askers" + to,
			"grant update on sessions, calls, approvals, frames, frame_values, undos, grants, pauses, notices, notice_deliveries" + to,
			"grant select, insert on used_tokens, settled_calls, usage_records, signed_decisions" + to,
			"grant select, insert, update on budget_counters, budget_reservations, rate_buckets, rate_calls" + to,
			"grant select, insert, update on entities, relations, workspaces, texts, text_chunks, entity_tasks, bundles" + to,
			"grant select on usage_days, usage_summed, audit, audit_heads, installation, retired_sessions, server_keys" + to,
			"grant update (size) on artifacts" + to,
			"grant update (current, bundle, untrusted) on documents" + to,
			"grant select on " + versionTable + to,
			"grant execute on function jig_live_sessions(integer), jig_sessions_after(text, text, integer), jig_last_seqs(text[], text[]), " +
				"jig_take_settled(interval, integer), jig_told_settled(text, text), jig_take_rechecks(interval, integer), jig_rechecked(timestamptz), jig_prune(timestamptz), jig_erase(), " +
				"jig_take_notices(integer, interval), jig_take_deliveries(integer, integer, text[], text[], interval), " +
				"jig_forget_notices(interval, integer), jig_forget_tokens(interval, integer), jig_audit(text, text, text, text, text, text, text, text, boolean), " +
				"jig_approvals_open(), jig_approvals_decided(timestamptz, timestamptz), jig_approvals_pace(timestamptz), " +
				"jig_sessions_open(), jig_deliveries_pending(), jig_budgets_used(text, integer), " +
				"jig_release_reservations(integer), jig_sum_usage(integer), jig_usage(text, timestamptz, timestamptz), " +
				"jig_count(text[], text[], text[], text[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]), jig_forget_rates(integer), jig_entity_elsewhere(text), jig_value_elsewhere(text, text), " +
				"jig_key_lineage(text, text)" + to,
		}
	})
}

// grantAs gives a role the rights in the schema that statements returns. Each statement ends with to.
func grantAs(
	ctx context.Context, db *sql.DB, config *pgx.ConnConfig, role string, statements func(to string) []string,
) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return migrationError(err, config)
	}
	defer func() { _ = tx.Rollback() }() //nolint:errcheck // an uncommitted transaction is rolled back either way
	var schema, database string
	var known bool
	if err := tx.QueryRowContext(ctx, "select current_schema(), current_database(), exists (select from pg_roles where rolname = $1)", role).
		Scan(&schema, &database, &known); err != nil {
		return migrationError(err, config)
	}
	if err := unfit(config, role, known); err != nil {
		return err
	}
	to := " to " + pgx.Identifier{role}.Sanitize()
	first := []string{
		"select pg_advisory_xact_lock(" + strconv.Itoa(grantsLock) + ")",
		"revoke temporary on database " + pgx.Identifier{database}.Sanitize() + " from public", // a role that does not own the database only gets a warning
		"grant usage on schema " + pgx.Identifier{schema}.Sanitize() + to,
	}
	for _, statement := range slices.Concat(first, statements(to)) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return migrationError(err, config)
		}
	}
	if err := tx.Commit(); err != nil {
		return migrationError(err, config)
	}
	return nil
}

// GrantServer gives the server's role its rights in a migrated database: it reads what tenants have, under row-level security, and writes
// only the tables that are its own.
func GrantServer(ctx context.Context, ownerURL, role string) error {
	config, db, err := openOwner(ctx, ownerURL)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return grantAs(ctx, db, config, role, func(to string) []string {
		return []string{
			"grant select on tenants, sessions, messages, turns, pass_ends, events, calls, approvals, decisions, artifacts, artifact_chunks, " +
				"documents, frames, grants, pauses, bundles, usage_records, usage_days, usage_summed, rate_calls, entities, entity_tasks" + to,
			"grant select on installation, " + versionTable + to,
			"grant select, insert on credentials" + to,
			"grant update (hash, revoked_at, revoked_by, created_by, maker, made_with_kind, made_with_id, persons) on credentials" + to,
			"grant select, insert on credential_events" + to,
			"grant update (count, last_at) on credential_events" + to,
			"grant select, insert on server_keys" + to,
			"grant update (revoked_at) on server_keys" + to,
			"grant execute on function jig_usage(text, timestamptz, timestamptz), jig_last_seqs(text[], text[]), jig_key_lineage(text, text), jig_credential(text, bytea, interval), " +
				"jig_credentials_valid(text[], interval), jig_ended_credential(text, bytea, interval), " +
				"jig_forget_credentials(interval), jig_forget_credential_events()" + to,
		}
	})
}

// unfit returns an error if a role cannot be one of jig's own.
func unfit(config *pgx.ConnConfig, role string, known bool) error {
	if !known {
		return jig.Errorf(jig.CodeNotFound, "there is no database role %q", role).
			WithHint("create it first: create role " + pgx.Identifier{role}.Sanitize() + " login")
	}
	if role == config.User {
		return jig.Errorf(jig.CodeInvalidInput, "the owner of the tables cannot be the application role").
			WithHint("use two roles: one in JIG_DATABASE_OWNER_URL, another in JIG_DATABASE_URL")
	}
	return nil
}
