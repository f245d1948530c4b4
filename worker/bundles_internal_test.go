package worker

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// counted counts how often the bundle names of a tenant are read.
type counted struct {
	names map[string][]string
	asked int
}

func (c *counted) BundleNames(_ context.Context, tenant string) ([]string, error) {
	c.asked++
	return c.names[tenant], nil
}

func TestBundleNamesAreReadOnceASecond(t *testing.T) {
	t.Parallel()
	c := &counted{names: map[string][]string{"acme": {"notes"}}}
	b := &bundleNames{store: c, known: map[string]tenantBundles{}}
	for range 3 {
		names, err := b.BundleNames(t.Context(), "acme")
		require.NoError(t, err)
		require.Equal(t, []string{"notes"}, names)
	}
	require.Equal(t, 1, c.asked)
	names, err := b.BundleNames(t.Context(), "zeta")
	require.NoError(t, err)
	require.Empty(t, names, "each tenant has its own")
	c.names["acme"] = nil
	b.forget("acme")
	names, err = b.BundleNames(t.Context(), "acme")
	require.NoError(t, err)
	require.Empty(t, names)
}

// slow calls during while it is being read, so that a test can change the names meanwhile.
type slow struct {
	counted
	during func()
}

func (s *slow) BundleNames(ctx context.Context, tenant string) ([]string, error) {
	names, err := s.counted.BundleNames(ctx, tenant)
	s.during()
	return names, err
}

// Names that were read before a change are not cached after it.
func TestBundleNamesThatChangeWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	s := &slow{counted: counted{names: map[string][]string{}}}
	b := &bundleNames{store: s, known: map[string]tenantBundles{}}
	s.during = func() {
		s.names["acme"] = []string{"notes"}
		b.forget("acme")
	}
	_, err := b.BundleNames(t.Context(), "acme")
	require.NoError(t, err)
	s.during = func() {}
	names, err := b.BundleNames(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, []string{"notes"}, names)
}

func TestSeenTools(t *testing.T) {
	t.Parallel()
	all := []jig.Tool{{Name: "a.all"}, {Name: "a.notes", Bundle: "notes"}, {Name: "a.acme", Tenants: []string{"acme"}}}
	require.Len(t, seen(all, "acme", []string{"notes"}), 3)
	require.Equal(t, []jig.Tool{{Name: "a.all"}}, seen(all, "zeta", nil))
	require.Len(t, all, 3)
}

// A shipped bundle is installed only once: a bundle that a person removed stays removed, and a document that somebody registered in its
// place is kept.
func TestShippedBundlesAreInstalledOnce(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	kept := documents{db: db, bundles: newBundleNames(db)}
	registry, err := tools.NewRegistry()
	require.NoError(t, err)
	o := bundleOptions(kept, &registry)
	o.Known = func(context.Context, string, string) (spec.Catalogue, error) { return spec.Catalogue{}, nil }
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
		require.NoError(t, installShipped(t.Context(), db, o, by, b))
		require.True(t, has())
	}
	_, err = db.RemoveBundle(t.Context(), by, b.Manifest.Name)
	require.NoError(t, err)
	require.NoError(t, installShipped(t.Context(), db, o, by, b))
	require.False(t, has(), "it was removed")

	by.Tenant, tenant = tenant+"b", tenant+"b"
	taken := b.Documents[0]
	require.NoError(t, db.PutDocument(t.Context(), tenant, storedKind(taken.Kind), taken.Name, "mine", []byte("mine")))
	require.NoError(t, installShipped(t.Context(), db, o, by, b), "the worker starts all the same")
	require.False(t, has())
	body, err := db.Document(t.Context(), tenant, storedKind(taken.Kind), taken.Name)
	require.NoError(t, err)
	require.Equal(t, "mine", string(body))
}

// The installation itself records that a bundle was installed once. A removed bundle does not come back, even if a worker dies right after
// installing it or an operator installs it first.
func TestShippedBundleIsKnownWithItsInstallation(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	registry, err := tools.NewRegistry()
	require.NoError(t, err)
	o := bundleOptions(documents{db: db, bundles: newBundleNames(db)}, &registry)
	o.Known = func(context.Context, string, string) (spec.Catalogue, error) { return spec.Catalogue{}, nil }
	by := jig.Invocation{Tenant: "acme", Principal: jig.Principal{ID: "ana"}, Logger: slog.New(slog.DiscardHandler)}
	shipped, err := bundles.Bundles()
	require.NoError(t, err)
	_, err = o.Install(t.Context(), by, shipped[0], nil, false)
	require.NoError(t, err)
	_, err = db.RemoveBundle(t.Context(), by, shipped[0].Manifest.Name)
	require.NoError(t, err)

	require.NoError(t, installShipped(t.Context(), db, o, by, shipped[0]))
	names, err := db.BundleNames(t.Context(), by.Tenant)
	require.NoError(t, err)
	require.Empty(t, names, "it was removed")
}
