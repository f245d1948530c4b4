package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
)

const (
	// maxInline is the longest value, in bytes, that the structure of an entity shows in full. maxBeginning is the number of characters
	// that it shows of a longer text.
	maxInline, maxBeginning = 300, 160
	// maxRunes and maxPart bound one reading of a field: the characters of a text, and the bytes of a list's items.
	maxRunes, maxPart = 16_000, 24 << 10
)

type getIn struct {
	ID     string `json:"id"               jsonschema:"the entity's id" minLength:"1"`
	Field  string `json:"field,omitempty"  jsonschema:"a field to read, dotted into objects, e.g. address.city"`
	Offset int    `json:"offset,omitempty" jsonschema:"with field: where to continue, in characters of a text or items of a list" minimum:"0"`
	// Provenance asks how tasks produced the values.
	Provenance bool `json:"provenance,omitempty" jsonschema:"without field: also return how tasks produced the values"`
}

func (o Options) get(ctx context.Context, inv jig.Invocation, in getIn) (entity.Reading, error) {
	e, t, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionRead)
	if err != nil {
		return entity.Reading{}, err
	}
	r := entity.Reading{ID: e.ID, Type: e.Type, Title: e.Title, Revision: e.Revision, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Field: in.Field}
	if in.Field == "" {
		if structure(&r, t.Fields, e.Content, ""); in.Provenance {
			r.Provenance = e.Provenance
		}
		return r, o.withTexts(ctx, inv.Tenant, &r)
	}
	if _, err := guarded.FieldAt(t, "/field", in.Field); err != nil {
		return entity.Reading{}, err
	}
	r.Value, r.Next, err = window(valueAt(e.Content, in.Field), in.Offset)
	return r, err
}

// structure lists the fields in a reading, and for a large object also the fields in it.
func structure(r *entity.Reading, fields []entity.Field, content json.RawMessage, prefix string) {
	for _, f := range fields {
		v := valueAt(content, f.Name)
		name := prefix + f.Name
		if v == nil {
			r.Missing = append(r.Missing, name)
			continue
		}
		info := entity.FieldInfo{Name: name, Type: f.Type, Size: len(v)}
		var text string
		var list []json.RawMessage
		switch {
		case len(v) <= maxInline:
			info.Value = v
		case json.Unmarshal(v, &text) == nil:
			info.Beginning = string([]rune(text)[:min(maxBeginning, utf8.RuneCountInString(text))]) + "…"
		case json.Unmarshal(v, &list) == nil:
			info.Beginning = fmt.Sprintf("%d items", len(list))
		case f.Type == entity.FieldObject && len(f.Fields) > 0:
			r.Fields = append(r.Fields, info)
			structure(r, f.Fields, v, name+".")
			continue
		}
		r.Fields = append(r.Fields, info)
	}
}

// window returns the part of a value that begins at offset, and the offset of the next part; 0 at the end. A missing value is null.
func window(v json.RawMessage, offset int) (out json.RawMessage, next int, err error) {
	var text string
	var list []json.RawMessage
	var found any
	switch {
	case v == nil:
		return json.RawMessage("null"), 0, nil
	case json.Unmarshal(v, &text) == nil:
		found, next = part(text, offset)
	case json.Unmarshal(v, &list) == nil:
		from := min(offset, len(list))
		to, size := from, 0
		for to < len(list) && (to == from || size+len(list[to]) <= maxPart) {
			size += len(list[to])
			to++
		}
		if to < len(list) {
			next = to
		}
		found = list[from:to]
	default:
		return v, 0, nil
	}
	if out, err = json.Marshal(found); err != nil {
		return nil, 0, fmt.Errorf("write the value: %w", err)
	}
	return out, next, nil
}

// maxRelations is the number of relations that a list shows.
const maxRelations = 500

type relationsIn struct {
	ID string `json:"id" jsonschema:"the entity's id" minLength:"1"`
}

func (o Options) listRelations(ctx context.Context, inv jig.Invocation, in relationsIn) (entity.RelationList, error) {
	e, _, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionRead)
	if err != nil {
		return entity.RelationList{}, err
	}
	types, err := o.ReadableTypes(ctx, inv)
	if err != nil {
		return entity.RelationList{}, err
	}
	found, err := o.Store.RelationsOf(ctx, inv.Tenant, e.ID, slices.Sorted(maps.Keys(types)), maxRelations+1)
	if err != nil {
		return entity.RelationList{}, err
	}
	out := entity.RelationList{ID: e.ID, Relations: found, More: len(found) > maxRelations}
	out.Relations = out.Relations[:min(len(found), maxRelations)]
	return out, nil
}

// maxTexts is the number of texts that the structure of an entity shows.
const maxTexts = 50

type putTextIn struct {
	ID        string `json:"id"                    jsonschema:"the id of the entity that the text belongs to" minLength:"1"`
	Title     string `json:"title,omitempty"       jsonschema:"what people call it"            maxLength:"500"`
	Body      string `json:"body"                  jsonschema:"the text"                       minLength:"1"`
	MediaType string `json:"media_type,omitempty"  jsonschema:"e.g. text/markdown"             default:"text/plain" maxLength:"100"`
	Document  string `json:"document_id,omitempty" jsonschema:"a text of the entity to replace; a new one when it is left out"`
}

// TextPut is the output of entities.putText.
type TextPut struct {
	Document string `json:"document_id"`
	ID       string `json:"entity_id"`
	Bytes    int    `json:"bytes"`
	Replaced bool   `json:"replaced"`
}

// Summary implements tools.Summarizer.
func (p TextPut) Summary() string {
	did := "added"
	if p.Replaced {
		did = "replaced"
	}
	return fmt.Sprintf("%s text %s of entity %s, %d bytes", did, p.Document, p.ID, p.Bytes)
}

// putText adds a text to an entity, or replaces one of its texts. A second attempt at the same call writes the same text again.
func (o Options) putText(ctx context.Context, inv jig.Invocation, in putTextIn) (TextPut, error) {
	e, _, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionWrite)
	if err != nil {
		return TextPut{}, err
	}
	text := entity.Text{Tenant: inv.Tenant, ID: in.Document, EntityID: e.ID, Title: in.Title, MediaType: in.MediaType, Body: in.Body}
	if in.Document == "" {
		text.ID = jig.TextIDOf(inv.IdempotencyKey)
	} else if old, err := o.Store.Text(ctx, inv.Tenant, in.Document); err != nil || old.EntityID != e.ID {
		return TextPut{}, noText(err, in.Document)
	}
	stored, err := o.Store.PutText(ctx, text)
	return TextPut{Document: stored.ID, ID: e.ID, Bytes: len(stored.Body), Replaced: in.Document != ""}, err
}

type getTextIn struct {
	Document string `json:"document_id"      jsonschema:"the text's id" minLength:"1"`
	Offset   int    `json:"offset,omitempty" jsonschema:"where to continue, in characters" minimum:"0"`
}

// getText reads part of a text, if the principal may read the text's entity.
func (o Options) getText(ctx context.Context, inv jig.Invocation, in getTextIn) (entity.TextPart, error) {
	text, err := o.Store.Text(ctx, inv.Tenant, in.Document)
	if err != nil {
		return entity.TextPart{}, noText(err, in.Document)
	}
	if _, _, err := o.Entity(ctx, inv, "/document_id", text.EntityID, entity.ActionRead); err != nil {
		return entity.TextPart{}, noText(err, in.Document)
	}
	out := entity.TextPart{Document: text.ID, ID: text.EntityID, Title: text.Title, MediaType: text.MediaType}
	out.Body, out.Next = part(text.Body, in.Offset)
	return out, nil
}

// noText returns NOT_FOUND for a text that the caller cannot see, for whatever reason. Errors other than NOT_FOUND are returned unchanged.
func noText(err error, id string) error {
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	return jig.Errorf(jig.CodeNotFound, "there is no text %q", id).WithField("/document_id").WithHint("entities.get names the texts of an entity")
}

// part returns the part of a text that begins at offset, in characters, and the offset of the next part; 0 at the end.
func part(text string, offset int) (body string, next int) {
	runes := []rune(text)
	from := min(offset, len(runes))
	to := min(from+maxRunes, len(runes))
	if to < len(runes) {
		next = to
	}
	return string(runes[from:to]), next
}

// withTexts adds the entity's texts to its structure.
func (o Options) withTexts(ctx context.Context, tenant string, r *entity.Reading) error {
	infos, err := o.Store.TextInfos(ctx, tenant, r.ID, maxTexts)
	r.Texts = infos
	return err
}
