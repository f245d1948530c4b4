package store

import (
	"context"
	"maps"
	"slices"

	"github.com/jig-run/jig"
)

// relationColumns are relations by name as two columns, each pair once.
func relationColumns(relations map[string][]string) (names, ends []string) {
	names, ends = []string{}, []string{}
	type end struct{ name, id string }
	seen := map[end]bool{}
	for _, name := range slices.Sorted(maps.Keys(relations)) {
		for _, id := range texts(relations[name]) {
			if e := (end{text(name), id}); !seen[e] { // two names may be one as they are stored
				seen[e] = true
				names, ends = append(names, e.name), append(ends, id)
			}
		}
	}
	return names, ends
}

func relationNames(relations map[string][]string) []string {
	names := make([]string, 0, len(relations))
	for name := range relations {
		names = append(names, text(name))
	}
	slices.Sort(names)
	return names
}

// Relate makes an entity point at another, by name; doing it twice changes nothing. NOT_FOUND when either is not there.
func (db *DB) Relate(ctx context.Context, tenant string, r jig.Relation) error {
	if r.Name == "" {
		return jig.Errorf(jig.CodeInvalidInput, "a relation needs a name").WithField("name")
	}
	from, to := text(r.From), text(r.To)
	return db.transact(ctx, tenant, func(t *tx) error {
		var made int64
		affected(t.queue("RelationsPut", tenant, from, []string{text(r.Name)}, []string{to}), &made)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if made == 0 {
			return t.missing(ctx, []string{from, to})
		}
		return t.commit(ctx)
	})
}

// Unrelate takes a relation away and reports whether there was one.
func (db *DB) Unrelate(ctx context.Context, tenant string, r jig.Relation) (bool, error) {
	var gone int64
	err := db.once(ctx, tenant, func(t *tx) {
		affected(t.queue("RelationRemove", tenant, text(r.From), text(r.Name), text(r.To)), &gone)
	})
	return gone > 0, err
}

// Connected lists the entities that can be reached from one along relations, either way, in at most depth steps (1 when it is
// not positive, jig.MaxConnectedDepth when it is more), the nearest first and without the one itself; at most
// jig.MaxConnected. With a workspace, only entities of it are found and passed through. NOT_FOUND when the entity is not there.
func (db *DB) Connected(ctx context.Context, tenant, id string, depth int, workspace string) ([]string, error) {
	var found []string
	err := db.transact(ctx, tenant, func(t *tx) (err error) {
		found, err = t.reach(ctx, id, depth, workspace)
		return err
	})
	return found, err
}

// ConnectedEntities returns what Connected finds of some types (of all when there is none), without contents: the tenant, the
// id, the type and the title alone, at most so many (jig.MaxConnected when limit is not positive).
func (db *DB) ConnectedEntities(
	ctx context.Context, tenant, id string, depth int, types []string, workspace string, limit int,
) ([]jig.Entity, error) {
	if limit <= 0 {
		limit = jig.MaxConnected
	}
	type brief struct{ EntityID, Type, Title string }
	var rows []brief
	err := db.transact(ctx, tenant, func(t *tx) error {
		rows = nil
		ids, err := t.reach(ctx, id, depth, workspace)
		if err != nil || len(ids) == 0 {
			return err
		}
		list(t.queue("EntitiesBrief", tenant, ids, texts(types), limit), &rows)
		return t.flush(ctx)
	})
	if err != nil {
		return nil, err
	}
	found := make([]jig.Entity, len(rows))
	for i, r := range rows {
		found[i] = jig.Entity{Tenant: tenant, ID: r.EntityID, Type: r.Type, Title: r.Title}
	}
	return found, nil
}

// reach is Connected within a transaction.
func (t *tx) reach(ctx context.Context, id string, depth int, workspace string) ([]string, error) {
	depth = min(max(depth, 1), jig.MaxConnectedDepth)
	id, workspace = text(id), text(workspace)
	var start *string
	value(t.queue("EntityPatchKey", t.tenant, id), &start) // null for none
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	if start == nil {
		return nil, noEntity(id)
	}
	var found []string
	seen, edge := map[string]bool{id: true}, []string{id}
	for step := 0; step < depth && len(edge) > 0; step++ {
		var next []string
		column(t.queue("EntityNeighbours", t.tenant, edge, workspace), &next)
		if err := t.flush(ctx); err != nil {
			return nil, err
		}
		edge = slices.DeleteFunc(next, func(id string) bool { return seen[id] })
		for _, id := range edge {
			seen[id] = true
		}
		if found = append(found, edge...); len(found) >= jig.MaxConnected {
			return found[:jig.MaxConnected], nil
		}
	}
	return found, nil
}

// AddToWorkspace makes entities a part of a workspace, which is there from its first entity on. NOT_FOUND names an entity
// that is not there; then none was added.
func (db *DB) AddToWorkspace(ctx context.Context, tenant, workspace string, ids ...string) error {
	if workspace == "" {
		return jig.Errorf(jig.CodeInvalidInput, "a workspace needs a name").WithField("workspace")
	}
	ids = texts(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return db.transact(ctx, tenant, func(t *tx) error {
		var added int64
		affected(t.queue("WorkspaceAdd", tenant, []string{text(workspace)}, ids), &added)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if added < int64(len(ids)) {
			return t.missing(ctx, ids)
		}
		return t.commit(ctx)
	})
}

// RemoveFromWorkspace takes entities out of a workspace; those that are not in it are passed over.
func (db *DB) RemoveFromWorkspace(ctx context.Context, tenant, workspace string, ids ...string) error {
	return db.once(ctx, tenant, func(t *tx) { t.queue("WorkspaceRemove", tenant, text(workspace), texts(ids)) })
}

// InWorkspace returns those of some entities that are in a workspace, in the order of the ids.
func (db *DB) InWorkspace(ctx context.Context, tenant, workspace string, ids []string) ([]string, error) {
	var held []string
	err := db.once(ctx, tenant, func(t *tx) { column(t.queue("WorkspaceHolds", tenant, text(workspace), texts(ids)), &held) })
	if err != nil {
		return nil, err
	}
	in := make(map[string]bool, len(held))
	for _, id := range held {
		in[id] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !in[id] }), nil
}

// checkWorkspace refuses a workspace that never had an entity; the empty one stands for none.
func (db *DB) checkWorkspace(ctx context.Context, tenant, workspace string) error {
	if workspace == "" {
		return nil
	}
	var yes *bool
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("WorkspaceExists", tenant, text(workspace)), &yes) })
	if err == nil && (yes == nil || !*yes) {
		return jig.Errorf(jig.CodeNotFound, "there is no workspace %q", text(workspace)).WithField("workspace")
	}
	return err
}
