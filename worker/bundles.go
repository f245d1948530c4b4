package worker

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles"
	bundletools "github.com/jig-run/jig/internal/builtin/bundles"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy/current"
)

// bundleStore stores bundles. It clears the cache of bundle names, so a change takes effect at once on the worker that made it.
type bundleStore struct {
	*store.DB
	names *bundle.Names
}

// InstallBundle installs a bundle for a tenant.
func (s bundleStore) InstallBundle(ctx context.Context, by jig.Invocation, b bundle.Install) (bundle.Installed, error) {
	defer s.names.Forget(by.Tenant)
	return s.DB.InstallBundle(ctx, by, b)
}

// RemoveBundle takes a tenant's bundle out of use.
func (s bundleStore) RemoveBundle(
	ctx context.Context, by jig.Invocation, name, shown string,
) (gone bundle.Bundle, removed []bundle.DocumentVersion, err error) {
	defer s.names.Forget(by.Tenant)
	return s.DB.RemoveBundle(ctx, by, name, shown)
}

// bundleOptions returns the options of the tools that install bundles.
func bundleOptions(db *store.DB, names *bundle.Names, known *current.Catalog) bundletools.Options {
	return bundletools.Options{
		Store: bundleStore{DB: db, names: names}, Known: known.KnownWith, Check: checkDocument,
		TypeOf: extractor.TypeInUse(db),
	}
}

// shipper is the principal that installs the bundles shipped with jig.
const shipper = "worker"

// installBundles installs the shipped bundles for the default tenant.
func installBundles(ctx context.Context, db *store.DB, o bundletools.Options, logger *slog.Logger) error {
	shipped, err := bundles.Bundles()
	if err != nil {
		return err
	}
	by := jig.Invocation{Tenant: jig.DefaultTenant, Principal: jig.Principal{ID: shipper}, Attempt: 1, Logger: logger}
	for _, b := range shipped {
		if err := o.InstallShipped(ctx, db, by, b); err != nil {
			return err
		}
	}
	return nil
}
