// Package storetest gives tests a store on a real PostgreSQL. Tests share one migrated database and use a tenant each, so that they can
// run in parallel. A test of migrations gets a database of its own.
package storetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
)

// OwnerURL returns the URL of the owner of the test database's tables. The test fails when it is not set.
func OwnerURL(t testing.TB) string {
	t.Helper()
	return setting(t, "JIG_DATABASE_OWNER_URL")
}

// URL returns the URL of the application role in the test database. The test fails when it is not set.
func URL(t testing.TB) string {
	t.Helper()
	return setting(t, "JIG_DATABASE_URL")
}

// ServerURL returns the URL of the server's role in the test database. The test fails when it is not set.
func ServerURL(t testing.TB) string {
	t.Helper()
	return setting(t, "JIG_SERVER_DATABASE_URL")
}

// Server opens the migrated test database as the server, until the test ends.
func Server(t testing.TB) *store.DB {
	t.Helper()
	New(t) // so that it is migrated
	role, err := store.RoleOf(ServerURL(t))
	require.NoError(t, err)
	require.NoError(t, store.GrantServer(t.Context(), OwnerURL(t), role))
	db, err := store.Open(t.Context(), ServerURL(t), store.Options{})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

func setting(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run `make test`, or start `make dev` and load .jig/dev.env", name)
	}
	return value
}

// New opens the migrated test database until the test ends.
func New(t testing.TB) *store.DB {
	t.Helper()
	return Open(t, OwnerURL(t), URL(t), store.Options{})
}

// Open opens a database, migrates it if necessary, and closes it when the test ends.
func Open(t testing.TB, ownerURL, appURL string, options store.Options) *store.DB {
	t.Helper()
	ctx := t.Context()
	if options.Logger == nil {
		options.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	db, err := store.Open(ctx, appURL, options)
	if err != nil { // most often because it is not migrated yet
		role, roleErr := store.RoleOf(appURL)
		require.NoError(t, roleErr)
		require.NoError(t, store.Migrate(ctx, ownerURL, role))
		db, err = store.Open(ctx, appURL, options)
		require.NoError(t, err)
	}
	t.Cleanup(db.Close)
	return db
}

// Tenant returns a new, unique tenant whose name contains a part of the test's name. Nothing erases its data, because the database
// is only for tests.
func Tenant(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	return "t-" + random() + "-" + name[:min(len(name), 32)]
}

func random() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Session creates a session for tests that only need one.
func Session(t testing.TB, db *store.DB, tenant string) jig.Session {
	t.Helper()
	s, err := db.CreateSession(t.Context(), jig.Session{
		Tenant: tenant, ID: jig.NewSessionID(), Task: "do it",
		Agent:     jig.Agent{Name: "tester", Version: "0123456789abcdef", Model: "script/tester", Tools: []string{"*"}},
		Principal: jig.Principal{ID: "ana", Claimed: true},
	})
	require.NoError(t, err)
	return s
}

// Exec runs a statement for a tenant as the application role, and commits it.
func Exec(t testing.TB, tenant, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), URL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

// NewDatabase creates an empty database for the test and returns the URLs of the owner and the application role. If the owner may
// not create databases, it creates an empty schema in the test database instead.
func NewDatabase(t testing.TB) (ownerURL, appURL string) {
	t.Helper()
	ctx := t.Context()
	name := "jig_test_" + random()
	conn, err := pgx.Connect(ctx, OwnerURL(t))
	require.NoError(t, err)
	var mayCreate bool
	require.NoError(t, conn.QueryRow(ctx, "select rolcreatedb or rolsuper from pg_roles where rolname = current_user").Scan(&mayCreate))
	create, drop := "create schema "+name, "drop schema if exists "+name+" cascade"
	change := func(u *url.URL) {
		q := u.Query()
		q.Set("search_path", name)
		u.RawQuery = q.Encode()
	}
	if mayCreate {
		create, drop = "create database "+name, "drop database if exists "+name // waits for connections that are closing
		change = func(u *url.URL) { u.Path = "/" + name }
	}
	_, err = conn.Exec(ctx, create)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		_, err := conn.Exec(ctx, drop)
		var inUse *pgconn.PgError
		for errors.As(err, &inUse) && inUse.Code == "55006" { // PostgreSQL waits only five seconds
			_, err = conn.Exec(ctx, drop)
		}
		require.NoError(t, err)
		_ = conn.Close(ctx)
	})
	return changed(t, OwnerURL(t), change), changed(t, URL(t), change)
}

func changed(t testing.TB, text string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	change(u)
	return u.String()
}
