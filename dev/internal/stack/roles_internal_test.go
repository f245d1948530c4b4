package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/dev/internal/pg"
	"github.com/jig-run/jig/internal/store"
)

// database is a migrated database with the roles that a deployment or the development server creates.
type database struct{ super, owner, app string }

// connect opens a connection of one role for the duration of the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	require.NoError(t, err, sql)
}

// refused checks that PostgreSQL refuses the statement because the role lacks a privilege.
func refused(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	var failure *pgconn.PgError
	require.ErrorAs(t, err, &failure, sql)
	require.Equal(t, "42501", failure.Code, sql)
}

func newServer(t *testing.T) *pg.Server {
	t.Helper()
	server, err := pg.New(t.Context(), pg.Options{Dir: filepath.Join(t.TempDir(), "pg"), Ephemeral: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close(context.WithoutCancel(t.Context()))) })
	require.NoError(t, server.Start(t.Context()))
	return server
}

// developmentRoles returns a database with the roles that jig-dev creates.
func developmentRoles(t *testing.T) database {
	t.Helper()
	server := newServer(t)
	require.NoError(t, makeRoles(t.Context(), server, false))
	return database{
		super: server.URL(pg.Superuser, databaseName), owner: server.URL(OwnerRole, databaseName), app: server.URL(AppRole, databaseName),
	}
}

// deployedRoles returns a database with the roles that docker-compose.yml's initialization script creates.
func deployedRoles(t *testing.T) database {
	t.Helper()
	server := newServer(t)
	script, err := os.ReadFile("../../../deploy/postgres-init.sh")
	require.NoError(t, err)
	_, statements, found := strings.Cut(string(script), "<<'SQL'\n")
	require.True(t, found, "the script passes a here-document to psql")
	statements, _, _ = strings.Cut(statements, "\nSQL\n")
	for variable, role := range map[string]string{":'owner'": OwnerRole, ":'app'": AppRole, ":'server'": ServerRole, ":'temporal'": temporalRole} {
		statements = strings.ReplaceAll(statements, variable, "'"+server.Password(role)+"'")
	}
	conn := connect(t, server.URL(pg.Superuser, "postgres"))
	for line := range strings.Lines(statements) {
		if name, connects := strings.CutPrefix(strings.TrimSpace(line), `\connect `); connects {
			conn = connect(t, server.URL(pg.Superuser, name))
			continue
		}
		run(t, conn, line)
	}
	return database{
		super: server.URL(pg.Superuser, databaseName), owner: server.URL(OwnerRole, databaseName), app: server.URL(AppRole, databaseName),
	}
}

const (
	auditRows = "select string_agg(n || ' ' || kind || ' ' || entry || ' ' || encode(hash, 'hex'), ';' order by n) from public.audit"
	appendRow = "select jig_audit('{\"n\": 1}', 'denied', 'ses_a', '1.1')"
)

// Somebody with the workers' password cannot run a statement as the owner of jig's tables.
func TestWorkersRole_CannotBecomeTheOwner(t *testing.T) {
	t.Parallel()
	for name, roles := range map[string]func(*testing.T) database{"jig-dev": developmentRoles, "deploy": deployedRoles} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := roles(t)
			require.NoError(t, store.Migrate(t.Context(), db.owner, AppRole))
			opened, err := store.Open(t.Context(), db.app, store.Options{})
			require.NoError(t, err)
			opened.Close()

			super := connect(t, db.super)
			requireBound(t, super)
			app := connect(t, db.app)
			run(t, app, "set jig.tenant = 'acme'")
			run(t, app, appendRow)
			before := read(t, super, auditRows)
			require.Contains(t, before, "denied")

			for _, statement := range []string{
				"create temporary table audit_heads (tenant_id text)",
				"create function pg_temp.sha256(bytea) returns bytea language sql as 'select $1'",
				"create schema evil",
				"create function public.int8send(bigint) returns bytea language sql as 'select null::bytea'",
				"create operator public.|| (leftarg = bytea, rightarg = bytea, function = byteacat)",
				"create type public.audit_text as (t text)",
				"create cast (text as bytea) without function",
				"create trigger grab before insert on audit for each row execute function suppress_redundant_updates_trigger()",
				"create rule grab as on insert to audit do also delete from audit",
				"alter function jig_audit(text, text, text, text, text, text, text, text, boolean) reset search_path",
				"alter table approvals no force row level security",
				"update audit set entry = '{}'", "delete from audit", "update audit_heads set n = 0",
				"set role jig_owner", "alter role jig_app createrole", "grant jig_owner to jig_app",
			} {
				refused(t, app, statement)
			}
			require.Equal(t, before, read(t, super, auditRows))
			shadowed(t, db, app, before)
		})
	}
}

// shadowed repeats the attack with privileges that an administrator may have granted. Even then, the owner's functions use no
// object of the caller, and a worker refuses to start.
func shadowed(t *testing.T, db database, app *pgx.Conn, before string) {
	t.Helper()
	super := connect(t, db.super)
	run(t, super, "grant temporary on database jig to jig_app")
	_, err := store.Open(t.Context(), db.app, store.Options{})
	require.Equal(t, jig.CodeNotPermitted, jig.AsError(err).Code)
	require.ErrorContains(t, err, "temporary")
	for _, statement := range []string{
		`create temporary table audit (like public.audit including all)`,
		`create temporary table audit_heads (like public.audit_heads including all)`,
		`grant all on pg_temp.audit, pg_temp.audit_heads to public`,
		`create function pg_temp.grab() returns trigger language plpgsql as $$
		begin
			update public.audit set entry = '"approved"';
			grant update, delete on public.audit to jig_app;
			alter table public.approvals no force row level security;
			return new;
		end $$`,
		`create trigger grab before insert on pg_temp.audit_heads for each row execute function pg_temp.grab()`,
		`create trigger grab before insert on pg_temp.audit for each row execute function pg_temp.grab()`,
		`create function pg_temp.sha256(bytea) returns bytea language plpgsql as $$ begin update public.audit set entry = '"approved"'; return $1; end $$`,
		`create function pg_temp.glue(bytea, bytea) returns bytea language plpgsql as $$ begin update public.audit set entry = '"approved"'; return $1; end $$`,
		`create operator pg_temp.|| (leftarg = bytea, rightarg = bytea, function = pg_temp.glue)`,
		`create domain pg_temp.text as varchar`,
		`set search_path = pg_temp, public, pg_catalog`,
		"select public.jig_audit('{\"n\": 2}', 'denied', 'ses_a', '1.2')",
		"select * from public.jig_live_sessions(10)",
		"select public.jig_forget_tokens(interval '1 second', 10)",
		"select public.jig_prune(now() - interval '1 year')",
	} {
		run(t, app, statement)
	}
	after := read(t, super, auditRows)
	require.True(t, strings.HasPrefix(after, before+";2 denied "), after)
	requireBound(t, super)
	run(t, super, "revoke temporary on database jig from jig_app")

	run(t, super, "grant create on schema public to jig_app")
	_, err = store.Open(t.Context(), db.app, store.Options{})
	require.Equal(t, jig.CodeNotPermitted, jig.AsError(err).Code)
	require.ErrorContains(t, err, "create tables and functions")
}

// requireBound checks that the restrictions of the workers' role are intact.
func requireBound(t *testing.T, super *pgx.Conn) {
	t.Helper()
	for what, sql := range map[string]string{
		"functions that run as their owner have a pinned search path": `select count(*) from pg_proc
			where (prosecdef or proname in ('jig_isolate', 'jig_retire_session')) and pronamespace = 'public'::regnamespace and proconfig is distinct from array['search_path="public", pg_temp']`,
		"such functions are not for everybody": `select count(*) from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
			where (prosecdef or proname = 'jig_isolate') and pronamespace = 'public'::regnamespace and a.grantee = 0`,
		"row-level security is forced": `select count(*) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
			and relname not in ('jig_schema_version', 'installation', 'server_keys') and not (relrowsecurity and relforcerowsecurity)`,
		"the audit is only appended to": `select count(*) from unnest(array['update', 'delete', 'truncate', 'trigger', 'insert']) p
			where has_table_privilege('jig_app', 'audit', p) or has_table_privilege('jig_app', 'audit_heads', p)`,
		"neither role may do more": `select count(*) from pg_roles where rolname in ('jig_app', 'jig_owner')
			and (rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication)`,
	} {
		require.Equal(t, "0", read(t, super, "select ("+sql+")::text"), what)
	}
	require.NotEqual(t, "0", read(t, super, "select count(*)::text from pg_proc where prosecdef"), "the functions exist")
}

func read(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	var value string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&value), fmt.Sprint(sql))
	return value
}

// On a server whose data is thrown away the owner may create databases, as tests do.
func TestMakeRoles_LetTestsMakeDatabases(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	for _, ephemeral := range []bool{true, false} {
		require.NoError(t, makeRoles(t.Context(), server, ephemeral))
		owner := connect(t, server.URL(OwnerRole, databaseName))
		if ephemeral {
			run(t, owner, "create database extra")
		} else {
			refused(t, owner, "create database another")
		}
	}
}
