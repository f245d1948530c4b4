package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
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

// FieldInfo is a field of an entity as its structure shows it.
type FieldInfo struct {
	Name string           `json:"name"`
	Type entity.FieldType `json:"type"`
	// Size is the size of the value in bytes of JSON.
	Size int `json:"size"`
	// Value is set if the value is short. Otherwise Beginning has the first characters of a text or the length of a list.
	Value     json.RawMessage `json:"value,omitempty"`
	Beginning string          `json:"beginning,omitempty"`
}

// Reading is the output of entities.get.
type Reading struct {
	ID        string    `json:"entity_id"`
	Type      string    `json:"type"`
	Title     string    `json:"title,omitempty"`
	Revision  int64     `json:"revision"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// Fields are set if no field was requested. Fields without a value are named in Missing instead.
	Fields  []FieldInfo `json:"fields,omitempty"`
	Missing []string    `json:"missing,omitempty"`
	// Provenance says, by field name, how a task produced the value, if it was requested.
	Provenance map[string]entity.Provenance `json:"provenance,omitempty"`
	// Texts are the texts of the entity, the oldest first, at most 50; entities.getText reads one.
	Texts []entity.TextInfo `json:"texts,omitempty"`
	// Field, Value and Next belong to the requested field; Next is the offset of the next part.
	Field string          `json:"field,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	Next  int             `json:"next,omitempty"`
}

// Summary implements tools.Summarizer.
func (r Reading) Summary() string {
	what := r.Type + " " + r.ID
	if r.Title != "" {
		what = r.Type + " " + r.Title
	}
	if r.Field != "" {
		return what + ": " + r.Field
	}
	return fmt.Sprintf("%s: %d fields", what, len(r.Fields))
}

func (o Options) get(ctx context.Context, inv jig.Invocation, in getIn) (Reading, error) {
	e, t, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionRead)
	if err != nil {
		return Reading{}, err
	}
	r := Reading{ID: e.ID, Type: e.Type, Title: e.Title, Revision: e.Revision, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Field: in.Field}
	if in.Field == "" {
		if r.structure(t.Fields, e.Content, ""); in.Provenance {
			r.Provenance = e.Provenance
		}
		return r, o.withTexts(ctx, inv.Tenant, &r)
	}
	if _, err := guarded.FieldAt(t, "/field", in.Field); err != nil {
		return Reading{}, err
	}
	r.Value, r.Next, err = window(valueAt(e.Content, in.Field), in.Offset)
	return r, err
}

// structure lists the fields, and for a large object also the fields in it.
func (r *Reading) structure(fields []entity.Field, content json.RawMessage, prefix string) {
	for _, f := range fields {
		v := valueAt(content, f.Name)
		name := prefix + f.Name
		if v == nil {
			r.Missing = append(r.Missing, name)
			continue
		}
		info := FieldInfo{Name: name, Type: f.Type, Size: len(v)}
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
			r.structure(f.Fields, v, name+".")
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

// Relations is the output of entities.listRelations.
type Relations struct {
	ID string `json:"entity_id"`
	// Relations lists the entities that it points at first. Entities that the principal may not read are left out.
	Relations []entity.RelatedEntity `json:"relations"`
	// More is true if there are more relations than the list shows.
	More bool `json:"more,omitempty"`
}

// Summary implements tools.Summarizer.
func (r Relations) Summary() string { return fmt.Sprintf("%d relations", len(r.Relations)) }

func (o Options) listRelations(ctx context.Context, inv jig.Invocation, in relationsIn) (Relations, error) {
	e, _, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionRead)
	if err != nil {
		return Relations{}, err
	}
	types, err := o.ReadableTypes(ctx, inv)
	if err != nil {
		return Relations{}, err
	}
	found, err := o.Store.RelationsOf(ctx, inv.Tenant, e.ID, slices.Sorted(maps.Keys(types)), maxRelations+1)
	if err != nil {
		return Relations{}, err
	}
	out := Relations{ID: e.ID, Relations: found, More: len(found) > maxRelations}
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

// TextPart is the output of entities.getText.
type TextPart struct {
	Document  string `json:"document_id"`
	ID        string `json:"entity_id"`
	Title     string `json:"title,omitempty"`
	MediaType string `json:"media_type"`
	Body      string `json:"body"`
	// Next is the offset of the next part; 0 at the end.
	Next int `json:"next,omitempty"`
}

// Summary implements tools.Summarizer.
func (p TextPart) Summary() string { return fmt.Sprintf("text %s of entity %s", p.Document, p.ID) }

// getText reads part of a text, if the principal may read the text's entity.
func (o Options) getText(ctx context.Context, inv jig.Invocation, in getTextIn) (TextPart, error) {
	text, err := o.Store.Text(ctx, inv.Tenant, in.Document)
	if err != nil {
		return TextPart{}, noText(err, in.Document)
	}
	if _, _, err := o.Entity(ctx, inv, "/document_id", text.EntityID, entity.ActionRead); err != nil {
		return TextPart{}, noText(err, in.Document)
	}
	out := TextPart{Document: text.ID, ID: text.EntityID, Title: text.Title, MediaType: text.MediaType}
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
func (o Options) withTexts(ctx context.Context, tenant string, r *Reading) error {
	infos, err := o.Store.TextInfos(ctx, tenant, r.ID, maxTexts)
	r.Texts = infos
	return err
}
