package entity

import (
	"encoding/json"
)

// MaxConnectedDepth limits how many relations away a connected entity may be.
const MaxConnectedDepth = 10

// MaxConnected limits how many connected entities are found.
const MaxConnected = 10_000

// Hit is an entity that a search found, either by its own content or by one of its texts.
type Hit struct {
	EntityID string  `json:"entity_id"`
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Rank     float64 `json:"rank"`
	// Document is the id of the text that matched; empty when the entity's own content matched.
	Document string `json:"document,omitempty"`
	// Snippet is an excerpt that marks the matching words with ** on both sides.
	Snippet string `json:"snippet,omitempty"`
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
	// FilterFailedTasks is a list: the ids of the tasks of the type that failed or were canceled when they last ran. An entity without such a
	// task has no value.
	FilterFailedTasks = "$failed_tasks"
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
	// Field is a field's name, with dots for nested objects (address.city), or one of $id, $title, $created_at, $updated_at and
	// $failed_tasks.
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

// Filter selects and sorts entities of a type.
type Filter struct {
	Type  string         `json:"type"`
	Where []FilterClause `json:"where,omitempty"`
	// Match says whether all clauses must hold (the default) or any of them.
	Match FilterMatch `json:"match,omitempty"`
	// Sort defaults to $created_at; ties are ordered by id.
	Sort []FilterSort `json:"sort,omitempty"`
	// Limit bounds a page. It defaults to DefaultFilterLimit when it is not positive, and is capped at MaxFilterLimit.
	Limit int `json:"limit,omitempty"`
	// Cursor is the Next of the previous page; empty for the first page. It is valid only with the same filter.
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

// Page is a page of entities. Next is the cursor of the next page, empty on the last one.
type Page struct {
	Entities []Entity `json:"entities"`
	Next     string   `json:"next,omitempty"`
}
