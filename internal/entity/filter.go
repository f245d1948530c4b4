package entity

import (
	"encoding/json"
	"slices"
	"strings"
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
	Document string  `json:"document,omitempty" doc:"The id of the text that matched; absent if the entity's own content matched"`
	Snippet  string  `json:"snippet,omitempty" doc:"An excerpt with the words marked as **word**"`
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
	Next     string   `json:"next_cursor,omitempty"`
}

// FilterControl is the form control with which people enter the value of a filter.
type FilterControl string

// The controls.
const (
	ControlText        FilterControl = "text"
	ControlNumber      FilterControl = "number"
	ControlRange       FilterControl = "range"
	ControlToggle      FilterControl = "toggle"
	ControlSelect      FilterControl = "select"
	ControlMultiSelect FilterControl = "multi_select"
	ControlDate        FilterControl = "date"
	ControlEntity      FilterControl = "entity"
)

// maxSelect is how many options a select offers. With more options the control is a multi_select.
const maxSelect = 6

// FilterField is a field that entities can be filtered by.
type FilterField struct {
	// Field has dots for fields of objects, e.g. address.city.
	Field string `json:"field" doc:"The name of the field, with dots for fields of objects"`
	Label string `json:"label"`
	// Type is the type of the items, for a list.
	Type      FieldType     `json:"type" doc:"The type of the values that the field is compared with"`
	List      bool          `json:"list,omitempty" doc:"Whether the field has several values"`
	Control   FilterControl `json:"control" doc:"text, number, range, toggle, select, multi_select, date or entity"`
	Operators []FilterOp    `json:"operators"`
	Options   []string      `json:"options,omitempty" doc:"The options of an enum"`
	Target    string        `json:"target,omitempty" doc:"The entity type of a relation"`
	Minimum   *float64      `json:"minimum,omitempty"`
	Maximum   *float64      `json:"maximum,omitempty"`
	Time      bool          `json:"time,omitempty" doc:"Whether a date has a time of day"`
}

// FilterFields lists the fields by which entities of a type can be filtered, in the order of the type's fields. It lists the fields of an
// object separately. It leaves out lists of objects and lists of lists, because nothing can be compared with them. If visible has names, only
// these fields of the entity are considered. Otherwise, if the type has tasks, the last one is $failed_tasks.
func FilterFields(t Type, visible ...string) []FilterField {
	var all []FilterField
	for i := range t.Fields {
		if len(visible) == 0 || slices.Contains(visible, t.Fields[i].Name) {
			all = filterFields(all, &t.Fields[i], nil, nil)
		}
	}
	if len(visible) > 0 || len(t.Tasks) == 0 {
		return all
	}
	failed := FilterField{
		Field: FilterFailedTasks, Label: "Failed tasks", Type: FieldEnum, List: true, Control: ControlMultiSelect,
		Operators: []FilterOp{FilterContains, FilterEq, FilterNeq},
	}
	for i := range t.Tasks {
		failed.Options = append(failed.Options, t.Tasks[i].ID)
	}
	return append(all, failed)
}

func filterFields(all []FilterField, f *Field, path, labels []string) []FilterField {
	path, labels = append(slices.Clone(path), f.Name), append(slices.Clone(labels), labelOf(*f))
	if f.Type == FieldObject {
		for i := range f.Fields {
			all = filterFields(all, &f.Fields[i], path, labels)
		}
		return all
	}
	value, several := f, f.Type == FieldRelation && f.Many
	if f.Type == FieldArray {
		value, several = f.Items, true
	}
	if value == nil || several && (value.Type == FieldObject || value.Type == FieldArray || value != f && value.Many) {
		return all
	}
	return append(all, FilterField{
		Field: strings.Join(path, "."), Label: strings.Join(labels, ": "), Type: value.Type, List: several,
		Control: controlOf(value, several), Operators: operatorsOf(value, several),
		Options: value.Options, Target: value.Target, Minimum: value.Minimum, Maximum: value.Maximum, Time: value.Time,
	})
}

func operatorsOf(f *Field, several bool) []FilterOp {
	if several {
		return []FilterOp{FilterContains}
	}
	switch f.Type {
	case FieldText, FieldURL, FieldEmail, FieldPhone, FieldMedia:
		return []FilterOp{FilterEq, FilterNeq, FilterIn, FilterContains}
	case FieldNumber, FieldDate:
		return []FilterOp{FilterEq, FilterNeq, FilterGt, FilterLt, FilterGte, FilterLte, FilterIn}
	case FieldBoolean:
		return []FilterOp{FilterEq, FilterNeq}
	case FieldEnum, FieldRelation:
		return []FilterOp{FilterEq, FilterNeq, FilterIn}
	case FieldObject, FieldArray:
	}
	return nil
}

func controlOf(f *Field, several bool) FilterControl {
	switch f.Type {
	case FieldEnum:
		if several || len(f.Options) > maxSelect {
			return ControlMultiSelect
		}
		return ControlSelect
	case FieldRelation:
		return ControlEntity
	case FieldNumber, FieldBoolean, FieldDate:
		if several {
			return ControlText
		}
	case FieldText, FieldURL, FieldEmail, FieldPhone, FieldMedia, FieldObject, FieldArray:
		return ControlText
	}
	switch {
	case f.Type == FieldBoolean:
		return ControlToggle
	case f.Type == FieldDate:
		return ControlDate
	case f.Minimum != nil && f.Maximum != nil:
		return ControlRange
	}
	return ControlNumber
}

// labelOf returns what people see for a field: its label, or its name with spaces and a capital letter.
func labelOf(f Field) string {
	if f.Label != "" || f.Name == "" {
		return f.Label
	}
	words := strings.Join(strings.FieldsFunc(f.Name, func(r rune) bool { return r == '_' }), " ")
	if words == "" {
		return f.Name
	}
	return strings.ToUpper(words[:1]) + words[1:]
}
