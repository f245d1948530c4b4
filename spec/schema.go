package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/suggest"
)

// schemaBase is the URL below which the schemas are published.
const schemaBase = "https://raw.githubusercontent.com/jig-run/jig/main/spec/schema/"

// SchemaOf returns the JSON Schema (2020-12) of a kind of document, as published in spec/schema. For agents it describes the front matter.
// The schema is generated from the types that the reader uses, so that the two cannot disagree.
func SchemaOf(kind Kind) ([]byte, error) {
	t, title := headOf(kind)
	if t == nil {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no schema of %q", kind).WithHint(suggest.OrKnown(string(kind), kindNames()))
	}
	schema, err := shapeOf(t)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	if kind.IsExecution() || kind == KindBundle {
		schema.Properties["kind"].Const = jsonschema.Ptr[any](string(kind))
	}
	if kind == KindPolicy {
		if err := policyShape(schema); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind, err)
		}
	}
	if kind == KindThinTool {
		thinToolShape(schema)
	}
	if kind == KindTenant {
		tenantShape(schema)
	}
	if kind == KindBudget {
		budgetShape(schema)
	}
	if kind == KindRateLimit {
		rateLimitShape(schema)
	}
	if kind == KindEntityType {
		if err := entityTypeShape(schema); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind, err)
		}
	}
	if kind == KindComposition {
		if schema.Defs, err = definitions(); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind, err)
		}
	}
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	schema.ID = schemaBase + string(kind) + ".schema.json"
	schema.Title = title
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	// Editors show the descriptions literally, so they must not be escaped.
	return []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b)) + "\n"), nil
}

// headOf returns the type that a kind of document is read into.
func headOf(kind Kind) (reflect.Type, string) {
	switch kind {
	case KindAgent:
		return reflect.TypeFor[agentHead](), "jig agent (front matter)"
	case KindComposition:
		return reflect.TypeFor[compositionHead](), "jig composition"
	case KindPrompt:
		return reflect.TypeFor[promptHead](), "jig prompt"
	case KindTask:
		return reflect.TypeFor[taskHead](), "jig task"
	case KindSkill:
		return reflect.TypeFor[skillHead](), "jig skill (front matter of SKILL.md)"
	case KindPolicy:
		return reflect.TypeFor[policyHead](), "jig policy"
	case KindTenant:
		return reflect.TypeFor[Tenant](), "jig tenant"
	case KindBudget:
		return reflect.TypeFor[Budget](), "jig budget"
	case KindRateLimit:
		return reflect.TypeFor[RateLimit](), "jig rate limit"
	case KindEntityType:
		return reflect.TypeFor[entityTypeHead](), "jig entity type"
	case KindThinTool:
		return reflect.TypeFor[thinToolHead](), "jig thin tool"
	case KindBundle:
		return reflect.TypeFor[bundleHead](), "jig bundle (bundle.yaml)"
	}
	return nil, ""
}

// shapeOf returns the schema of a type. Steps and failure handlers become references to definitions, because steps can contain both.
func shapeOf(t reflect.Type) (*jsonschema.Schema, error) {
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Duration]():        {Type: "string", Pattern: duration.Pattern},
		reflect.TypeFor[Expression]():      {Types: []string{"string", "boolean", "number"}},
		reflect.TypeFor[passes]():          {AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: new(1.0), Maximum: new(100.0)}, {Enum: []any{"auto"}}}},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[Step]():            {Ref: "#/$defs/step"},
		reflect.TypeFor[OnError]():         {Ref: "#/$defs/on_error"},
		reflect.TypeFor[fieldHead]():       {Ref: "#/$defs/field"},
		reflect.TypeFor[itemHead]():        {Ref: "#/$defs/item"},
	}})
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the kind
	}
	refine(schema, t)
	return schema, nil
}

// definitions returns the definitions that the schema of a composition refers to.
func definitions() (map[string]*jsonschema.Schema, error) {
	// Separate types, so that Step and OnError inside them become references.
	type step Step
	type onError OnError
	steps, err := shapeOf(reflect.TypeFor[step]())
	if err != nil {
		return nil, err
	}
	for _, action := range actions {
		steps.OneOf = append(steps.OneOf, &jsonschema.Schema{Required: []string{action}})
	}
	steps.DependentRequired = map[string][]string{"max_parallel": {"for_each"}, "for_each": {"id"}, "wait_for": {"id"}}
	for _, call := range calls {
		steps.DependentRequired[call] = []string{"id"}
	}
	handler, err := shapeOf(reflect.TypeFor[onError]())
	if err != nil {
		return nil, err
	}
	return map[string]*jsonschema.Schema{
		"step": steps,
		"on_error": {AnyOf: []*jsonschema.Schema{
			{Type: "string", Enum: []any{"fail", "continue"}, Description: "fail also fails the enclosing steps; continue goes on."}, handler,
		}},
	}, nil
}

// refine adds the constraints of the `spec` tags to the schema of a struct, and removes the null that slices and pointers get.
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
		case property.Ref != "" || property.Items != nil && property.Items.Ref != "":
		case kind.Kind() == reflect.Struct:
			refine(property, kind)
		case kind.Kind() == reflect.Slice && property.Items != nil && kind.Elem().Kind() == reflect.Struct:
			refine(property.Items, kind.Elem())
		}
	}
}

func constrain(property *jsonschema.Schema, f field, t reflect.Type) {
	switch t.Kind() { //nolint:exhaustive // only these kinds have bounds
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
			constrainValue(property, f.form)
			return
		}
		property.MinItems, property.MaxItems = number[int](f.min, t), number[int](f.max, t)
		if f.form != "" {
			property.Items.Pattern = formOf(f.form).pattern.String()
		}
	default:
	}
}

// constrainValue adds the constraints of a form to the schema of a value that is kept as raw JSON. The reader has a separate check for each
// of these forms.
func constrainValue(property *jsonschema.Schema, form string) {
	switch form {
	case "any_schema":
		property.Types = []string{"object", "boolean"}
	case "schema":
		property.Type = "object"
	case "mapping": // or one expression that evaluates to it
		property.Types = []string{"object", "string"}
	case "list": // as above
		property.Types = []string{"array", "string"}
	case "settings":
		property.Type, property.MinProperties = "object", jsonschema.Ptr(1)
		property.PropertyNames = &jsonschema.Schema{Pattern: variablePattern.String()}
	}
}

func number[N int | float64](text string, t reflect.Type) *N {
	if text == "" {
		return nil
	}
	n := N(bound(text, t))
	return &n
}

// noNull turns ["null", "array"] into "array": documents leave a key out instead of writing null.
func noNull(s *jsonschema.Schema) {
	kept := make([]string, 0, len(s.Types))
	for _, t := range s.Types {
		if t != "null" {
			kept = append(kept, t)
		}
	}
	switch len(kept) {
	case 0:
		s.Types = nil
	case 1:
		s.Type, s.Types = kept[0], nil
	}
}
