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

// TextIDOf returns the id of the text that a call with this idempotency key adds. It is the same each time the call runs.
func TextIDOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return TextPrefix + idEncoding.EncodeToString(sum[:16])
}

// Limits of entities and texts.
const (
	// MaxEntityBytes bounds the content of an entity, as JSON; longer content belongs in a text.
	MaxEntityBytes = 256 << 10
	// MaxTextBytes bounds the body of a text.
	MaxTextBytes = 4 << 20
	// MaxConnectedDepth bounds how many relations are followed to find connected entities, and MaxConnected how many entities are found.
	MaxConnectedDepth = 10
	MaxConnected      = 10_000
)

// NewEntity is an entity to create. The store assigns its id, revision and times.
type NewEntity struct {
	Entity
	// Key makes the creation idempotent: if the key was used before, the entity created then is returned. Empty means not idempotent.
	Key string
	// Bundle is the bundle that the entity type came with; empty when there is none.
	Bundle string
	// Relations are the ids of the entities that the new one points at, by relation name.
	Relations map[string][]string
	// Workspaces are the workspaces that the entity joins.
	Workspaces []string
}

// EntityPatch is a change of some fields of an entity.
type EntityPatch struct {
	// Fields are new values by name; null removes a field. Other fields stay as they are.
	Fields map[string]json.RawMessage
	// Provenance says how the new values were produced. A field that is changed without provenance loses the provenance it had.
	Provenance map[string]Provenance
	// A nil Title leaves the title as it is, and so does an empty TypeVersion for the type's version.
	Title       *string
	TypeVersion string
	// Relations replace the relations of the same names; others stay as they are.
	Relations map[string][]string
	// Key makes the change idempotent: it is not applied again if the latest change had the same key. Empty means not idempotent.
	Key string
}

// Relation is a named link from one entity to another.
type Relation struct {
	From string `json:"from"`
	Name string `json:"name"`
	To   string `json:"to"`
}

// EntityCount is the number of entities of a type.
type EntityCount struct {
	Type  string `json:"type"`
	Count int64  `json:"count"`
	// UpdatedAt is the time of the latest change to any of them.
	UpdatedAt time.Time `json:"updated_at"`
}

// EntityHit is an entity that a search found, either by its own content or by one of its texts.
type EntityHit struct {
	EntityID string  `json:"entity_id"`
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Rank     float64 `json:"rank"`
	// Document is the id of the text that matched; empty when the entity's own content matched.
	Document string `json:"document,omitempty"`
	// Snippet is an excerpt that marks the matching words with ** on both sides.
	Snippet string `json:"snippet,omitempty"`
}

// Text is a searchable document. It may belong to an entity.
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

// TextInfo describes a text without its body.
type TextInfo struct {
	ID        string `json:"document_id"`
	Title     string `json:"title,omitempty"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
}

// Sources are the entities and texts on which values may be based.
type Sources struct {
	Entities []SourceEntity
	Texts    []SourceText
}

// SourceEntity is an entity that serves as a source.
type SourceEntity struct {
	ID, Type string
	// Hash changes whenever the title or the content changes.
	Hash string
}

// SourceText is a text that serves as a source.
type SourceText struct {
	ID, EntityID string
	// Hash changes whenever the title or the body changes.
	Hash string
	// Body is nil for texts that were not asked for and for those that would have exceeded the size limit.
	Body *string
}

// TextHit is a chunk of a text that a search found.
type TextHit struct {
	DocumentID string `json:"document_id"`
	EntityID   string `json:"entity_id,omitempty"`
	Title      string `json:"title,omitempty"`
	// Chunk is the number of the chunk, from 0; Body is its text.
	Chunk int     `json:"chunk"`
	Body  string  `json:"body"`
	Rank  float64 `json:"rank"`
	// Snippet is the part of the body that matches the query, with the matching words marked with ** on both sides.
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
	// FilterContains asks whether a text contains another (ignoring the case of A to Z), a list contains an item, or an object contains the
	// parts of another.
	FilterContains FilterOp = "contains"
)

// FilterOps lists the operators.
func FilterOps() []FilterOp {
	return []FilterOp{FilterEq, FilterNeq, FilterGt, FilterLt, FilterGte, FilterLte, FilterIn, FilterContains}
}

// Names that a filter may use besides the fields of a type.
const (
	FilterID        = "$id"
	FilterTitle     = "$title"
	FilterCreatedAt = "$created_at"
	FilterUpdatedAt = "$updated_at"
)

// FilterMatch says how conditions are combined.
type FilterMatch string

// The ways to combine conditions.
const (
	MatchAll FilterMatch = "all"
	MatchAny FilterMatch = "any"
)

// FilterCondition compares a field with a value. A field has no value if it is missing, null, or of another type than the entity type
// declares. For such a field, eq null holds and neq holds for every value but null; no other operator holds.
type FilterCondition struct {
	// Field is a field's name, with dots for nested objects (address.city), or one of $id, $title, $created_at and $updated_at.
	Field string   `json:"field"`
	Op    FilterOp `json:"op"`
	// Value has the type of the field; for in, it is an array of such values.
	Value json.RawMessage `json:"value"`
}

// FilterClause is a condition or a group of conditions: exactly one of Field, Any and All is set.
type FilterClause struct {
	Field string          `json:"field,omitempty"`
	Op    FilterOp        `json:"op,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	// Any holds if at least one of its conditions holds, All if all of them do.
	Any []FilterCondition `json:"any,omitempty"`
	All []FilterCondition `json:"all,omitempty"`
}

// FilterSort is a sort key. Entities without a value come last in either direction.
type FilterSort struct {
	Field string `json:"field"`
	Desc  bool   `json:"desc,omitempty"`
}

// EntityFilter selects and sorts entities of a type.
type EntityFilter struct {
	Type  string         `json:"type"`
	Where []FilterClause `json:"where,omitempty"`
	// Match says whether all clauses must hold (the default) or any of them.
	Match FilterMatch `json:"match,omitempty"`
	// Sort defaults to $created_at; ties are ordered by id.
	Sort []FilterSort `json:"sort,omitempty"`
	// Limit bounds a page. It defaults to DefaultFilterLimit when it is not positive, and is capped at MaxFilterLimit.
	Limit int `json:"limit,omitempty"`
	// Cursor is where the previous page ended. It is valid only with the same filter.
	Cursor string `json:"cursor,omitempty"`
	// Workspace keeps only entities in this workspace; empty means all.
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

// EntityPage is a page of entities. Next is the cursor of the next page, empty on the last one.
type EntityPage struct {
	Entities []Entity `json:"entities"`
	Next     string   `json:"next,omitempty"`
}
