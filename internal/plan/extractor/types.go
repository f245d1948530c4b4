package extractor

import (
	"context"
	"sync"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// Types reads the entity types that tenants have registered and parses each version once. It is safe for concurrent use.
type Types struct {
	documents bundle.Documents

	mu    sync.Mutex
	known map[typeKey]entity.Type
}

// typeKey identifies a version of an entity type for a tenant.
type typeKey struct {
	tenant string
	bundle.DocumentVersion
}

// maxEntityTypes bounds the parsed versions that are cached.
const maxEntityTypes = 10_000

// NewTypes returns a reader of the entity types in documents.
func NewTypes(documents bundle.Documents) *Types {
	return &Types{documents: documents, known: map[typeKey]entity.Type{}}
}

// Of returns a tenant's entity types, sorted by name.
func (e *Types) Of(ctx context.Context, tenant string) ([]entity.Type, error) {
	versions, err := e.documents.CurrentDocuments(ctx, tenant, string(spec.KindEntityType))
	if err != nil {
		return nil, err
	}
	list := make([]entity.Type, 0, len(versions))
	for _, v := range versions {
		t, err := e.Read(ctx, tenant, v)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// Read returns the parsed version of an entity type, as a tenant sees it.
func (e *Types) Read(ctx context.Context, tenant string, v bundle.DocumentVersion) (entity.Type, error) {
	key := typeKey{tenant, v}
	e.mu.Lock()
	t, ok := e.known[key]
	e.mu.Unlock()
	if ok {
		return t, nil
	}
	body, err := e.documents.DocumentAt(ctx, tenant, v.Kind, v.Name, v.Version)
	if err != nil {
		return t, err
	}
	if t, err = spec.LoadEntityType(v.Name, body); err != nil {
		return t, jig.Errorf(jig.CodeUnavailable, "the entity type %s (version %s) cannot be read: %w", v.Name, jig.ShortVersion(v.Version), err).
			WithHint("register one that this worker reads: jig validate FILE, then jig catalog add FILE")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.known) >= maxEntityTypes {
		clear(e.known)
	}
	e.known[key] = t
	return t, nil
}
