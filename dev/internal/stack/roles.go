package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jig-run/jig/dev/internal/pg"
)

// makeRoles creates the roles and jig's database on a server that this package started, or resets them to their intended state. ephemeral
// lets the owner create databases, because tests need some in which nobody else listens.
func makeRoles(ctx context.Context, server *pg.Server, ephemeral bool) error {
	createDB := "nocreatedb"
	if ephemeral {
		createDB = "createdb"
	}
	conn, err := pgx.Connect(ctx, server.URL(pg.Superuser, "postgres"))
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // nothing is left to lose
	for _, role := range []struct{ name, rights string }{
		{OwnerRole, "nosuperuser " + createDB + " nocreaterole nobypassrls"},
		{AppRole, "nosuperuser nocreatedb nocreaterole nobypassrls"},
		{ServerRole, "nosuperuser nocreatedb nocreaterole nobypassrls"},
		{temporalRole, "nosuperuser createdb nocreaterole nobypassrls"},
	} {
		if err := makeRole(ctx, conn, role.name, role.rights, server.Password(role.name)); err != nil {
			return err
		}
	}
	var exists bool
	err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", databaseName).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look for the database %s: %w", databaseName, err)
	}
	if !exists {
		statement := "create database " + quote(databaseName) + " owner " + quote(OwnerRole)
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("create the database %s: %w", databaseName, err)
		}
	}
	return closeSchema(ctx, server.URL(pg.Superuser, databaseName))
}

// closeSchema lets only the owner create objects in the schema public. Before PostgreSQL 15, every role may do so by default.
func closeSchema(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to the database %s: %w", databaseName, err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // nothing is left to lose
	_, err = conn.Exec(ctx, "revoke create on schema public from public; grant usage, create on schema public to "+quote(OwnerRole))
	if err != nil {
		return fmt.Errorf("close the schema public of %s: %w", databaseName, err)
	}
	return nil
}

// makeRole creates a role that may log in. If the role exists, makeRole sets its rights and password again.
func makeRole(ctx context.Context, conn *pgx.Conn, name, rights, password string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1)", name).Scan(&exists); err != nil {
		return fmt.Errorf("look for the role %s: %w", name, err)
	}
	verb := "create"
	if exists {
		verb = "alter"
	}
	// Neither statement takes parameters. Passwords consist only of hexadecimal digits or letters, so they need no quoting.
	statement := fmt.Sprintf("%s role %s with login %s password '%s'", verb, quote(name), rights, password)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s the role %s: %w", verb, name, err)
	}
	return nil
}

// adoptRole creates a role on an existing server, or gives it a new password, and returns its URL. variable names the setting with which the
// user can name the role instead.
func adoptRole(ctx context.Context, ownerURL, role, variable string) (string, error) {
	u, err := url.Parse(ownerURL)
	if err != nil {
		return "", errors.New("JIG_DATABASE_OWNER_URL is not a URL like postgres://user:password@host:5432/name")
	}
	conn, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return "", fmt.Errorf("connect to JIG_DATABASE_OWNER_URL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // nothing is left to lose
	password := rand.Text()
	err = makeRole(ctx, conn, role, "nocreatedb nocreaterole", password)
	var denied *pgconn.PgError
	if errors.As(err, &denied) && denied.Code == "42501" {
		return "", fmt.Errorf("the owner of JIG_DATABASE_OWNER_URL may not create the role %s: "+
			"let an administrator create it and set %s (%w)", role, variable, err)
	}
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(role, password)
	return u.String(), nil
}

// quote quotes an identifier for a statement.
func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
