package tools

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// opaque reports whether a type encodes its own JSON, so that its fields do not matter.
func opaque(t reflect.Type) bool {
	marshaler := reflect.TypeFor[json.Marshaler]()
	return t == reflect.TypeFor[time.Time]() || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}

// omitted reports whether a field is left out when it is nil.
func omitted(field reflect.StructField) bool {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name == "-" || strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}

// nullable returns the name of the first pointer field in t that would be written as null; "" if there is none.
func nullable(t reflect.Type, seen []reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // values of other kinds contain no fields or items
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return nullable(t.Elem(), seen)
	case reflect.Struct:
	default:
		return ""
	}
	if opaque(t) || contains(seen, t) {
		return ""
	}
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			continue
		}
		if field.Type.Kind() == reflect.Pointer && !field.Anonymous && !omitted(field) {
			return t.Name() + "." + field.Name
		}
		if found := nullable(field.Type, append(seen, t)); found != "" {
			return found
		}
	}
	return ""
}

// hasNil reports whether values of t can hold a nil slice or map that would be written as null.
func hasNil(t reflect.Type, seen []reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // values of other kinds contain no fields or items
	case reflect.Slice, reflect.Map:
		return !opaque(t)
	case reflect.Pointer, reflect.Array:
		return hasNil(t.Elem(), seen)
	case reflect.Struct:
	default:
		return false
	}
	if opaque(t) || contains(seen, t) {
		return false
	}
	for i := range t.NumField() {
		if field := t.Field(i); field.IsExported() && hasNil(field.Type, append(seen, t)) {
			return true
		}
	}
	return false
}

func contains(list []reflect.Type, t reflect.Type) bool {
	for _, one := range list {
		if one == t {
			return true
		}
	}
	return false
}

// fillNil replaces nil slices and maps in v, at any depth, with empty ones.
func fillNil(v reflect.Value) {
	t := v.Type()
	switch t.Kind() { //nolint:exhaustive // values of other kinds contain no fields or items
	case reflect.Pointer:
		if !v.IsNil() {
			fillNil(v.Elem())
		}
	case reflect.Slice:
		if opaque(t) || !v.CanSet() {
			return
		}
		if v.IsNil() {
			v.Set(reflect.MakeSlice(t, 0, 0))
		}
		if hasNil(t.Elem(), nil) {
			for i := range v.Len() {
				fillNil(v.Index(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fillNil(v.Index(i))
		}
	case reflect.Map:
		fillMap(v)
	case reflect.Struct:
		if opaque(t) {
			return
		}
		for i := range t.NumField() {
			if field := v.Field(i); field.CanSet() && !omitted(t.Field(i)) {
				fillNil(field)
			} else if field.CanSet() && !field.IsZero() {
				fillNil(field)
			}
		}
	}
}

// fillMap does what fillNil does, for a map. Map values cannot be changed in place, so it sets them again.
func fillMap(v reflect.Value) {
	t := v.Type()
	if opaque(t) || !v.CanSet() {
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	}
	if !hasNil(t.Elem(), nil) {
		return
	}
	for _, key := range v.MapKeys() {
		value := reflect.New(t.Elem()).Elem()
		value.Set(v.MapIndex(key))
		fillNil(value)
		v.SetMapIndex(key, value)
	}
}
