package store

import (
	"cmp"
	"context"
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
	var row *entity.Text
	if err := db.once(ctx, tenant, func(t *tx) { first(t.queue("TextGet", tenant, text(id)), &row) }); err != nil {
		return entity.Text{}, err
	}
	if row == nil {
		return entity.Text{}, noText(id)
	}
	return *row, db.markRead(ctx, tenant, row.EntityID)
}

// TextInfos lists up to limit texts of an entity without their bodies, oldest first.
func (db *DB) TextInfos(ctx context.Context, tenant, entityID string, limit int) ([]entity.TextInfo, error) {
	var infos []entity.TextInfo
	err := db.once(ctx, tenant, func(t *tx) { list(t.queue("TextInfos", tenant, text(entityID), limit), &infos) })
	if err != nil {
		return nil, err
	}
	return infos, db.markRead(ctx, tenant, text(entityID))
}

// DeleteText hides a text; NOT_FOUND when it does not exist.
func (db *DB) DeleteText(ctx context.Context, tenant, id string) error {
	var gone int64
	err := db.once(ctx, tenant, func(t *tx) { affected(t.queue("TextDelete", tenant, text(id)), &gone) })
	if err == nil && gone == 0 {
		return noText(id)
	}
	return err
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
	var hits []entity.TextHit
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("TextsSearched", tenant, text(query), entityIDs, page(limit)), &hits)
	})
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
