// Package guarded reads and prepares entities on behalf of principals, within their permissions (see [entity.May]). Entities that a
// principal may not read appear not to exist. The tools for entities, thin tools and extractions use it. It must not know how entities are
// stored, nor how contents are checked.
package guarded

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/toolname"
)

// Entities gives access to the entities of tenants. All fields are required.
type Entities struct {
	Store Store
	// Types returns a tenant's entity types. Entities of other types do not exist.
	Types func(ctx context.Context, tenant string) ([]entity.Type, error)
	// Check returns INVALID_INPUT, with pointers into the content, if the content does not fit the type. If partial is true, required fields
	// may be missing.
	Check func(t entity.Type, content json.RawMessage, partial bool) error
}

// Store reads entities without regard to permissions. Those of other tenants are NOT_FOUND, like entities that do not exist.
type Store interface {
	Entities(ctx context.Context, tenant string, ids []string) ([]entity.Entity, error)
	// EntityProgress returns an entity and how its tasks ended in earlier extractions, by task id.
	EntityProgress(ctx context.Context, tenant, id string) (entity.Entity, map[string]json.RawMessage, error)
	// Connected lists the entities that can be reached along relations in either direction.
	Connected(ctx context.Context, tenant, id string, depth int, workspace string) ([]string, error)
	// Sources returns the given entities and their texts, with hashes and at most the given number of bytes of bodies.
	Sources(ctx context.Context, tenant string, ids []string, bytes int) (entity.Sources, error)
}

// ReadableTypes returns the types of the call's tenant that its principal may read, by name.
func (g Entities) ReadableTypes(ctx context.Context, inv jig.Invocation) (map[string]entity.Type, error) {
	all, err := g.Types(ctx, inv.Tenant)
	if err != nil {
		return nil, err
	}
	return entity.Readable(inv.Principal, all), nil
}

// Type returns a type on which the principal may perform an action. A type that it may not read is NOT_FOUND.
func (g Entities) Type(ctx context.Context, inv jig.Invocation, at, name string, action entity.Action) (entity.Type, error) {
	types, err := g.ReadableTypes(ctx, inv)
	if err != nil {
		return entity.Type{}, err
	}
	t, ok := types[name]
	if !ok {
		return t, jig.Errorf(jig.CodeNotFound, "there is no entity type %q", name).WithField(at).WithHint(toolname.EntitiesListTypes + " shows those that you may read")
	}
	return t, entity.Permit(inv.Principal, name, action)
}

// Entity returns an entity on which the principal may perform an action. An entity that it may not read is NOT_FOUND.
func (g Entities) Entity(ctx context.Context, inv jig.Invocation, at, id string, action entity.Action) (entity.Entity, entity.Type, error) {
	types, err := g.ReadableTypes(ctx, inv)
	if err != nil {
		return entity.Entity{}, entity.Type{}, err
	}
	found, err := g.Store.Entities(ctx, inv.Tenant, []string{id})
	if err != nil {
		return entity.Entity{}, entity.Type{}, err
	}
	found = entity.Visible(types, found)
	if len(found) != 1 {
		return entity.Entity{}, entity.Type{}, NotFound(at, id)
	}
	return found[0], types[found[0].Type], entity.Permit(inv.Principal, found[0].Type, action)
}

// Readable returns an entity that the call's principal may read. found is false for every other id, whether or not such an entity exists.
func (g Entities) Readable(ctx context.Context, inv jig.Invocation, id string) (e entity.Entity, found bool, err error) {
	e, _, err = g.Entity(ctx, inv, "id", id, entity.ActionRead)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return entity.Entity{}, false, nil
	}
	return e, err == nil, err
}

// NotFound returns the error for an entity that does not exist for the principal.
func NotFound(at, id string) *jig.Error {
	return jig.Errorf(jig.CodeNotFound, "there is no entity %q", id).WithField(at).
		WithHint(toolname.EntitiesFilter + " and " + toolname.EntitiesSearch + " find those that you may read")
}

// Complete fills in the defaults of a new entity and checks its content. If the type has fields that tasks fill, these may be missing.
func (g Entities) Complete(
	t entity.Type, given map[string]json.RawMessage, at string,
) (raw json.RawMessage, content map[string]json.RawMessage, err error) {
	awaits := false
	content = map[string]json.RawMessage{}
	for _, f := range t.Fields {
		awaits = awaits || f.Task != ""
		if len(f.Default) > 0 {
			content[f.Name] = f.Default
		}
	}
	maps.Copy(content, given)
	for _, f := range t.Fields {
		if _, ok := content[f.Name]; awaits && f.Required && f.Task == "" && !ok {
			return nil, nil, jig.Errorf(jig.CodeInvalidInput, "the field %q is required", jig.Known(f.Name)).WithField(at)
		}
	}
	raw, err = g.CheckFields(t, content, awaits, at)
	return raw, content, err
}

// CheckFields encodes fields as an entity's content and checks the content. at is the content's position in the input; it becomes a prefix
// of the pointers in errors.
func (g Entities) CheckFields(t entity.Type, fields map[string]json.RawMessage, partial bool, at string) (json.RawMessage, error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write the content: %w", err)
	}
	if err := g.Check(t, b, partial); err != nil {
		e := *jig.AsError(err)
		e.Field = at + e.Field
		e.Violations = slices.Clone(e.Violations)
		for i := range e.Violations {
			e.Violations[i].Pointer = at + e.Violations[i].Pointer
		}
		return nil, &e
	}
	return b, nil
}

// FieldAt finds a field of a type by its dotted name.
func FieldAt(t entity.Type, at, name string) (entity.Field, error) {
	fields, found := t.Fields, entity.Field{}
	for part := range strings.SplitSeq(name, ".") {
		i := slices.IndexFunc(fields, func(f entity.Field) bool { return f.Name == part })
		if i < 0 || part == "" {
			return found, jig.Errorf(jig.CodeInvalidInput, "the type %s has no field %q", jig.Known(t.Name), name).WithField(at).
				WithHint(toolname.EntitiesListTypes + " with the type shows its fields")
		}
		if found, fields = fields[i], nil; found.Type == entity.FieldObject {
			fields = found.Fields
		}
	}
	return found, nil
}
