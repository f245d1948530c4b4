package entity

import (
	"slices"
	"strings"
)

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
	// Field is the field's name or, for fields of objects, the names from the outermost to the innermost, separated by dots, e.g.
	// address.city.
	Field string `json:"field"`
	Label string `json:"label"`
	// Type is the type of the values that the field is compared with. For a list, it is the type of the items.
	Type FieldType `json:"type"`
	// List is true if the field has several values.
	List      bool          `json:"list,omitempty"`
	Control   FilterControl `json:"control"`
	Operators []FilterOp    `json:"operators"`
	// Options are the options of an enum. Target is the entity type of a relation.
	Options []string `json:"options,omitempty"`
	Target  string   `json:"target,omitempty"`
	// Minimum and Maximum are the bounds of a number. Time says that a date has a time of day.
	Minimum *float64 `json:"minimum,omitempty"`
	Maximum *float64 `json:"maximum,omitempty"`
	Time    bool     `json:"time,omitempty"`
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
