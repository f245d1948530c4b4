package bundle

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
)

// Names lists the bundles that tenants have installed. It caches each list for a second. It is safe for concurrent use.
type Names struct {
	read  func(ctx context.Context, tenant string) ([]string, error)
	known *cache.Cache[string, []string]
}

// NewNames returns a Names that calls read for the bundles of a tenant.
func NewNames(read func(ctx context.Context, tenant string) ([]string, error)) *Names {
	return &Names{read: read, known: cache.OfTenants[[]string]()}
}

// BundleNames lists a tenant's bundles. The list is shared; callers must not modify it.
func (n *Names) BundleNames(ctx context.Context, tenant string) ([]string, error) {
	return n.known.Get(tenant, func([]string, bool) ([]string, error) { return n.read(ctx, tenant) })
}

// Forget makes a change of a tenant's bundles visible at once.
func (n *Names) Forget(tenant string) { n.known.Forget(tenant) }

// Visible returns the Go tools that are visible to a tenant with the given bundles installed.
func Visible(all []jig.Tool, tenant string, installed []string) []jig.Tool {
	return slices.DeleteFunc(slices.Clone(all), func(t jig.Tool) bool {
		return len(t.Tenants) > 0 && !slices.Contains(t.Tenants, tenant) || t.Bundle != "" && !slices.Contains(installed, t.Bundle)
	})
}
