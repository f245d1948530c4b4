package store

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/stored"
)

// filterKind determines how a field's values are compared.
type filterKind string

// The kinds of columns.
const (
	kindText    filterKind = "text"
	kindNumber  filterKind = "number"
	kindBoolean filterKind = "boolean"
	kindMoment  filterKind = "date"
	kindList    filterKind = "list"
	kindObject  filterKind = "object"
)

// idColumn sorts ids by their bytes, regardless of the database's collation.
const idColumn = `e.entity_id collate "C"`

// filterColumn describes the column that a name in a filter refers to.
type filterColumn struct {
	// name is the name in the filter. field is its definition and path its path in the content; both are nil for a column that is not a
	// field.
	name  string
	field *entity.Field
	path  []string
	kind  filterKind
	// sql is the SQL expression of the value. json is the value as jsonb; lists and objects have only this. missing is the condition that the
	// entity has no value. present, if set, is the condition that it has one, for which an index helps. always reports whether every entity has a value.
	sql, json, missing, present string
	always                      bool
}

// column resolves a name in a filter.
func (q *filterQuery) column(at, name string) (filterColumn, error) {
	c := filterColumn{name: name, kind: kindText, always: true, missing: "false"}
	switch name {
	case entity.FilterID:
		c.sql = idColumn
		return c, nil
	case entity.FilterTitle:
		c.sql = `e.title collate "C"`
		return c, nil
	case entity.FilterCreatedAt, entity.FilterUpdatedAt:
		c.sql, c.kind = "e."+name[1:], kindMoment
		return c, nil
	case entity.FilterFailedTasks:
		return q.failedTasks(c), nil
	}
	c.always, c.path = false, strings.Split(name, ".")
	fields := q.t.Fields
	for depth, part := range c.path {
		i := slices.IndexFunc(fields, func(f entity.Field) bool { return f.Name == part })
		if i < 0 || part == "" {
			return c, noField(at, name, fields, c.path[:depth])
		}
		c.field, fields = &fields[i], nil
		if c.field.Type == entity.FieldObject {
			fields = c.field.Fields
		}
	}
	path := q.arg(c.path) + "::text[]"
	c.kind = kindOf(c.field)
	function := map[filterKind]string{kindText: "jig_text", kindNumber: "jig_number", kindBoolean: "jig_boolean", kindMoment: "jig_moment"}[c.kind]
	switch c.kind {
	case kindList:
		c.json = "(e.content #> " + path + ")"
		c.missing = "jsonb_typeof" + c.json + " is distinct from 'array'"
		return c, nil
	case kindObject:
		c.json = "(e.content #> " + path + ")"
		c.missing = "jsonb_typeof" + c.json + " is distinct from 'object'"
		return c, nil
	case kindText, kindNumber, kindBoolean, kindMoment:
	}
	c.sql = function + "(e.content, " + path + ")"
	if c.kind == kindText {
		c.sql += ` collate "C"`
	}
	c.missing = c.sql + " is null"
	return c, nil
}

// failedTasks returns the column with the ids of the tasks of the type that did not end well when they last ran.
func (q *filterQuery) failedTasks(c filterColumn) filterColumn {
	ids := make([]string, len(q.t.Tasks))
	for i, task := range q.t.Tasks {
		ids[i] = task.ID
	}
	c.kind, c.always, c.field = kindList, false, &entity.Field{Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldText}}
	failed := "from entity_tasks k where k.tenant_id = e.tenant_id and k.entity_id = e.entity_id and k.failed and k.task = any(" + q.arg(ids) + "::text[]))"
	c.json, c.present, c.missing = "(select jsonb_agg(k.task) "+failed, "exists (select "+failed, "not exists (select "+failed
	return c
}

func noField(at, name string, fields []entity.Field, in []string) *jig.Error {
	missing := badFilter(at, "the type has no field %q", stored.Cut(text(name), 200))
	var names []string
	for _, f := range fields {
		names = append(names, strings.Join(append(slices.Clone(in), f.Name), "."))
	}
	if len(names) == 0 {
		return missing.WithHint("use a field of the type; parts of lists have no names")
	}
	return missing.WithHint("use " + oneOf(names[:min(len(names), 20)]))
}

func kindOf(f *entity.Field) filterKind {
	switch f.Type {
	case entity.FieldText, entity.FieldEnum, entity.FieldURL, entity.FieldEmail, entity.FieldPhone, entity.FieldMedia:
		return kindText
	case entity.FieldNumber:
		return kindNumber
	case entity.FieldBoolean:
		return kindBoolean
	case entity.FieldDate:
		return kindMoment
	case entity.FieldRelation:
		if f.Many {
			return kindList
		}
		return kindText
	case entity.FieldArray:
		return kindList
	case entity.FieldObject:
		return kindObject
	}
	return kindText
}

// ops returns the operators that a column accepts.
func (c filterColumn) ops() []entity.FilterOp {
	equal := []entity.FilterOp{entity.FilterEq, entity.FilterNeq, entity.FilterIn}
	ordered := slices.Concat(equal, []entity.FilterOp{entity.FilterGt, entity.FilterLt, entity.FilterGte, entity.FilterLte})
	switch c.kind {
	case kindText:
		if c.field != nil && (c.field.Type == entity.FieldEnum || c.field.Type == entity.FieldRelation) {
			return equal
		}
		return append(ordered, entity.FilterContains)
	case kindNumber, kindMoment:
		return ordered
	case kindBoolean:
		return equal
	case kindList, kindObject:
	}
	return []entity.FilterOp{entity.FilterContains}
}

// what describes the values of a column, for messages.
func (c filterColumn) what() string {
	if c.field != nil && c.kind == kindText {
		return "of type " + string(c.field.Type)
	}
	return "of type " + string(c.kind)
}

// cast returns the SQL cast for an argument that is compared with the column.
func (c filterColumn) cast() string {
	return map[filterKind]string{kindText: "::text", kindNumber: "::numeric", kindBoolean: "::boolean", kindMoment: "::timestamptz"}[c.kind]
}

// list returns the SQL cast for a list of values built by slice.
func (c filterColumn) list() string {
	if c.kind == kindNumber {
		return "::text[]::numeric[]"
	}
	return c.cast() + "[]"
}

// slice converts a list of values to the argument's Go type.
func (c filterColumn) slice(values []any) any {
	switch c.kind { //nolint:exhaustive // all other kinds are compared as text
	case kindBoolean:
		return typed[bool](values)
	case kindMoment:
		return typed[time.Time](values)
	}
	return typed[string](values)
}

func typed[T any](values []any) []T {
	list := make([]T, 0, len(values))
	for _, v := range values {
		if t, ok := v.(T); ok {
			list = append(list, t)
		}
	}
	return list
}

// keyOf returns the entity's value of this sort column as text; nil when it has none.
func (c filterColumn) keyOf(e entity.Entity, content map[string]any) *string {
	at := func(t time.Time) *string { s := strconv.FormatInt(t.UnixMicro(), 10); return &s }
	switch c.name {
	case entity.FilterID:
		return &e.ID
	case entity.FilterTitle:
		return &e.Title
	case entity.FilterCreatedAt:
		return at(e.CreatedAt)
	case entity.FilterUpdatedAt:
		return at(e.UpdatedAt)
	}
	var v any = content
	for _, part := range c.path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[part]
	}
	switch v := v.(type) {
	case string:
		if c.kind == kindMoment {
			if t, ok := momentOf(v); ok {
				return at(t)
			}
			return nil
		}
		if c.kind == kindText {
			return &v
		}
	case json.Number:
		if s := v.String(); c.kind == kindNumber {
			return &s
		}
	case bool:
		if s := strconv.FormatBool(v); c.kind == kindBoolean {
			return &s
		}
	}
	return nil
}

// parse decodes a value that keyOf wrote. A cursor comes from outside, so the value may be anything.
func (c filterColumn) parse(s string) (any, bool) {
	switch c.kind {
	case kindNumber:
		return s, len(s) <= 8*maxNumber && numberForm.MatchString(s) && smallExponent(s)
	case kindBoolean:
		b, err := strconv.ParseBool(s)
		return b, err == nil
	case kindMoment:
		n, err := strconv.ParseInt(s, 10, 64)
		t := time.UnixMicro(n).UTC()
		return t, err == nil && t.Year() >= -1 && t.Year() <= 10_000
	case kindText, kindList, kindObject:
	}
	return s, utf8.ValidString(s) && !strings.Contains(s, "\x00")
}
