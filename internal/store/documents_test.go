package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestDocuments_KeepTheirVersions(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	put := func(name, version, body string) {
		require.NoError(t, db.PutDocument(t.Context(), tenant, "agent", name, version, []byte(body)))
	}
	get := func(name string) string {
		body, err := db.Document(t.Context(), tenant, "agent", name)
		require.NoError(t, err)
		return string(body)
	}
	put("tidy", "v1", "one")
	put("tidy", "v1", "one")
	require.Equal(t, "one", get("tidy"))
	put("tidy", "v2", "two")
	require.Equal(t, "two", get("tidy"))
	put("tidy", "v1", "one")
	require.Equal(t, "one", get("tidy"), "back to the earlier version")
	put("Sort", "v1", "")
	require.Empty(t, get("Sort"))
	names, err := db.DocumentNames(t.Context(), tenant, "agent")
	require.NoError(t, err)
	require.Equal(t, []string{"Sort", "tidy"}, names)
	names, err = db.DocumentNames(t.Context(), tenant, "policy")
	require.NoError(t, err)
	require.Empty(t, names)

	_, err = db.Document(t.Context(), tenant, "agent", "tdiy")
	requireCode(t, jig.CodeNotFound, err)
	require.ErrorContains(t, err, "did you mean tidy?")
	_, err = db.Document(t.Context(), tenant, "agent", "nothing-like-it")
	requireCode(t, jig.CodeNotFound, err)
	require.NotContains(t, err.Error(), "did you mean")
}

// However many versions were stored later, the current one is found, and so is each that is named.
func TestDocumentVersions_FindTheCurrentOne(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	require.NoError(t, db.PutDocument(t.Context(), tenant, "agent", "tidy", "v1", []byte("one")))
	for _, version := range []string{"v2", "v3", "v4"} {
		require.NoError(t, db.KeepDocument(t.Context(), tenant, "agent", "tidy", version, []byte(version)))
	}
	versions := func(version string) (names []string) {
		list, err := db.DocumentVersions(t.Context(), tenant, "agent", "tidy", version, 2)
		require.NoError(t, err)
		for _, d := range list {
			require.Equal(t, d.Version == "v1", d.Current)
			names = append(names, d.Version)
		}
		return names
	}
	require.Equal(t, []string{"v4", "v1"}, versions(""))
	require.Equal(t, []string{"v2"}, versions("v2"))
	require.Empty(t, versions("v5"))
	_, err := db.DocumentVersions(t.Context(), tenant, "agent", "tide", "v1", 2)
	requireCode(t, jig.CodeNotFound, err)
}

func TestDocumentVersions_AreKeptBesideTheCurrentOne(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	keep := func(name, version, body string) {
		require.NoError(t, db.KeepDocument(t.Context(), tenant, "composition", name, version, []byte(body)))
	}
	at := func(version string) string {
		body, err := db.DocumentAt(t.Context(), tenant, "composition", "page", version)
		require.NoError(t, err)
		return string(body)
	}
	keep("page", "v1", "one")
	keep("page", "v1", "one")
	_, err := db.Document(t.Context(), tenant, "composition", "page")
	requireCode(t, jig.CodeNotFound, err)
	current := func() []bundle.DocumentVersion {
		list, err := db.CurrentDocuments(t.Context(), tenant, "composition")
		require.NoError(t, err)
		return list
	}
	require.Empty(t, current())

	for _, name := range []string{"page", "Sort"} {
		require.NoError(t, db.PutDocument(t.Context(), tenant, "composition", name, "v1", []byte("one")))
	}
	keep("page", "v2", "two")
	keep("page", "v1", "one")
	require.Equal(t, []bundle.DocumentVersion{
		{Kind: "composition", Name: "Sort", Version: "v1"}, {Kind: "composition", Name: "page", Version: "v1"},
	}, current())
	require.NoError(t, db.PutDocument(t.Context(), tenant, "composition", "page", "v2", []byte("two")))
	require.Equal(t, "v2", current()[1].Version, "a kept version becomes the current one")
	require.Equal(t, "one", at("v1"))
	require.Equal(t, "two", at("v2"))
	_, err = db.DocumentAt(t.Context(), tenant, "composition", "page", "v3")
	requireCode(t, jig.CodeNotFound, err)
	_, err = db.DocumentAt(t.Context(), tenant, "agent", "page", "v1")
	requireCode(t, jig.CodeNotFound, err)
	requireCode(t, jig.CodeNotPermitted, db.KeepDocument(t.Context(), jig.GlobalTenant, "composition", "page", "v1", nil))
	requireCode(t, jig.CodeInvalidInput, db.KeepDocument(t.Context(), "", "composition", "page", "v1", nil))
}

// A version is the hash of a body. After a collision, or a caller's mistake, the stored body must not become current instead of the
// one that people looked at.
func TestDocuments_RegisteringOneNeverMakesAnotherOneCurrent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	documentA := bundle.StoredDocument{DocumentVersion: bundle.DocumentVersion{Kind: "policy", Name: "shop", Version: "v1"}, Body: []byte("A")}
	for name, register := range map[string]func() error{
		"put":      func() error { return w.PutDocument(t.Context(), w.tenant, "policy", "shop", "v1", []byte("A")) },
		"keep":     func() error { return w.KeepDocument(t.Context(), w.tenant, "policy", "shop", "v1", []byte("A")) },
		"register": func() error { return w.register(t, documentA) },
		"install": func() error {
			_, err := w.InstallBundle(t.Context(), w.operator(), bundle.Install{
				Manifest: bundle.Manifest{Name: "shop", Version: "1.0.0"}, Hash: "h", Documents: []bundle.StoredDocument{documentA},
			})
			return err
		},
	} {
		require.NoError(t, w.KeepDocument(t.Context(), w.tenant, "policy", "shop", "v1", []byte("B")))
		err := register()
		requireCode(t, jig.CodeConflict, err)
		require.Equal(t, "document_differs", jig.AsError(err).Reason, name)
		current, err := w.CurrentDocuments(t.Context(), w.tenant, "policy")
		require.NoError(t, err)
		require.Empty(t, current, name)
		body, err := w.DocumentAt(t.Context(), w.tenant, "policy", "shop", "v1")
		require.NoError(t, err)
		require.Equal(t, "B", string(body), name)
	}
	bundles, err := w.Bundles(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Empty(t, bundles)
}

func TestDocuments_OfTheGlobalTenant(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	conn, err := pgx.Connect(t.Context(), owner)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), `insert into documents (tenant_id, kind, name, version, body, current)
		values ('_global', 'agent', 'shared', 'v1', 'global', true)`)
	require.NoError(t, err)
	get := func(tenant string) string {
		body, err := db.Document(t.Context(), tenant, "agent", "shared")
		require.NoError(t, err)
		return string(body)
	}
	require.Equal(t, "global", get("one"))
	require.NoError(t, db.PutDocument(t.Context(), "one", "agent", "shared", "v1", []byte("own")))
	require.Equal(t, "own", get("one"), "the tenant's own document takes precedence")
	require.Equal(t, "global", get("two"))
	names, err := db.DocumentNames(t.Context(), "one", "agent")
	require.NoError(t, err)
	require.Equal(t, []string{"shared"}, names)
	for tenant, want := range map[string]string{"one": "own", "two": "global"} {
		body, err := db.DocumentAt(t.Context(), tenant, "agent", "shared", "v1")
		require.NoError(t, err)
		require.Equal(t, want, string(body))
	}
	require.NoError(t, db.PutDocument(t.Context(), "one", "agent", "shared", "v2", []byte("newer")))
	for tenant, want := range map[string]string{"one": "v2", "two": "v1"} {
		current, err := db.CurrentDocuments(t.Context(), tenant, "agent")
		require.NoError(t, err)
		require.Equal(t, []bundle.DocumentVersion{{Kind: "agent", Name: "shared", Version: want}}, current)
	}
	requireCode(t, jig.CodeNotPermitted, db.PutDocument(t.Context(), jig.GlobalTenant, "agent", "shared", "v2", nil))
	requireCode(t, jig.CodeInvalidInput, db.PutDocument(t.Context(), "", "agent", "shared", "v2", nil))
	for name, sql := range map[string]string{
		"insert": `insert into documents (tenant_id, kind, name, version, body, current) values ('_global', 'agent', 'x', 'v1', '', true)`,
		"tenant": `insert into tenants (tenant_id) values ('_global2')`,
		"update": `update documents set current = false where name = 'shared' and tenant_id = '_global'`,
	} {
		direct(t, app, jig.GlobalTenant, func(tx pgx.Tx) {
			_, err := tx.Exec(t.Context(), sql)
			require.Error(t, err, name)
		})
		direct(t, app, "two", func(tx pgx.Tx) {
			tag, err := tx.Exec(t.Context(), sql)
			require.True(t, err != nil || tag.RowsAffected() == 0, name)
		})
	}
}

// A list has what a tenant sees, page by page. The versions of a document say which one that is.
func TestDocuments_AreListedWithTheirVersions(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	conn, err := pgx.Connect(t.Context(), owner)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), `insert into documents (tenant_id, kind, name, version, body, current)
		values ('_global', 'agent', 'shared', 'v0', 'global', true), ('_global', 'policy', 'all', 'v0', 'global', true)`)
	require.NoError(t, err)
	for _, d := range [][]string{{"one", "shared", "v1"}, {"one", "shared", "v2"}, {"one", "Own", "v1"}, {"two", "theirs", "v1"}} {
		require.NoError(t, db.PutDocument(t.Context(), d[0], "agent", d[1], d[2], []byte(d[2])))
	}
	require.NoError(t, db.KeepDocument(t.Context(), "one", "agent", "shared", "draft", []byte("draft")))
	seen := func(tenant, kind string, after bundle.Key, limit int) (names []string) {
		list, err := db.SeenDocuments(t.Context(), tenant, kind, after, limit)
		require.NoError(t, err)
		for _, d := range list {
			require.True(t, d.Current)
			names = append(names, d.Kind+"/"+d.Name+" "+d.Version)
		}
		return names
	}
	require.Equal(t, []string{"agent/Own v1", "agent/shared v2", "policy/all v0"}, seen("one", "", bundle.Key{}, 10))
	require.Equal(t, []string{"agent/shared v2"}, seen("one", "", bundle.Key{Kind: "agent", Name: "Own"}, 1))
	require.Equal(t, []string{"policy/all v0"}, seen("one", "policy", bundle.Key{}, 10))
	require.Equal(t, []string{"agent/shared v0", "agent/theirs v1", "policy/all v0"}, seen("two", "", bundle.Key{}, 10))

	current := map[string]bool{}
	versions, err := db.DocumentVersions(t.Context(), "one", "agent", "shared", "", 10)
	require.NoError(t, err)
	for _, d := range versions {
		current[d.Version] = d.Current
		require.Equal(t, d.Version == "v0", d.Shared)
	}
	require.Equal(t, map[string]bool{"v0": false, "v1": false, "v2": true, "draft": false}, current)
	require.Equal(t, "draft", versions[0].Version, "the latest first")
	_, err = db.DocumentVersions(t.Context(), "two", "agent", "theris", "", 10)
	requireCode(t, jig.CodeNotFound, err)
	require.ErrorContains(t, err, "did you mean theirs?")
	_, err = db.DocumentVersions(t.Context(), "one", "agent", "theirs", "", 10)
	requireCode(t, jig.CodeNotFound, err)
}
