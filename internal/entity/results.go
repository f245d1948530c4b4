package entity

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// The built-in tools for entities and the API return the types below. The tag doc describes a member in the OpenAPI document, and Summary says in
// a few words what a tool returned.

// TypeInfo describes an entity type.
type TypeInfo struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	May         []Action `json:"may" doc:"What the principal may do with its entities: read, write, delete"`
	// Fields and FilterFields are set only if the type was requested by name.
	Fields       []json.RawMessage `json:"fields,omitempty" doc:"The fields as the document of the type defines them, if the type was requested by name"`
	FieldCount   int               `json:"field_count"`
	FilterFields []FilterField     `json:"filter_fields,omitempty" doc:"Suggested filters, if the type was requested by name: the fields that entities can be filtered by, each with a control"`
}

// TypeList is a list of entity types.
type TypeList struct {
	Types []TypeInfo `json:"types"`
}

// Summary implements tools.Summarizer.
func (l TypeList) Summary() string { return fmt.Sprintf("%d entity types", len(l.Types)) }

// HitList is the result of a search, with the best match first.
type HitList struct {
	Hits []Hit `json:"hits" doc:"The best match first"`
}

// Summary implements tools.Summarizer.
func (l HitList) Summary() string { return fmt.Sprintf("%d entities found", len(l.Hits)) }

// Address says where an entity can be read.
type Address struct {
	Slug string `json:"slug,omitempty" doc:"The title in a form for URLs; not unique"`
	Href string `json:"href" doc:"Where the entity can be read"`
}

// AddressOf returns the address of an entity in the HTTP API.
func AddressOf(id, title string) Address {
	return Address{Slug: slug(title), Href: "/v1/entities/" + url.PathEscape(id)}
}

// maxSlug bounds a slug, in characters.
const maxSlug = 80

// slug returns a title as a part of an address: its letters and digits in lower case, with a hyphen for everything between them.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	letters := []rune(strings.Join(words, "-"))
	return strings.TrimRight(string(letters[:min(len(letters), maxSlug)]), "-")
}

// Row is an entity that a filter found.
type Row struct {
	ID        string    `json:"entity_id"`
	Title     string    `json:"title,omitempty"`
	Revision  int64     `json:"revision"`
	UpdatedAt time.Time `json:"updated_at"`
	Tags      []string  `json:"tags,omitempty" doc:"The texts of the field tags, if the type has such a list"`
	// Values are the values of the requested fields. Large names the fields whose values are too long for a list.
	Values map[string]json.RawMessage `json:"values,omitempty" doc:"The values of the requested fields"`
	Large  []string                   `json:"large,omitempty" doc:"Requested fields whose values are too long for a list"`
	Address
}

// RowPage is a page of the entities that a filter found.
type RowPage struct {
	Entities []Row `json:"entities"`
	// Filter is the filter that was applied, with its defaults.
	Filter Filter `json:"filter"`
	Next   string `json:"next_cursor,omitempty"`
	// Total is the number of entities on all pages. Only the first page has it, and only if it is cheap to know: without conditions, or if
	// there is no other page.
	Total *int64 `json:"total,omitempty"`
}

// Summary implements tools.Summarizer.
func (p RowPage) Summary() string {
	if p.Next != "" && p.Total != nil {
		return fmt.Sprintf("%d of %d entities", len(p.Entities), *p.Total)
	}
	if p.Next != "" {
		return fmt.Sprintf("%d entities, and there are more", len(p.Entities))
	}
	return fmt.Sprintf("%d entities", len(p.Entities))
}

// FieldInfo is a field of an entity as its structure shows it.
type FieldInfo struct {
	Name      string          `json:"name"`
	Type      FieldType       `json:"type"`
	Size      int             `json:"size" doc:"The size of the value in bytes of JSON"`
	Value     json.RawMessage `json:"value,omitempty" doc:"The value, if it is short"`
	Beginning string          `json:"beginning,omitempty" doc:"The first characters of a longer text, or the length of a list"`
}

// Reading is an entity: its structure, or the value of one field.
type Reading struct {
	ID        string    `json:"entity_id"`
	Type      string    `json:"type"`
	Title     string    `json:"title,omitempty"`
	Revision  int64     `json:"revision" doc:"The revision, which changes must name"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// Fields are set if no field was requested. Fields without a value are named in Missing instead.
	Fields     []FieldInfo           `json:"fields,omitempty" doc:"The fields, unless one was requested"`
	Missing    []string              `json:"missing,omitempty" doc:"Fields without a value"`
	Provenance map[string]Provenance `json:"provenance,omitempty" doc:"By field: how a task produced the value"`
	Texts      []TextInfo            `json:"texts,omitempty" doc:"The texts, the oldest first, at most 50"`
	// Field, Value and Next belong to the requested field.
	Field string          `json:"field,omitempty" doc:"The requested field"`
	Value json.RawMessage `json:"value,omitempty" doc:"Its value, or a part of it"`
	Next  int             `json:"next,omitempty" doc:"The offset of the next part; absent at the end"`
	Address
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

// RelationList lists the relations of an entity. It leaves out entities that the principal may not read.
type RelationList struct {
	ID        string          `json:"entity_id"`
	Relations []RelatedEntity `json:"relations" doc:"At most 500, beginning with those that the entity points at"`
	More      bool            `json:"more,omitempty" doc:"Whether there are more"`
}

// Summary implements tools.Summarizer.
func (l RelationList) Summary() string { return fmt.Sprintf("%d relations", len(l.Relations)) }

// TextPart is a part of a text.
type TextPart struct {
	Document  string `json:"document_id"`
	ID        string `json:"entity_id"`
	Title     string `json:"title,omitempty"`
	MediaType string `json:"media_type"`
	Body      string `json:"body" doc:"At most 16,000 characters"`
	Next      int    `json:"next,omitempty" doc:"The offset of the next part, in characters; absent at the end"`
}

// Summary implements tools.Summarizer.
func (p TextPart) Summary() string { return fmt.Sprintf("text %s of entity %s", p.Document, p.ID) }
