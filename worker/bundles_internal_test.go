package worker

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles"
	bundletools "github.com/jig-run/jig/internal/builtin/bundles"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/spec"
)

// optionsOf returns the options of the tools that install bundles, without a catalog.
func optionsOf(db *store.DB) bundletools.Options {
	names := bundle.NewNames(db.BundleNames)
	o := bundleOptions(db, names, newDocuments(db, names, func() []jig.Tool { return nil }))
	o.Known = func(context.Context, string, string) (spec.Catalog, error) { return spec.Catalog{}, nil }
	return o
}

// A shipped bundle is installed only once: a bundle that a person removed stays removed, and a document that somebody registered in its
// place is kept.
func TestBundles_ShippedOnesAreInstalledOnce(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	o := optionsOf(db)
	tenant := "shipped-" + jig.NewSessionID()[4:14]
	by := jig.Invocation{Tenant: tenant, Principal: jig.Principal{ID: shipper}, Logger: slog.New(slog.DiscardHandler)}
	shipped, err := bundles.Bundles()
	require.NoError(t, err)
	b := shipped[0]
	has := func() bool {
		names, err := db.BundleNames(t.Context(), tenant)
		require.NoError(t, err)
		return len(names) == 1
	}
	for range 2 {
		require.NoError(t, o.InstallShipped(t.Context(), db, by, b))
		require.True(t, has())
	}
	_, _, err = db.RemoveBundle(t.Context(), by, b.Manifest.Name, "")
	require.NoError(t, err)
	require.NoError(t, o.InstallShipped(t.Context(), db, by, b))
	require.False(t, has(), "it was removed")

	by.Tenant, tenant = tenant+"b", tenant+"b"
	taken := b.Documents[0]
	require.NoError(t, db.PutDocument(t.Context(), tenant, taken.Kind.Stored(), taken.Name, "mine", []byte("mine")))
	require.NoError(t, o.InstallShipped(t.Context(), db, by, b), "the worker starts all the same")
	require.False(t, has())
	body, err := db.Document(t.Context(), tenant, taken.Kind.Stored(), taken.Name)
	require.NoError(t, err)
	require.Equal(t, "mine", string(body))
}

// The installation itself records that a bundle was installed once. A removed bundle does not come back, even if a worker dies right after
// installing it or an operator installs it first.
func TestShippedBundle_IsRecordedWithItsInstallation(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	o := optionsOf(db)
	by := jig.Invocation{Tenant: "acme", Principal: jig.Principal{ID: "ana"}, Logger: slog.New(slog.DiscardHandler)}
	shipped, err := bundles.Bundles()
	require.NoError(t, err)
	_, err = o.Install(t.Context(), by, shipped[0], nil, false)
	require.NoError(t, err)
	_, _, err = db.RemoveBundle(t.Context(), by, shipped[0].Manifest.Name, "")
	require.NoError(t, err)

	require.NoError(t, o.InstallShipped(t.Context(), db, by, shipped[0]))
	names, err := db.BundleNames(t.Context(), by.Tenant)
	require.NoError(t, err)
	require.Empty(t, names, "it was removed")
}
