package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig/internal/entity"
)

// progressRow is the row of the query EntityProgress.
type progressRow struct {
	entityRow

	Tasks []string
	Ended []json.RawMessage
}

// EntityProgress returns an entity and the latest outcome of each of its tasks, by task id, as its extractions stored them. It reads both
// in one snapshot. It returns NOT_FOUND when the entity does not exist.
func (db *DB) EntityProgress(ctx context.Context, tenant, id string) (entity.Entity, map[string]json.RawMessage, error) {
	var row *progressRow
	if err := db.once(ctx, tenant, func(t *tx) { first(t.queue("EntityProgress", tenant, text(id)), &row) }); err != nil {
		return entity.Entity{}, nil, err
	}
	if row == nil {
		return entity.Entity{}, nil, noEntity(id)
	}
	ended := make(map[string]json.RawMessage, len(row.Tasks))
	for i, name := range row.Tasks {
		ended[name] = row.Ended[i]
	}
	return row.read(ctx), ended, nil
}

// Sources returns the given entities that exist, and their texts, oldest first, with hashes of their contents. The first texts include
// their bodies, up to the given number of bytes together; 0 means no bodies.
func (db *DB) Sources(ctx context.Context, tenant string, ids []string, bytes int) (entity.Sources, error) {
	var found entity.Sources
	ids = texts(ids)
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("SourceEntities", tenant, ids), &found.Entities)
		list(t.queue("SourceTexts", tenant, ids, bytes), &found.Texts)
	})
	if err != nil {
		return entity.Sources{}, err
	}
	return found, db.markRead(ctx, tenant, ids...)
}

// changing is a change to an entity whose field update is already queued.
type changing struct {
	*entity.Change
	there *string // nil: the entity does not exist
	row   *entityRow
	err   error
}

// changeFields queues the field update that a move of an extraction makes to an entity. It returns nil when the move changes no entity.
func (t *tx) changeFields(ctx context.Context, c *entity.Change) *changing {
	if c == nil {
		return nil
	}
	e := &changing{Change: c}
	if len(c.Fields) > 0 {
		var args []any
		if args, e.err = patchColumns(entity.Patch{Fields: c.Fields, Provenance: c.Provenance}); e.err != nil {
			return e
		}
		first(t.queue("EntityUpdate", append(append([]any{t.tenant, text(c.ID)}, args...), int64(0), entity.Tainted(ctx))...), &e.row)
	}
	value(t.queue("EntityPatchKey", t.tenant, text(c.ID)), &e.there)
	return e
}

// changed queues the rest of an entity's change, after the field update was sent. An entity that no longer exists is skipped.
func (t *tx) changed(ctx context.Context, e *changing) error {
	switch {
	case e == nil:
		return nil
	case e.err != nil:
		return e.err
	case e.there == nil:
		return nil
	case e.row != nil && len(e.row.Content) > entity.MaxBytes:
		return tooLarge()
	}
	c, id := e.Change, text(e.ID)
	names := make([]string, 0, len(c.Tasks))
	for name := range c.Tasks {
		names = append(names, name)
	}
	slices.Sort(names)
	ended := make([][]byte, len(names))
	for i, name := range names {
		ended[i] = c.Tasks[name]
	}
	t.queue("EntityTasksPut", t.tenant, id, names, ended)
	if len(names) > 0 && len(c.Fields) == 0 && entity.Tainted(ctx) { // the outcomes have values and errors, too
		t.queue("EntityDistrust", t.tenant, id)
	}
	if len(c.Relations) > 0 {
		relations, ends := relationColumns(c.Relations)
		t.queue("RelationsDrop", t.tenant, id, relationNames(c.Relations), relations, ends)
		t.queue("RelationsPut", t.tenant, id, relations, ends)
	}
	return nil
}
