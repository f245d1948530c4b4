package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
)

// schemaBase is where the published schemas are found.
const schemaBase = "https://raw.githubusercontent.com/jig-run/jig/main/spec/schema/"

// SchemaOf returns the JSON Schema (2020-12) of a kind of document, as published in spec/schema: of an agent, of its front
// matter. It is made from the types that the reader uses, so that the two cannot disagree.
func SchemaOf(kind Kind) ([]byte, error) {
	var t reflect.Type
	var title string
	switch kind {
	case KindAgent:
		t, title = reflect.TypeFor[AgentHead](), "jig agent (front matter)"
	default:
		return nil, jig.Errorf(jig.CodeNotFound, "there is no schema of %q", kind).WithHint(Suggest(string(kind), kindNames()))
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Duration]():        {Type: "string", Pattern: durationForm.String()},
		reflect.TypeFor[Expression]():      {Types: []string{"string", "boolean", "number"}},
		reflect.TypeFor[json.RawMessage](): {},
	}})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	refine(schema, t)
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	schema.ID = schemaBase + string(kind) + ".schema.json"
	schema.Title = title
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	return append(b, '\n'), nil
}

// refine adds what the `spec` tags say to the schema of a struct, and takes back the null that slices and pointers get.
func refine(schema *jsonschema.Schema, t reflect.Type) {
	schema.Required = nil
	for _, f := range fieldsOf(t) {
		property := schema.Properties[f.name]
		if f.required {
			schema.Required = append(schema.Required, f.name)
		}
		noNull(property)
		kind := f.kind
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		constrain(property, f, kind)
		switch {
		case kind.Kind() == reflect.Struct:
			refine(property, kind)
		case kind.Kind() == reflect.Slice && property.Items != nil && kind.Elem().Kind() == reflect.Struct:
			refine(property.Items, kind.Elem())
		}
	}
}

func constrain(property *jsonschema.Schema, f field, t reflect.Type) {
	switch t.Kind() { //nolint:exhaustive // the kinds that have bounds
	case reflect.Int, reflect.Int64:
		if t == reflect.TypeFor[Duration]() {
			return
		}
		property.Minimum, property.Maximum = number[float64](f.min, t), number[float64](f.max, t)
	case reflect.String:
		property.MinLength, property.MaxLength = number[int](f.min, t), number[int](f.max, t)
		if f.form != "" {
			property.Pattern = formOf(f.form).pattern.String()
		}
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return
		}
		property.MinItems, property.MaxItems = number[int](f.min, t), number[int](f.max, t)
		if f.form != "" {
			property.Items.Pattern = formOf(f.form).pattern.String()
		}
	default:
	}
}

func number[N int | float64](text string, t reflect.Type) *N {
	if text == "" {
		return nil
	}
	n := N(bound(text, t))
	return &n
}

// noNull turns ["null", "array"] into "array": a document leaves a key out instead.
func noNull(s *jsonschema.Schema) {
	kept := make([]string, 0, len(s.Types))
	for _, t := range s.Types {
		if t != "null" {
			kept = append(kept, t)
		}
	}
	if len(kept) == 1 {
		s.Type, s.Types = strings.Join(kept, ""), nil
	}
}
