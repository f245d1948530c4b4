package thin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/spec"
)

// Records gives access to the entities and bundles of tenants. Records of other tenants appear not to exist.
type Records interface {
	// HasBundle reports whether the bundle is installed for the tenant now.
	HasBundle(ctx context.Context, tenant, bundle string) (bool, error)
	// Readable returns an entity that the call's principal may read. found is false for every other id, whether or not an entity has it.
	Readable(ctx context.Context, inv jig.Invocation, id string) (e entity.Entity, found bool, err error)
	// InWorkspace reports whether an entity is in a workspace.
	InWorkspace(ctx context.Context, tenant, workspace, id string) (bool, error)
	// Connected lists the entities that are connected with an entity and that the principal may read. Their contents are not needed.
	Connected(ctx context.Context, inv jig.Invocation, id string, which spec.ThinConnected) ([]entity.Entity, error)
	// Trespassed takes ids that were not found and records in the audit which of them belong to another tenant's entities.
	Trespassed(ctx context.Context, inv jig.Invocation, ids []string) error
	// Made returns the latest entity that was created under a key, even if it was deleted since. found is false if there is no such entity.
	Made(ctx context.Context, tenant, key string) (e entity.Entity, found bool, err error)
	// Create creates an entity after checking the principal's permission. If the key was used before, it returns the entity made then, and
	// created is false. missing lists related ids that do not exist for the principal; if there are any, nothing was created. Errors about
	// fields name the place in the document as their Field, e.g. creates.fields.module.
	Create(ctx context.Context, inv jig.Invocation, c Creation) (e entity.Entity, created bool, missing []string, err error)
}

// Creation is an entity to create.
type Creation struct {
	Type, Title string
	// Content holds the fields by name. Missing fields get their defaults.
	Content map[string]json.RawMessage
	// Relations holds ids by relation name. Workspaces holds names.
	Relations  map[string][]string
	Workspaces []string
	// Bundle is the bundle that the tool belongs to.
	Bundle string
	// Key makes the creation idempotent. Shared reports whether the key comes from the document and not from the call. Deleting the entity frees
	// a shared key.
	Key    string
	Shared bool
	// SessionID and Call identify the extraction that will fill the entity. They are empty if no extraction will.
	SessionID, Call string
}

// Store is the database access that [NewRecords] needs.
type Store interface {
	// BundleNames lists the bundles that are installed for a tenant.
	BundleNames(ctx context.Context, tenant string) ([]string, error)
	// InWorkspace returns which of the entities are in a workspace.
	InWorkspace(ctx context.Context, tenant, workspace string, ids []string) ([]string, error)
	// ConnectedEntities returns the entities that can be reached along relations. No types means all types.
	ConnectedEntities(ctx context.Context, tenant, id string, depth int, types []string, workspace string, limit int) ([]entity.Entity, error)
	// EntitiesElsewhere returns which of the ids belong to entities of other tenants.
	EntitiesElsewhere(ctx context.Context, tenant string, ids []string) ([]string, error)
	// RecordViolation records in the audit that a call tried to access another tenant's data.
	RecordViolation(ctx context.Context, by jig.Invocation, ids []string) error
	// LatestByKey returns the latest entity that was created under a key, even if it was deleted since.
	LatestByKey(ctx context.Context, tenant, key string) (e entity.Entity, found bool, err error)
	// CreateByKey creates an entity, or returns the entity that was created under its key. Deleting the entity frees a reusable key.
	CreateByKey(ctx context.Context, n entity.NewEntity, reusable bool) (e entity.Entity, created bool, err error)
}

// stored implements Records with the permissions of the principals.
type stored struct {
	store    Store
	entities guarded.Entities
}

// NewRecords returns access to stored entities, within the permissions of the principals.
func NewRecords(db Store, entities guarded.Entities) Records {
	return stored{store: db, entities: entities}
}

func (s stored) HasBundle(ctx context.Context, tenant, bundle string) (bool, error) {
	names, err := s.store.BundleNames(ctx, tenant)
	return slices.Contains(names, bundle), err
}

func (s stored) Readable(ctx context.Context, inv jig.Invocation, id string) (entity.Entity, bool, error) {
	return s.entities.Readable(ctx, inv, id)
}

func (s stored) InWorkspace(ctx context.Context, tenant, workspace, id string) (bool, error) {
	in, err := s.store.InWorkspace(ctx, tenant, workspace, []string{id})
	return len(in) == 1, err
}

// Connected lists the connected entities of the requested types that the caller may read.
func (s stored) Connected(ctx context.Context, inv jig.Invocation, id string, which spec.ThinConnected) ([]entity.Entity, error) {
	readable, err := s.entities.ReadableTypes(ctx, inv)
	if err != nil {
		return nil, err
	}
	types := slices.Sorted(maps.Keys(readable))
	if len(which.Types) > 0 {
		types = slices.DeleteFunc(types, func(name string) bool { return !slices.Contains(which.Types, name) })
	}
	if len(types) == 0 { // the store takes an empty list for all types
		return nil, nil
	}
	return s.store.ConnectedEntities(ctx, inv.Tenant, id, which.Depth, types, "", entity.MaxConnected)
}

// maxTrespasses bounds the audit rows that one call can cause. Writing more would take so long that the response time could reveal which
// ids exist in other tenants.
const maxTrespasses = 20

func (s stored) Trespassed(ctx context.Context, inv jig.Invocation, ids []string) error {
	foreign, err := s.store.EntitiesElsewhere(ctx, inv.Tenant, ids)
	if err != nil {
		return err
	}
	return s.store.RecordViolation(ctx, inv, foreign[:min(len(foreign), maxTrespasses)])
}

func (s stored) Made(ctx context.Context, tenant, key string) (entity.Entity, bool, error) {
	return s.store.LatestByKey(ctx, tenant, key)
}

func (s stored) Create(ctx context.Context, inv jig.Invocation, c Creation) (e entity.Entity, created bool, missing []string, err error) {
	n, missing, err := s.entities.New(ctx, inv, guarded.Draft{
		Type: c.Type, Title: c.Title, Content: c.Content, Relations: c.Relations, At: "creates.fields", RelationsAt: "creates.relations",
	})
	if err != nil || len(missing) > 0 {
		return e, false, missing, err
	}
	n.Key, n.Workspaces, n.Bundle, n.SessionID, n.Call = c.Key, c.Workspaces, c.Bundle, c.SessionID, c.Call
	e, created, err = s.store.CreateByKey(ctx, n, c.Shared)
	return e, created, nil, err
}
