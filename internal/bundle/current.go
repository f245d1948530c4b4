package bundle

import (
	"context"
	"iter"
	"slices"

	"github.com/jig-run/jig/internal/cache"
)

// Documents reads the documents that tenants see: their own, and those of tenant _global.
type Documents interface {
	// CurrentDocuments lists the current versions of a kind, sorted by name.
	CurrentDocuments(ctx context.Context, tenant, kind string) ([]DocumentVersion, error)
	// DocumentAt returns the body of a version; NOT_FOUND if the tenant never had it.
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
}

// Current keeps one value for each tenant, made from all its current documents of a kind. A new version of a document takes effect within a
// second. It is safe for concurrent use.
type Current[V any] struct {
	documents Documents
	kind      string
	read      func(ctx context.Context, tenant string, documents []StoredDocument) (V, error)
	tenants   *cache.Cache[string, made[V]]
}

// made is a value with the versions that it was made from.
type made[V any] struct {
	versions []DocumentVersion
	value    V
}

// NewCurrent returns a Current that calls read for each tenant whose documents have changed. It gets the documents sorted by name.
func NewCurrent[V any](documents Documents, kind string, read func(ctx context.Context, tenant string, documents []StoredDocument) (V, error)) *Current[V] {
	return &Current[V]{documents: documents, kind: kind, read: read, tenants: cache.OfTenants[made[V]]()}
}

// Of returns the value of a tenant. It is shared; callers must not modify it.
func (c *Current[V]) Of(ctx context.Context, tenant string) (V, error) {
	of, err := c.tenants.Get(tenant, func(stale made[V], known bool) (made[V], error) {
		versions, err := c.documents.CurrentDocuments(ctx, tenant, c.kind)
		if err != nil || known && slices.Equal(versions, stale.versions) {
			return stale, err
		}
		return c.make(ctx, tenant, versions)
	})
	return of.value, err
}

// Forget makes the next call of Of read what is stored now.
func (c *Current[V]) Forget(tenant string) { c.tenants.Forget(tenant) }

func (c *Current[V]) make(ctx context.Context, tenant string, versions []DocumentVersion) (made[V], error) {
	of := made[V]{versions: versions}
	documents := make([]StoredDocument, len(versions))
	for i, v := range versions {
		body, err := c.documents.DocumentAt(ctx, tenant, v.Kind, v.Name, v.Version)
		if err != nil {
			return of, err
		}
		documents[i] = StoredDocument{DocumentVersion: v, Body: body}
	}
	var err error
	of.value, err = c.read(ctx, tenant, documents)
	return of, err
}

// All returns the tenants whose value was asked for lately, with that value, which may be out of date.
func (c *Current[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for tenant, of := range c.tenants.All() {
			if !yield(tenant, of.value) {
				return
			}
		}
	}
}
