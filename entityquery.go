package jig

import (
	"crypto/sha256"
	"encoding/json"
	"time"
)

// Prefixes of the ids of entities and texts.
const (
	EntityPrefix = "ent_"
	TextPrefix   = "doc_"
)

// NewEntityID returns a fresh entity id: "ent_" and 26 characters.
func NewEntityID() string { return EntityPrefix + randomID() }

// NewTextID returns a fresh id of a text: "doc_" and 26 characters.
func NewTextID() string { return TextPrefix + randomID() }

// TextIDOf is the id of the text that a call of this idempotency key adds: the same whenever the call is run again.
func TextIDOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return TextPrefix + idEncoding.EncodeToString(sum[:16])
}

// Limits of entities and texts.
const (
	// MaxEntityBytes bounds the content of an entity, as JSON; what is longer goes into a text.
	MaxEntityBytes = 256 << 10
	// MaxTextBytes bounds the body of a text.
	MaxTextBytes = 4 << 20
	// MaxConnectedDepth and MaxConnected bound how far, and to how many, connected entities are followed.
	MaxConnectedDepth = 10
	MaxConnected      = 10_000
)

// NewEntity is an entity to be created. Its id, revision and times are the store's to give.
type NewEntity struct {
	Entity
	// Key makes the creation idempotent: with a key that was used before, the entity that it made is returned. Not when empty.
	Key string
	// Bundle is the bundle that the type came with; empty for none.
	Bundle string
	// Relations are the ids of the entities that it points at, by name.
	Relations map[string][]string
	// Workspaces are those that it becomes a part of.
	Workspaces []string
}

// EntityPatch is a change of some fields of an entity.
type EntityPatch struct {
	// Fields are new values by name; null takes a field away. The others stay.
	Fields map[string]json.RawMessage
	// Provenance says how the new values came about. A field that is changed without loses what it had.
	Provenance map[string]Provenance
	// Title is left as it is when nil, TypeVersion when empty.
	Title       *string
	TypeVersion string
	// Relations replace those of the same names; the others stay.
	Relations map[string][]string
	// Key makes the change idempotent: one with the key of the latest change is not made again. Not when empty.
	Key string
}

// Relation points from one entity at another, by name.
type Relation struct {
	From string `json:"from"`
	Name string `json:"name"`
	To   string `json:"to"`
}

// EntityCount is how many entities of a type there are.
type EntityCount struct {
	Type  string `json:"type"`
	Count int64  `json:"count"`
	// UpdatedAt is when one of them changed last.
	UpdatedAt time.Time `json:"updated_at"`
}

// EntityHit is an entity that a search found, by its own words or by those of a text of it.
type EntityHit struct {
	EntityID string  `json:"entity_id"`
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Rank     float64 `json:"rank"`
	// Document is the text that was found; empty when the entity's own content was.
	Document string `json:"document,omitempty"`
	// Snippet shows the words between ** and **.
	Snippet string `json:"snippet,omitempty"`
}

// Text is a document that can be searched, of an entity or of nobody in particular.
type Text struct {
	Tenant    string    `json:"tenant"`
	ID        string    `json:"document_id"`
	EntityID  string    `json:"entity_id,omitempty"`
	Title     string    `json:"title,omitempty"`
	MediaType string    `json:"media_type"`
	Body      string    `json:"body"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// TextInfo says which text there is, without its body.
type TextInfo struct {
	ID        string `json:"document_id"`
	Title     string `json:"title,omitempty"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
}

// Sources are what values may rest on.
type Sources struct {
	Entities []SourceEntity
	Texts    []SourceText
}

// SourceEntity is an entity as a source.
type SourceEntity struct {
	ID, Type string
	// Hash changes whenever the title or the content does.
	Hash string
}

// SourceText is a text as a source.
type SourceText struct {
	ID, EntityID string
	// Hash changes whenever the title or the body does.
	Hash string
	// Body is left out of texts that were not asked for, or for which there was no room.
	Body *string
}

// TextHit is a chunk of a text that a search found.
type TextHit struct {
	DocumentID string `json:"document_id"`
	EntityID   string `json:"entity_id,omitempty"`
	Title      string `json:"title,omitempty"`
	// Chunk is the chunk's number, from 0, and Body its text.
	Chunk int     `json:"chunk"`
	Body  string  `json:"body"`
	Rank  float64 `json:"rank"`
	// Snippet is the part of the body that fits the query, with the words between ** and **.
	Snippet string `json:"snippet"`
}

// FilterOp compares a field with a value.
type FilterOp string

// The operators.
const (
	FilterEq  FilterOp = "eq"
	FilterNeq FilterOp = "neq"
	FilterGt  FilterOp = "gt"
	FilterLt  FilterOp = "lt"
	FilterGte FilterOp = "gte"
	FilterLte FilterOp = "lte"
	FilterIn  FilterOp = "in"
	// FilterContains asks whether a text holds another (A to Z like a to z), a list an item, an object the parts of another.
	FilterContains FilterOp = "contains"
)

// FilterOps lists the operators.
func FilterOps() []FilterOp {
	return []FilterOp{FilterEq, FilterNeq, FilterGt, FilterLt, FilterGte, FilterLte, FilterIn, FilterContains}
}

// What a filter may name beside the fields of a type.
const (
	FilterID        = "$id"
	FilterTitle     = "$title"
	FilterCreatedAt = "$created_at"
	FilterUpdatedAt = "$updated_at"
)

// FilterMatch says how conditions go together.
type FilterMatch string

// The ways.
const (
	MatchAll FilterMatch = "all"
	MatchAny FilterMatch = "any"
)

// FilterCondition compares a field with a value. A field that is missing, null, or of another type than the entity type
// declares has no value: eq null holds for it, neq holds for it with every value but null, and no other operator does.
type FilterCondition struct {
	// Field is a field's name, dotted into objects (address.city), or one of $id, $title, $created_at and $updated_at.
	Field string   `json:"field"`
	Op    FilterOp `json:"op"`
	// Value is of the field's type; an array of such values for in.
	Value json.RawMessage `json:"value"`
}

// FilterClause is a condition, or a group of them: exactly one of Field, Any and All is set.
type FilterClause struct {
	Field string          `json:"field,omitempty"`
	Op    FilterOp        `json:"op,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	// Any holds when one of its conditions does, All when all do.
	Any []FilterCondition `json:"any,omitempty"`
	All []FilterCondition `json:"all,omitempty"`
}

// FilterSort is a key to sort by. Entities without a value come last, whichever way the others go.
type FilterSort struct {
	Field string `json:"field"`
	Desc  bool   `json:"desc,omitempty"`
}

// EntityFilter selects and sorts entities of a type.
type EntityFilter struct {
	Type  string         `json:"type"`
	Where []FilterClause `json:"where,omitempty"`
	// Match says whether all clauses must hold (the default) or any.
	Match FilterMatch `json:"match,omitempty"`
	// Sort is by $created_at when empty; what is equal comes in the order of ids.
	Sort []FilterSort `json:"sort,omitempty"`
	// Limit bounds a page: DefaultFilterLimit when it is not positive, MaxFilterLimit when it is more.
	Limit int `json:"limit,omitempty"`
	// Cursor is where the page before ended; it goes with the same filter alone.
	Cursor string `json:"cursor,omitempty"`
	// Workspace leaves out what is not in it.
	Workspace string `json:"workspace,omitempty"`
}

// Limits of a filter.
const (
	DefaultFilterLimit  = 50
	MaxFilterLimit      = 500
	MaxFilterConditions = 50
	MaxFilterValues     = 1_000
	MaxFilterSort       = 5
)

// EntityPage is a page of entities; Next is the cursor of the next one, empty at the end.
type EntityPage struct {
	Entities []Entity `json:"entities"`
	Next     string   `json:"next,omitempty"`
}
