package store

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// entityRow is a row of entities, with the columns that are read.
type entityRow struct {
	entity.Entity

	Untrusted bool
}

// read returns the entity, which a caller has read.
func (r *entityRow) read(ctx context.Context) entity.Entity {
	if r.Untrusted {
		entity.MarkRead(ctx)
	}
	if len(r.Provenance) == 0 {
		r.Provenance = nil
	}
	return r.Entity
}

func entities(ctx context.Context, rows []entityRow) []entity.Entity {
	list := make([]entity.Entity, len(rows))
	for i := range rows {
		list[i] = rows[i].read(ctx)
	}
	return list
}

// markRead records in the context that a caller reads one of these entities or their texts, if one of them is not trusted.
func (db *DB) markRead(ctx context.Context, tenant string, ids ...string) error {
	if len(ids) == 0 || !entity.Traced(ctx) {
		return nil
	}
	untrusted, err := ask(ctx, db, tenant, value[bool], "EntitiesUntrusted", tenant, ids)
	if err == nil && orZero(untrusted) {
		entity.MarkRead(ctx)
	}
	return err
}

func noEntity(id string) *jig.Error {
	return jig.Errorf(jig.CodeNotFound, "there is no entity %q", text(id)).WithField("entity_id")
}

// CreateEntity stores an entity with its relations, its workspaces and the call that will fill it, if any. The store chooses the id.
// If the key was used before, nothing changes and the entity created then is returned with created false; CONFLICT means that it has
// another type. NOT_FOUND names the missing end of a relation. UNAVAILABLE means that the type has changed since the content was
// checked: check it again.
func (db *DB) CreateEntity(ctx context.Context, n entity.NewEntity) (e entity.Entity, created bool, err error) {
	if err := jig.CheckTenant(n.Tenant); err != nil {
		return entity.Entity{}, false, err
	}
	if n.Type == "" {
		return entity.Entity{}, false, jig.Errorf(jig.CodeInvalidInput, "an entity needs a type").WithField("type")
	}
	content, err := contentOf(n.Content)
	if err != nil {
		return entity.Entity{}, false, err
	}
	provenance, err := provenanceOf(n.Provenance)
	if err != nil {
		return entity.Entity{}, false, err
	}
	names, ends := relationColumns(n.Relations)
	var row, have *entityRow
	var version *string
	err = db.transact(ctx, n.Tenant, func(t *tx) error {
		var related int64
		id := jig.NewEntityID(n.Type)
		t.queue("TenantEnsure", n.Tenant)
		t.queue("SerializeShared", typesOf(n.Tenant))
		value(t.queue("EntityTypeVersion", n.Tenant, text(n.Type)), &version)
		first(t.queue("EntityInsert", n.Tenant, id, text(n.Type), text(n.TypeVersion), text(n.Title), content, provenance,
			text(n.Bundle), text(n.Key), text(n.SessionID), text(n.Call), entity.Tainted(ctx)), &row)
		first(t.queue("EntityByKey", n.Tenant, text(n.Key)), &have)
		if len(ends) > 0 {
			affected(t.queue("RelationsPut", n.Tenant, id, names, ends), &related)
		}
		if len(n.Workspaces) > 0 {
			t.queue("WorkspaceAdd", n.Tenant, texts(n.Workspaces), []string{id})
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		switch {
		case row == nil && have == nil:
			return jig.Errorf(jig.CodeConflict, "the entity was created by another request at the same time")
		case row == nil && have.Type != n.Type:
			return jig.Errorf(jig.CodeConflict, "an entity of type %q was created under the same key", jig.Known(have.Type)).WithField("key")
		case row == nil:
			return nil
		case version != nil && n.TypeVersion != "" && *version != n.TypeVersion:
			return jig.Errorf(jig.CodeUnavailable, "the type %q was changed at the same time", n.Type).WithField("type").WithHint("try again")
		case related < int64(len(ends)):
			return t.missing(ctx, ends)
		}
		return t.commit(ctx)
	})
	if err != nil {
		return entity.Entity{}, false, err
	}
	if created = row != nil; !created {
		row = have
	}
	return row.read(ctx), created, nil
}

// missing returns NOT_FOUND for the first of the entities that does not exist, or CONFLICT when by now all of them exist.
func (t *tx) missing(ctx context.Context, ids []string) error {
	var rows []entityRow
	list(t.queue("EntitiesGet", t.tenant, ids), &rows)
	if err := t.flush(ctx); err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(rows, func(r entityRow) bool { return r.ID == id }) {
			return noEntity(id)
		}
	}
	return jig.Errorf(jig.CodeConflict, "an entity was created or deleted at the same time")
}

// Entity returns an entity; NOT_FOUND when it does not exist or was deleted.
func (db *DB) Entity(ctx context.Context, tenant, id string) (entity.Entity, error) {
	found, err := db.Entities(ctx, tenant, []string{id})
	if err != nil {
		return entity.Entity{}, err
	}
	if len(found) == 0 {
		return entity.Entity{}, noEntity(id)
	}
	return found[0], nil
}

// Entities returns the given entities that exist, in the order of ids.
func (db *DB) Entities(ctx context.Context, tenant string, ids []string) ([]entity.Entity, error) {
	ids = texts(ids)
	rows, err := ask(ctx, db, tenant, list[entityRow], "EntitiesGet", tenant, ids)
	if err != nil {
		return nil, err
	}
	place := make(map[string]int, len(ids))
	for i, id := range slices.Backward(ids) {
		place[id] = i
	}
	slices.SortFunc(rows, func(a, b entityRow) int { return place[a.ID] - place[b.ID] })
	return entities(ctx, rows), nil
}

// EntityTypeOf returns the type of an entity, even of a deleted one; NOT_FOUND when it never existed.
func (db *DB) EntityTypeOf(ctx context.Context, tenant, id string) (string, error) {
	name, err := ask(ctx, db, tenant, value[string], "EntityTypeOf", tenant, text(id))
	if err != nil {
		return "", err
	}
	if name == nil {
		return "", noEntity(id)
	}
	return *name, nil
}

// UpdateEntity changes some fields of an entity and returns the changed entity. revision must be its current revision; 0 means any.
// Sending the latest patch again with its Key and the old revision changes nothing. It returns CONFLICT at another revision, and
// NOT_FOUND when the entity or the target of a relation does not exist.
func (db *DB) UpdateEntity(ctx context.Context, tenant, id string, revision int64, patch entity.Patch) (entity.Entity, error) {
	args, err := patchColumns(patch)
	if err != nil {
		return entity.Entity{}, err
	}
	id = text(id)
	names, ends := relationColumns(patch.Relations)
	var row *entityRow
	err = db.transact(ctx, tenant, func(t *tx) error {
		var now []entityRow
		var key *string
		var related int64
		first(t.queue("EntityUpdate", append(append([]any{tenant, id}, args...), revision, entity.Tainted(ctx))...), &row)
		list(t.queue("EntitiesGet", tenant, []string{id}), &now)
		value(t.queue("EntityPatchKey", tenant, id), &key)
		if err := t.flush(ctx); err != nil {
			return err
		}
		switch {
		case len(now) == 0:
			return noEntity(id)
		case row == nil && patch.Key != "" && key != nil && *key == text(patch.Key):
			row = &now[0]
			return nil
		case row == nil:
			return stale(id, now[0].Revision, revision)
		case len(row.Content) > entity.MaxBytes:
			return tooLarge()
		}
		if len(patch.Relations) > 0 {
			t.queue("RelationsDrop", tenant, id, relationNames(patch.Relations), names, ends)
			affected(t.queue("RelationsPut", tenant, id, names, ends), &related)
			if err := t.flush(ctx); err != nil {
				return err
			}
			if related < int64(len(ends)) {
				return t.missing(ctx, ends)
			}
		}
		return t.commit(ctx)
	})
	if err != nil {
		return entity.Entity{}, err
	}
	return row.read(ctx), nil
}

func stale(id string, now, revision int64) *jig.Error {
	return jig.Errorf(jig.CodeConflict, "the entity %q is at revision %d, not at %d", id, now, revision).WithField("revision").
		WithReason("stale_revision").WithHint("read the entity again and repeat the change")
}

// entityState is the row of the query EntityState.
type entityState struct {
	Deleted  bool
	Revision int64
}

// DeleteEntity hides an entity with its texts, its relations and its workspace memberships; the row stays. Deleting a deleted entity is
// not an error. It returns NOT_FOUND when the entity never existed, and CONFLICT when it is at another revision than the given one;
// revision 0 means any.
func (db *DB) DeleteEntity(ctx context.Context, tenant, id string, revision int64) error {
	id = text(id)
	var done int64
	var now *entityState
	err := db.once(ctx, tenant, func(t *tx) {
		affected(t.queue("EntityDelete", tenant, id, revision), &done)
		first(t.queue("EntityState", tenant, id), &now)
	})
	switch {
	case err != nil:
		return err
	case now == nil:
		return noEntity(id)
	case done == 0 && !now.Deleted:
		return stale(id, now.Revision, revision)
	}
	return nil
}

// EntityCounts returns how many entities of each type exist, sorted by type.
func (db *DB) EntityCounts(ctx context.Context, tenant string) ([]entity.Count, error) {
	return ask(ctx, db, tenant, list[entity.Count], "EntityCounts", tenant)
}

// EntitiesElsewhere returns which of the ids belong to entities of other tenants, in the order of ids. Only the audit may use it;
// nobody else learns that they exist.
func (db *DB) EntitiesElsewhere(ctx context.Context, tenant string, ids []string) ([]string, error) {
	return ask(ctx, db, tenant, column[string], "EntitiesElsewhere", texts(ids))
}

// SearchEntities finds entities of some types by words in their title, content or texts, best match first. The query has the syntax
// of search engines: all words, "a phrase", or, -not.
func (db *DB) SearchEntities(ctx context.Context, tenant string, types []string, query, workspace string, limit int) ([]entity.Hit, error) {
	if err := db.checkWorkspace(ctx, tenant, workspace); err != nil {
		return nil, err
	}
	hits, err := ask(ctx, db, tenant, list[entity.Hit], "EntitiesSearched", tenant, texts(types), text(query), text(workspace), page(limit))
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(hits))
	for i, hit := range hits {
		ids[i] = hit.EntityID
	}
	return hits, db.markRead(ctx, tenant, ids...)
}
