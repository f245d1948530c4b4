package store

import (
	"context"
	"maps"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// relationColumns returns relations by name as two columns, with each pair once.
func relationColumns(relations map[string][]string) (names, ends []string) {
	names, ends = []string{}, []string{}
	type end struct{ name, id string }
	seen := map[end]bool{}
	for _, name := range slices.Sorted(maps.Keys(relations)) {
		for _, id := range texts(relations[name]) {
			if e := (end{text(name), id}); !seen[e] { // two names may be equal once they are cleaned
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

// Relate adds a named relation from an entity to another. Adding it twice changes nothing. It returns NOT_FOUND when either entity does
// not exist.
func (db *DB) Relate(ctx context.Context, tenant string, r entity.Relation) error {
	if r.Name == "" {
		return jig.Errorf(jig.CodeInvalidInput, "a relation needs a name").WithField("name")
	}
	from, to := text(r.From), text(r.To)
	return db.transact(ctx, tenant, func(t *tx) error {
		var made int64
		affected(t.queue("RelationsPut", tenant, from, []string{text(r.Name)}, []string{to}), &made)
		if entity.Tainted(ctx) {
			t.queue("EntityDistrust", tenant, from)
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		if made == 0 {
			return t.missing(ctx, []string{from, to})
		}
		return t.commit(ctx)
	})
}

// RelationsOf lists the relations of an entity with entities of the given types, those that it points at first. It returns none for an entity
// that does not exist.
func (db *DB) RelationsOf(ctx context.Context, tenant, id string, types []string, limit int) ([]entity.RelatedEntity, error) {
	id = text(id)
	related, err := ask(ctx, db, tenant, list[entity.RelatedEntity], "RelationsOf", tenant, id, texts(types), limit)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(related))
	for i, r := range related {
		ids[i] = r.EntityID
	}
	return related, db.markRead(ctx, tenant, ids...)
}

// Connected lists the entities that can be reached from an entity along relations, in either direction, in at most depth steps (1 when
// depth is not positive, at most [entity.MaxConnectedDepth]). The nearest come first, the entity itself is not included, and the list has at
// most [entity.MaxConnected] ids. With a workspace, only its entities are found and passed through. It returns NOT_FOUND when the entity
// does not exist.
func (db *DB) Connected(ctx context.Context, tenant, id string, depth int, workspace string) ([]string, error) {
	var found []string
	err := db.transact(ctx, tenant, func(t *tx) (err error) {
		found, err = t.reach(ctx, id, depth, workspace)
		return err
	})
	return found, err
}

// ConnectedEntities returns the entities that [DB.Connected] finds, limited to some types (all when types is empty). Only the
// tenant, id, type and title are set. At most limit entities are returned ([entity.MaxConnected] when limit is not positive).
func (db *DB) ConnectedEntities(
	ctx context.Context, tenant, id string, depth int, types []string, workspace string, limit int,
) ([]entity.Entity, error) {
	if limit <= 0 {
		limit = entity.MaxConnected
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
	found, ids := make([]entity.Entity, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		found[i], ids[i] = entity.Entity{Tenant: tenant, ID: r.EntityID, Type: r.Type, Title: r.Title}, r.EntityID
	}
	return found, db.markRead(ctx, tenant, ids...)
}

// reach is [DB.Connected] within a transaction.
func (t *tx) reach(ctx context.Context, id string, depth int, workspace string) ([]string, error) {
	depth = min(max(depth, 1), entity.MaxConnectedDepth)
	id, workspace = text(id), text(workspace)
	var start *string
	value(t.queue("EntityPatchKey", t.tenant, id), &start) // nil when there is no such entity
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
		if found = append(found, edge...); len(found) >= entity.MaxConnected {
			return found[:entity.MaxConnected], nil
		}
	}
	return found, nil
}

// InWorkspace returns the given entities that are in a workspace, in the order of ids.
func (db *DB) InWorkspace(ctx context.Context, tenant, workspace string, ids []string) ([]string, error) {
	held, err := ask(ctx, db, tenant, column[string], "WorkspaceHolds", tenant, text(workspace), texts(ids))
	if err != nil {
		return nil, err
	}
	in := make(map[string]bool, len(held))
	for _, id := range held {
		in[id] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !in[id] }), nil
}

// checkWorkspace returns NOT_FOUND for a workspace that never had an entity. "" means no workspace.
func (db *DB) checkWorkspace(ctx context.Context, tenant, workspace string) error {
	if workspace == "" {
		return nil
	}
	yes, err := ask(ctx, db, tenant, value[bool], "WorkspaceExists", tenant, text(workspace))
	if err == nil && !orZero(yes) {
		return jig.Errorf(jig.CodeNotFound, "there is no workspace %q", text(workspace)).WithField("workspace")
	}
	return err
}
