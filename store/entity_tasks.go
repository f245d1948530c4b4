package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
)

// progressRow is the row of the query EntityProgress.
type progressRow struct {
	entityRow

	Tasks []string
	Ended [][]byte
}

// EntityProgress returns an entity and how its tasks ended last, by id, as the moves of its extractions had it, both as of one
// moment; NOT_FOUND when it is not there.
func (db *DB) EntityProgress(ctx context.Context, tenant, id string) (jig.Entity, map[string]json.RawMessage, error) {
	var row *progressRow
	if err := db.once(ctx, tenant, func(t *tx) { first(t.queue("EntityProgress", tenant, text(id)), &row) }); err != nil {
		return jig.Entity{}, nil, err
	}
	if row == nil {
		return jig.Entity{}, nil, noEntity(id)
	}
	ended := make(map[string]json.RawMessage, len(row.Tasks))
	for i, name := range row.Tasks {
		ended[name] = row.Ended[i]
	}
	e, err := row.entity()
	return e, ended, err
}

// Sources returns some entities, those that are there, and their texts, the oldest first, with hashes of what they hold. The
// first texts come with their bodies, at most so many bytes together; none when that is 0.
func (db *DB) Sources(ctx context.Context, tenant string, ids []string, bytes int) (jig.Sources, error) {
	var found jig.Sources
	ids = texts(ids)
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("SourceEntities", tenant, ids), &found.Entities)
		list(t.queue("SourceTexts", tenant, ids, bytes), &found.Texts)
	})
	return found, err
}

// changeEntity writes what a move of an extraction says of its entity. One that is not there any more stays so.
func (t *tx) changeEntity(ctx context.Context, c *jig.EntityChange) error {
	id := text(c.ID)
	names := make([]string, 0, len(c.Tasks))
	for name := range c.Tasks {
		names = append(names, name)
	}
	slices.Sort(names)
	ended := make([][]byte, len(names))
	for i, name := range names {
		ended[i] = c.Tasks[name]
	}
	var there *string
	var row *entityRow
	if len(c.Fields) > 0 {
		args, err := patchColumns(jig.EntityPatch{Fields: c.Fields, Provenance: c.Provenance})
		if err != nil {
			return err
		}
		first(t.queue("EntityUpdate", append(append([]any{t.tenant, id}, args...), int64(0))...), &row)
	}
	value(t.queue("EntityPatchKey", t.tenant, id), &there) // null for none
	if err := t.flush(ctx); err != nil {
		return err
	}
	switch {
	case there == nil:
		return nil
	case row != nil && len(row.Content) > jig.MaxEntityBytes:
		return tooLarge()
	}
	t.queue("EntityTasksPut", t.tenant, id, names, ended)
	if len(c.Relations) > 0 {
		relations, ends := relationColumns(c.Relations)
		t.queue("RelationsDrop", t.tenant, id, relationNames(c.Relations), relations, ends)
		t.queue("RelationsPut", t.tenant, id, relations, ends)
	}
	return nil
}
