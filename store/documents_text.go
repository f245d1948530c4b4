package store

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jig-run/jig"
)

// chunkRunes is how long a chunk of a text is at most, in characters.
const chunkRunes = 1000

// textRow is a row of texts.
type textRow struct {
	TenantID   string
	DocumentID string
	EntityID   string
	Title      string
	MediaType  string
	Body       string
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

func (r *textRow) text() jig.Text {
	return jig.Text{
		Tenant: r.TenantID, ID: r.DocumentID, EntityID: r.EntityID, Title: r.Title, MediaType: r.MediaType, Body: r.Body,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

// PutText stores a text, in place of the one with the same id when it has an id, and makes it searchable. Its media type is
// text/plain unless it says another. NOT_FOUND when it is said to be of an entity that is not there.
func (db *DB) PutText(ctx context.Context, d jig.Text) (jig.Text, error) {
	if err := jig.CheckTenant(d.Tenant); err != nil {
		return jig.Text{}, err
	}
	if len(d.Body) > jig.MaxTextBytes {
		return jig.Text{}, jig.Errorf(jig.CodeInvalidInput, "the text has more than %d MiB", jig.MaxTextBytes>>20).WithField("body").
			WithHint("split it")
	}
	id, body := text(cmp.Or(d.ID, jig.NewTextID())), text(d.Body)
	parts := chunks(body)
	var row *textRow
	err := db.transact(ctx, d.Tenant, func(t *tx) error {
		t.queue("TenantEnsure", d.Tenant)
		first(t.queue("TextPut", d.Tenant, id, text(d.EntityID), text(d.Title), text(cmp.Or(d.MediaType, "text/plain")), body), &row)
		t.queue("TextChunksPut", d.Tenant, id, parts)
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
		return jig.Text{}, err
	}
	return row.text(), nil
}

// Text returns a text; NOT_FOUND when it, or the entity it is of, is not there.
func (db *DB) Text(ctx context.Context, tenant, id string) (jig.Text, error) {
	var row *textRow
	if err := db.once(ctx, tenant, func(t *tx) { first(t.queue("TextGet", tenant, text(id)), &row) }); err != nil {
		return jig.Text{}, err
	}
	if row == nil {
		return jig.Text{}, noText(id)
	}
	return row.text(), nil
}

// TextsOf returns the texts of some entities, the oldest first.
func (db *DB) TextsOf(ctx context.Context, tenant string, entityIDs []string) ([]jig.Text, error) {
	var rows []textRow
	if err := db.once(ctx, tenant, func(t *tx) { list(t.queue("TextsOfEntities", tenant, texts(entityIDs)), &rows) }); err != nil {
		return nil, err
	}
	found := make([]jig.Text, len(rows))
	for i := range rows {
		found[i] = rows[i].text()
	}
	return found, nil
}

// TextInfos lists the texts of an entity without their bodies, the oldest first.
func (db *DB) TextInfos(ctx context.Context, tenant, entityID string, limit int) ([]jig.TextInfo, error) {
	var infos []jig.TextInfo
	err := db.once(ctx, tenant, func(t *tx) { list(t.queue("TextInfos", tenant, text(entityID), limit), &infos) })
	return infos, err
}

// DeleteText takes a text out of sight; NOT_FOUND when it is not there.
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

// SearchText finds chunks of texts by words, the best first: of all texts when entityIDs is nil, else of those of these
// entities. The query is what people type into search engines: all words, "a phrase", or, -not. A word is found as it
// stands, small or capital, and not in its other forms.
func (db *DB) SearchText(ctx context.Context, tenant, query string, entityIDs []string, limit int) ([]jig.TextHit, error) {
	if entityIDs != nil {
		entityIDs = texts(entityIDs)
	}
	var hits []jig.TextHit
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("TextsSearched", tenant, text(query), entityIDs, page(limit)), &hits)
	})
	return hits, err
}

// chunks cuts a text into parts of at most chunkRunes characters, which joined are the text: at the ends of sentences where
// it can, else between words, else anywhere.
func chunks(body string) []string {
	parts := []string{}
	for body != "" {
		end := chunkEnd(body)
		parts = append(parts, body[:end])
		body = body[end:]
	}
	return parts
}

// chunkEnd is where the first chunk of a text ends, in bytes.
func chunkEnd(body string) int {
	var sentence, word, runes int
	before := ' '
	for at, r := range body {
		if runes == chunkRunes {
			if sentence > at/4 { // an end that comes too early would make crumbs
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
