package store_test

import (
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

func role(t *testing.T, u string) string {
	t.Helper()
	r, err := store.RoleOf(u)
	require.NoError(t, err)
	return r
}

// A store opens only a schema of the version that the program was built for.
func TestMigrate_OpenWantsThisVersion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	owner, app := storetest.NewDatabase(t)
	_, err := store.Open(ctx, app, store.Options{})
	requireCode(t, jig.CodeUnavailable, err)
	require.ErrorContains(t, err, "jig migrate")

	require.NoError(t, store.Migrate(ctx, owner, role(t, app)))
	require.NoError(t, store.Migrate(ctx, owner, role(t, app)), "running it again changes nothing")
	storetest.Session(t, storetest.Open(t, owner, app, store.Options{}), "default")
	conn, err := pgx.Connect(ctx, owner)
	require.NoError(t, err)
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "insert into jig_schema_version (version_id, is_applied) values (99999, true)")
	require.NoError(t, err)
	_, err = store.Open(ctx, app, store.Options{})
	requireCode(t, jig.CodeUnavailable, err)
	require.ErrorContains(t, err, "99999")
	_, err = conn.Exec(ctx, "delete from jig_schema_version where version_id > (select min(version_id) from jig_schema_version where version_id > 0)")
	require.NoError(t, err)
	_, err = store.Open(ctx, app, store.Options{})
	requireCode(t, jig.CodeUnavailable, err)
	require.ErrorContains(t, err, "jig migrate")
}

// Migrations 1 to 25, and later 101 to 147, existed before they were squashed; those that replaced them have higher numbers.
func TestMigrate_RefusesADatabaseOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	owner, app := storetest.NewDatabase(t)
	require.NoError(t, store.Migrate(ctx, owner, role(t, app)))
	conn, err := pgx.Connect(ctx, owner)
	require.NoError(t, err)
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "delete from jig_schema_version where version_id > 0")
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "insert into jig_schema_version (version_id, is_applied) select n, true from generate_series(101, 147) n")
	require.NoError(t, err)
	const contents = `select (select string_agg(relname, ' ' order by relname) from pg_class where relnamespace = current_schema()::regnamespace)
		|| (select string_agg(version_id::text, ' ' order by id) from jig_schema_version)`
	var before, after string
	require.NoError(t, conn.QueryRow(ctx, contents).Scan(&before))

	_, openErr := store.Open(ctx, app, store.Options{})
	for name, err := range map[string]error{
		"migrate": store.Migrate(ctx, owner, role(t, app)), "open": openErr,
	} {
		requireCode(t, jig.CodeUnavailable, err)
		require.ErrorContains(t, err, "cannot be upgraded", name)
		require.Contains(t, jig.AsError(err).Hint, "empty database", name)
	}
	require.NoError(t, conn.QueryRow(ctx, contents).Scan(&after))
	require.Equal(t, before, after, "nothing was changed")
}

func TestMigrate_AtTheSameTime(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = store.Migrate(t.Context(), owner, role(t, app)) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	storetest.Session(t, storetest.Open(t, owner, app, store.Options{}), "default")
}

func TestRowLevelSecurity_CoversEveryTable(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	require.NoError(t, store.Migrate(t.Context(), owner, role(t, app)))
	conn, err := pgx.Connect(t.Context(), owner)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), `select c.relname, c.relrowsecurity and c.relforcerowsecurity
			and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnotnull)
			and exists (select from pg_policy p where p.polrelid = c.oid and p.polname = 'tenant' and p.polcmd = '*' and p.polroles = '{0}')
		from pg_class c
		where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname not in ('jig_schema_version', 'installation', 'server_keys')`)
	require.NoError(t, err)
	var name string
	var safe bool
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&name, &safe}, func() error {
		n++
		require.True(t, safe, name)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 44, n)
	var callable bool
	require.NoError(t, conn.QueryRow(t.Context(), "select has_function_privilege($1, 'jig_isolate(regclass)', 'execute')", role(t, app)).Scan(&callable))
	require.False(t, callable, "only migrations call jig_isolate")
}

func TestOpen_RefusesRolesThatCanSeeOtherTenants(t *testing.T) {
	t.Parallel()
	storetest.New(t) // so that it is migrated
	_, err := store.Open(t.Context(), storetest.OwnerURL(t), store.Options{})
	requireCode(t, jig.CodeNotPermitted, err)
	require.ErrorContains(t, err, "JIG_DATABASE_URL")
	require.ErrorContains(t, err, "own")

	if super := os.Getenv("JIG_TEST_SUPER_URL"); super != "" {
		_, err = store.Open(t.Context(), super, store.Options{})
		requireCode(t, jig.CodeNotPermitted, err)
		require.ErrorContains(t, err, "superuser")
	}
}

func TestOpen_ErrorOmitsThePassword(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), "postgres://jig:hunter2@127.0.0.1:1/jig", store.Options{})
	requireCode(t, jig.CodeUnavailable, err)
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.NotContains(t, err.Error(), "hunter2")
	require.NotContains(t, err.Error(), "\n")

	u, parseErr := url.Parse(storetest.URL(t))
	require.NoError(t, parseErr)
	u.Path = "/no_such_database_here"
	_, err = store.Open(t.Context(), u.String(), store.Options{})
	requireCode(t, jig.CodeUnavailable, err)
	require.ErrorContains(t, err, "does not exist")

	_, err = store.Open(t.Context(), "postgres://jig:hunter2@:x/", store.Options{})
	requireCode(t, jig.CodeInvalidInput, err)
	require.NotContains(t, err.Error(), "hunter2")

	err = store.Migrate(t.Context(), "postgres://jig:hunter2@127.0.0.1:1/jig", "")
	requireCode(t, jig.CodeUnavailable, err)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestMigrate_NamesAMissingRole(t *testing.T) {
	t.Parallel()
	owner, _ := storetest.NewDatabase(t)
	err := store.Migrate(t.Context(), owner, "no_such_role_here")
	requireCode(t, jig.CodeNotFound, err)
	require.ErrorContains(t, err, "no_such_role_here")
}
