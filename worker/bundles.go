package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
	bundletools "github.com/jig-run/jig/tools/builtin/bundles"
)

// bundleNames caches the names of each tenant's bundles. A change takes effect on every worker within policyAge.
type bundleNames struct {
	store interface {
		BundleNames(ctx context.Context, tenant string) ([]string, error)
	}

	mu    sync.Mutex
	known map[string]tenantBundles
	// changes counts the calls of forget, so that names read before a change are not cached after it.
	changes int
}

// tenantBundles are a tenant's bundle names and the time they were read.
type tenantBundles struct {
	read  time.Time
	names []string
}

func newBundleNames(db *store.DB) *bundleNames {
	return &bundleNames{store: db, known: map[string]tenantBundles{}}
}

// BundleNames lists a tenant's bundles, read at most policyAge ago. The list is shared; callers must not modify it.
func (b *bundleNames) BundleNames(ctx context.Context, tenant string) ([]string, error) {
	b.mu.Lock()
	known, ok := b.known[tenant]
	changes := b.changes
	b.mu.Unlock()
	if ok && time.Since(known.read) < policyAge {
		return known.names, nil
	}
	read := time.Now()
	names, err := b.store.BundleNames(ctx, tenant)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changes == changes {
		remember(b.known, tenant, tenantBundles{read: read, names: names})
	}
	return names, nil
}

// forget discards what is cached for a tenant, so that it is read again.
func (b *bundleNames) forget(tenant string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, tenant)
	b.changes++
}

// bundleStore stores bundles. It clears the cache of bundle names, so a change takes effect at once on the worker that made it.
type bundleStore struct {
	*store.DB
	names *bundleNames
}

// InstallBundle installs a bundle for a tenant.
func (s bundleStore) InstallBundle(ctx context.Context, by jig.Invocation, b bundle.Install) (bundle.Installed, error) {
	defer s.names.forget(by.Tenant)
	return s.DB.InstallBundle(ctx, by, b)
}

// RemoveBundle takes a tenant's bundle out of use.
func (s bundleStore) RemoveBundle(ctx context.Context, by jig.Invocation, name string) (bundle.Bundle, error) {
	defer s.names.forget(by.Tenant)
	return s.DB.RemoveBundle(ctx, by, name)
}

// Suggest returns the hint for an unknown tool name.
func (b *bundleNames) Suggest(name string, names []string) string {
	return suggest.Hint(name, names, "see the catalogue for the tools there are")
}

// seen returns the Go tools that are visible to a tenant with the given bundles installed.
func seen(all []jig.Tool, tenant string, installed []string) []jig.Tool {
	return slices.DeleteFunc(slices.Clone(all), func(t jig.Tool) bool {
		return len(t.Tenants) > 0 && !slices.Contains(t.Tenants, tenant) || t.Bundle != "" && !slices.Contains(installed, t.Bundle)
	})
}

// bundleOptions returns the options of the tools that install bundles.
func bundleOptions(kept documents, registry **tools.Registry) bundletools.Options {
	return bundletools.Options{
		Store: bundleStore{DB: kept.db, names: kept.bundles}, Known: kept.knownWith(registry), KindOf: storedKind, Check: checkDocument,
		TypeOf: typeOf(kept.db),
	}
}

// typeOf returns a function that finds the entity type that a tenant's entities were last checked against: the current version if there is
// one, otherwise the version of the most recently updated entity of that type.
func typeOf(db *store.DB) func(ctx context.Context, tenant, name string) (entity.Type, bool, error) {
	types := extractor.NewTypes(db)
	return func(ctx context.Context, tenant, name string) (entity.Type, bool, error) {
		versions, err := db.CurrentDocuments(ctx, tenant, activities.DocumentEntityType)
		if err != nil {
			return entity.Type{}, false, err
		}
		i := slices.IndexFunc(versions, func(v bundle.DocumentVersion) bool { return v.Name == name })
		if i >= 0 {
			t, err := types.Read(ctx, tenant, versions[i])
			return t, err == nil, err
		}
		page, err := db.FilterEntities(ctx, tenant, entity.Type{Name: name}, entity.Filter{
			Limit: 1, Sort: []entity.FilterSort{{Field: entity.FilterUpdatedAt, Desc: true}},
		})
		if err != nil || len(page.Entities) == 0 {
			return entity.Type{}, false, err
		}
		t, err := types.Read(ctx, tenant, bundle.DocumentVersion{
			Kind: activities.DocumentEntityType, Name: name, Version: page.Entities[0].TypeVersion,
		})
		if jig.CodeOf(err) == jig.CodeNotFound {
			return entity.Type{}, false, nil
		}
		return t, err == nil, err
	}
}

// shipper is the principal that installs the bundles shipped with jig.
const shipper = "worker"

// installBundles installs the shipped bundles for the default tenant, once per hash: a bundle that somebody removed stays removed, and a
// document that somebody registered under the name of a shipped one is kept. Other workers may run it at the same time.
func installBundles(ctx context.Context, db *store.DB, o bundletools.Options, logger *slog.Logger) error {
	shipped, err := bundles.Bundles()
	if err != nil {
		return err
	}
	by := jig.Invocation{Tenant: jig.DefaultTenant, Principal: jig.Principal{ID: shipper}, Attempt: 1, Logger: logger}
	for _, b := range shipped {
		if err := installShipped(ctx, db, o, by, b); err != nil {
			return err
		}
	}
	return nil
}

func installShipped(ctx context.Context, db *store.DB, o bundletools.Options, by jig.Invocation, b spec.Bundle) error {
	name := slog.String("bundle", b.Manifest.Name)
	_, err := db.DocumentAt(ctx, by.Tenant, store.KindBundle, b.Manifest.Name, b.Hash)
	if err == nil || jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	done, err := o.Install(ctx, by, b, nil, false)
	switch jig.CodeOf(err) { //nolint:exhaustive // any other error keeps the worker from starting
	case jig.CodeConflict, jig.CodeInvalidInput:
		by.Logger.WarnContext(ctx, "a shipped bundle is not installed: something else has its place", name,
			slog.String("tenant", by.Tenant), slog.String("why", err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	if done.Changed {
		by.Logger.InfoContext(ctx, "bundle installed", name, slog.String("version", done.Version), slog.Int("documents", len(done.Documents)))
	}
	return nil
}
