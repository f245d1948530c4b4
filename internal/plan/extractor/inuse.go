package extractor

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// EntityStore reads documents and entities.
type EntityStore interface {
	bundle.Documents
	FilterEntities(ctx context.Context, tenant string, kind entity.Type, filter entity.Filter) (entity.Page, error)
}

// TypeInUse returns a function that finds the entity type that a tenant's entities were last checked against: the current version if there is
// one, otherwise the version of the most recently updated entity of that type.
func TypeInUse(store EntityStore) func(ctx context.Context, tenant, name string) (entity.Type, bool, error) {
	types := NewTypes(store)
	return func(ctx context.Context, tenant, name string) (entity.Type, bool, error) {
		versions, err := store.CurrentDocuments(ctx, tenant, string(spec.KindEntityType))
		if err != nil {
			return entity.Type{}, false, err
		}
		i := slices.IndexFunc(versions, func(v bundle.DocumentVersion) bool { return v.Name == name })
		if i >= 0 {
			t, err := types.Read(ctx, tenant, versions[i])
			return t, err == nil, err
		}
		page, err := store.FilterEntities(ctx, tenant, entity.Type{Name: name}, entity.Filter{
			Limit: 1, Sort: []entity.FilterSort{{Field: entity.FilterUpdatedAt, Desc: true}},
		})
		if err != nil || len(page.Entities) == 0 {
			return entity.Type{}, false, err
		}
		t, err := types.Read(ctx, tenant, bundle.DocumentVersion{
			Kind: string(spec.KindEntityType), Name: name, Version: page.Entities[0].TypeVersion,
		})
		if jig.CodeOf(err) == jig.CodeNotFound {
			return entity.Type{}, false, nil
		}
		return t, err == nil, err
	}
}
