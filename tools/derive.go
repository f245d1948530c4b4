package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
)

// schemaOf derives the schema of a type and the defaults of its top-level fields; defaults is nil if there are none.
func schemaOf(t reflect.Type, adjust func(*jsonschema.Schema)) (defaults, raw []byte, err error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("derive schema: %w", err)
	}
	if err := tag(s, t, ""); err != nil {
		return nil, nil, err
	}
	notNull(s)
	if s.Type != "object" {
		return nil, nil, errors.New("want a struct or a map with string keys, so that the schema is an object")
	}
	if adjust != nil {
		adjust(s)
	}
	if raw, err = json.Marshal(s); err != nil {
		return nil, nil, fmt.Errorf("write schema: %w", err)
	}
	values := map[string]json.RawMessage{}
	for name, property := range s.Properties {
		if property.Default != nil {
			values[name] = property.Default
		}
	}
	if len(values) == 0 {
		return nil, raw, nil
	}
	if defaults, err = json.Marshal(values); err != nil {
		return nil, nil, fmt.Errorf("write defaults: %w", err)
	}
	if err := json.Unmarshal(defaults, reflect.New(t).Interface()); err != nil {
		return nil, nil, fmt.Errorf("defaults do not fit their fields: %w", err)
	}
	return defaults, raw, nil
}

// notNull removes null from the type unions that the derivation produces for slices and pointers.
func notNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Types = slices.DeleteFunc(s.Types, func(name string) bool { return name == "null" })
	switch len(s.Types) {
	case 0:
		s.Types = nil
	case 1:
		s.Type, s.Types = s.Types[0], nil
	}
	notNull(s.Items)
	notNull(s.AdditionalProperties)
	for _, property := range s.Properties {
		notNull(property)
	}
}

// tag applies the struct tags documented at [New] to the schema of t, at every depth. path names the position, for errors.
func tag(s *jsonschema.Schema, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() { //nolint:exhaustive // the others have no fields
	case reflect.Slice, reflect.Array, reflect.Map:
		inner := s.Items
		if t.Kind() == reflect.Map {
			inner = s.AdditionalProperties
		}
		if inner == nil {
			return nil
		}
		return tag(inner, t.Elem(), path+"[]")
	case reflect.Struct:
	default:
		return nil
	}
	if s.Properties == nil {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		property := s.Properties[name]
		if property == nil || field.Anonymous {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		if err := tagField(property, field.Tag); err != nil {
			return fmt.Errorf("field %s: %w", at, err)
		}
		if err := tag(property, field.Type, at); err != nil {
			return err
		}
	}
	return nil
}

// tagField applies the tags of one field.
func tagField(s *jsonschema.Schema, tags reflect.StructTag) error {
	var problems []error
	integer := func(key string) *int {
		text, ok := tags.Lookup(key)
		if !ok {
			return nil
		}
		n, err := strconv.Atoi(text)
		problems = append(problems, wrapTag(key, err))
		return &n
	}
	float := func(key string) *float64 {
		text, ok := tags.Lookup(key)
		if !ok {
			return nil
		}
		f, err := strconv.ParseFloat(text, 64)
		problems = append(problems, wrapTag(key, err))
		return &f
	}
	set(&s.MinItems, integer("minItems"))
	set(&s.MaxItems, integer("maxItems"))
	value := s
	if s.Items != nil {
		value = s.Items
	}
	set(&value.Minimum, float("minimum"))
	set(&value.Maximum, float("maximum"))
	set(&value.MinLength, integer("minLength"))
	set(&value.MaxLength, integer("maxLength"))
	if pattern, ok := tags.Lookup("pattern"); ok {
		value.Pattern = pattern
	}
	if format, ok := tags.Lookup("format"); ok {
		value.Format = format
	}
	if enum, ok := tags.Lookup("enum"); ok {
		for word := range strings.SplitSeq(enum, ",") {
			v, err := literal(value, strings.TrimSpace(word))
			problems = append(problems, wrapTag("enum", err))
			value.Enum = append(value.Enum, v)
		}
	}
	for tag, key := range map[string]string{
		"destination": jig.DestinationKey, "quantity": jig.QuantityKey, "path": jig.PathKey, "url": jig.URLKey,
	} {
		if text, ok := tags.Lookup(tag); ok {
			mark, err := strconv.ParseBool(text)
			problems = append(problems, wrapTag(tag, err))
			value.Extra = withMark(value.Extra, key, mark)
		}
	}
	if text, ok := tags.Lookup("default"); ok {
		v, err := literal(s, text)
		problems = append(problems, wrapTag("default", err))
		s.Default = v
	}
	return errors.Join(problems...)
}

func withMark(extra map[string]any, key string, mark bool) map[string]any {
	if extra == nil {
		extra = map[string]any{}
	}
	extra[key] = mark
	return extra
}

func wrapTag(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("tag %s: %w", key, err)
}

func set[T any](p **T, v *T) {
	if v != nil {
		*p = v
	}
}

// literal reads the value of a tag: as a string where the schema has strings, as JSON elsewhere.
func literal(s *jsonschema.Schema, text string) (json.RawMessage, error) {
	if s.Type == "string" || slices.Contains(s.Types, "string") {
		b, err := json.Marshal(text)
		if err != nil {
			return nil, fmt.Errorf("write %q: %w", text, err)
		}
		return b, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%q is not a %s", text, s.Type)
	}
	return json.RawMessage(text), nil
}

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
	if opaque(t) || slices.Contains(seen, t) {
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
	if opaque(t) || slices.Contains(seen, t) {
		return false
	}
	for i := range t.NumField() {
		if field := t.Field(i); field.IsExported() && hasNil(field.Type, append(seen, t)) {
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
			if field := v.Field(i); field.CanSet() && (!omitted(t.Field(i)) || !field.IsZero()) {
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
