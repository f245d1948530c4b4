package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// chunkRunes is the maximum length of a chunk of text, in characters.
const chunkRunes = 1000

// PutText stores a text and makes it searchable. A text with the same id is replaced; without an id the store makes one. The default
// media type is text/plain. It returns NOT_FOUND when the text names an entity that does not exist.
func (db *DB) PutText(ctx context.Context, d entity.Text) (entity.Text, error) {
	if err := jig.CheckTenant(d.Tenant); err != nil {
		return entity.Text{}, err
	}
	if len(d.Body) > entity.MaxTextBytes {
		return entity.Text{}, jig.Errorf(jig.CodeInvalidInput, "the text has more than %d MiB", entity.MaxTextBytes>>20).WithField("body").
			WithHint("split it")
	}
	id, body := text(cmp.Or(d.ID, jig.NewTextID())), text(d.Body)
	parts := chunks(body)
	var row *entity.Text
	err := db.transact(ctx, d.Tenant, func(t *tx) error {
		t.queue("TenantEnsure", d.Tenant)
		first(t.queue("TextPut", d.Tenant, id, text(d.EntityID), text(d.Title), text(cmp.Or(d.MediaType, "text/plain")), body), &row)
		t.queue("TextChunksPut", d.Tenant, id, parts)
		if entity.Tainted(ctx) {
			t.queue("EntityDistrust", d.Tenant, text(d.EntityID))
		}
		t.queue("TextChunksEmpty", d.Tenant, id, len(parts))
		if err := t.flush(ctx); err != nil {
			return err
		}
		if row == nil {
			return noEntity(d.EntityID)
		}
		return t.commit(ctx)
	})
	if err != nil {
		return entity.Text{}, err
	}
	return *row, nil
}

// Text returns a text; NOT_FOUND when it or its entity does not exist.
func (db *DB) Text(ctx context.Context, tenant, id string) (entity.Text, error) {
	row, err := ask(ctx, db, tenant, first[entity.Text], "TextGet", tenant, text(id))
	if err != nil {
		return entity.Text{}, err
	}
	if row == nil {
		return entity.Text{}, noText(id)
	}
	return *row, db.markRead(ctx, tenant, row.EntityID)
}

// TextInfos lists up to limit texts of an entity without their bodies, oldest first.
func (db *DB) TextInfos(ctx context.Context, tenant, entityID string, limit int) ([]entity.TextInfo, error) {
	infos, err := ask(ctx, db, tenant, list[entity.TextInfo], "TextInfos", tenant, text(entityID), limit)
	if err != nil {
		return nil, err
	}
	return infos, db.markRead(ctx, tenant, text(entityID))
}

func noText(id string) *jig.Error {
	return jig.Errorf(jig.CodeNotFound, "there is no text %q", text(id)).WithField("document_id")
}

// SearchText finds chunks of texts by words, best match first. It searches all texts when entityIDs is nil, else those of the given
// entities. The query has the syntax of search engines: all words, "a phrase", or, -not. Words match regardless of case, but only in
// the form given.
func (db *DB) SearchText(ctx context.Context, tenant, query string, entityIDs []string, limit int) ([]entity.TextHit, error) {
	if entityIDs != nil {
		entityIDs = texts(entityIDs)
	}
	hits, err := ask(ctx, db, tenant, list[entity.TextHit], "TextsSearched", tenant, text(query), entityIDs, page(limit))
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(hits))
	for i, hit := range hits {
		ids[i] = hit.EntityID
	}
	return hits, db.markRead(ctx, tenant, ids...)
}

// chunks splits a text into consecutive parts of at most chunkRunes characters. It splits at the end of a sentence if possible, else
// between words, else anywhere.
func chunks(body string) []string {
	parts := []string{}
	for body != "" {
		end := chunkEnd(body)
		parts = append(parts, body[:end])
		body = body[end:]
	}
	return parts
}

// chunkEnd returns where the first chunk of a text ends, in bytes.
func chunkEnd(body string) int {
	var sentence, word, runes int
	before := ' '
	for at, r := range body {
		if runes == chunkRunes {
			if sentence > at/4 { // an early end would leave tiny chunks
				return sentence
			}
			return cmp.Or(word, at)
		}
		if unicode.IsSpace(r) {
			after := at + utf8.RuneLen(r)
			word = after
			if r == '\n' || strings.ContainsRune(".!?…。", before) {
				sentence = after
			}
		}
		before = r
		runes++
	}
	return len(body)
}

// progressRow is the row of the query EntityProgress.
type progressRow struct {
	entityRow

	Tasks []string
	Ended []json.RawMessage
}

// EntityProgress returns an entity and the latest outcome of each of its tasks, by task id, as its extractions stored them. It reads both
// in one snapshot. It returns NOT_FOUND when the entity does not exist.
func (db *DB) EntityProgress(ctx context.Context, tenant, id string) (entity.Entity, map[string]json.RawMessage, error) {
	row, err := ask(ctx, db, tenant, first[progressRow], "EntityProgress", tenant, text(id))
	if err != nil {
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
