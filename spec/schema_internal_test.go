package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/tenancy"
)

// schemaBase is the URL below which the schemas are published.
const schemaBase = "https://raw.githubusercontent.com/jig-run/jig/main/spec/schema/"

// SchemaOf returns the JSON Schema (2020-12) of a kind of document, as published in spec/schema. For agents it describes the front matter.
// The schema is generated from the types that the reader uses, so that the two cannot disagree.
func SchemaOf(kind Kind) ([]byte, error) {
	row := kind.row()
	schema, err := shapeOf(row.head)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	if row.markdown == nil {
		schema.Properties["kind"].Const = jsonschema.Ptr[any](string(kind))
	}
	if rules := kindShapes()[kind]; rules != nil {
		if err := rules(schema); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind, err)
		}
	}
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	schema.ID = schemaBase + string(kind) + ".schema.json"
	schema.Title = row.title
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	// Editors show the descriptions literally, so they must not be escaped.
	return []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b)) + "\n"), nil
}

// kindShapes returns what the Go types of some kinds do not express, as additions to their schemas.
func kindShapes() map[Kind]func(schema *jsonschema.Schema) error {
	return map[Kind]func(schema *jsonschema.Schema) error{
		KindComposition: func(schema *jsonschema.Schema) (err error) {
			schema.Defs, err = definitions()
			return err
		},
		KindPolicy: policyShape, KindTenant: tenantShape, KindBudget: budgetShape, KindRateLimit: rateLimitShape, KindEntityType: entityTypeShape,
		KindThinTool: thinToolShape,
	}
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
		return nil, err
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

// policyShape adds to the schema of a policy the rules that the Go types do not express.
func policyShape(schema *jsonschema.Schema) error {
	words := make([]any, 0, len(policyVerdicts()))
	for _, verdict := range policyVerdicts() {
		words = append(words, string(verdict))
	}
	rules, cases := schema.Properties["rules"].Items, schema.Properties["cases"].Items
	rules.Properties["verdict"].Enum, cases.Properties["expect"].Enum = words, words
	// Only a rule that asks has an approval.
	rules.If = &jsonschema.Schema{}
	for _, key := range termKeys() {
		rules.If.AnyOf = append(rules.If.AnyOf, &jsonschema.Schema{Required: []string{key}})
	}
	rules.Then = &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{
		"verdict": {Const: jsonschema.Ptr[any]("ask"), Description: "A rule with terms of approval has verdict: ask."},
	}}
	rules.AllOf = []*jsonschema.Schema{{
		If: &jsonschema.Schema{Required: []string{"untraced"}, Properties: map[string]*jsonschema.Schema{
			"untraced": {Const: jsonschema.Ptr[any](true), Description: "The rule also runs calls with arguments that cannot be traced."},
		}},
		Then: &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{
			"verdict": {Const: jsonschema.Ptr[any]("run"), Description: "A rule with untraced has verdict: run."},
		}},
	}}
	rules.DependentRequired = map[string][]string{"escalate": {"approvers"}}
	rules.Properties["approvers"].MinProperties = jsonschema.Ptr(1)
	rules.Properties["escalate"].Items.Properties["approvers"].MinProperties = jsonschema.Ptr(1)
	cases.If = &jsonschema.Schema{Required: []string{"quorum"}}
	cases.Then = &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{
		"expect": {Const: jsonschema.Ptr[any]("ask"), Description: "A case with quorum has expect: ask."},
	}}
	contract, err := shapeOf(reflect.TypeFor[policyTool]())
	if err != nil {
		return err
	}
	name := &jsonschema.Schema{Type: "string", Pattern: toolNamePattern.String()}
	cases.Properties["tool"].AnyOf = []*jsonschema.Schema{name, contract}
	agent, err := shapeOf(reflect.TypeFor[policyAgent]())
	if err != nil {
		return err
	}
	cases.Properties["agent"].AnyOf = []*jsonschema.Schema{agent.Properties["name"], agent}
	cases.Properties["now"].Format = "date-time"
	return nil
}

// thinToolShape adds to the schema of a thin tool the rules that the Go types do not express.
func thinToolShape(schema *jsonschema.Schema) error {
	schema.DependentRequired = map[string][]string{"starts": {"creates"}}
	lists := &jsonschema.Schema{Types: []string{"array", "string"}, Items: &jsonschema.Schema{Type: "string"}}
	creates := schema.Properties["creates"]
	creates.Properties["workspaces"].Items = lists.Items
	relations := creates.Properties["relations"]
	relations.AdditionalProperties = lists
	relations.PropertyNames = &jsonschema.Schema{Pattern: relationName.String()}
	return nil
}

// tenantShape adds to the schema of a tenant the rules that the Go types do not express.
func tenantShape(schema *jsonschema.Schema) error {
	schema.Properties["approvals"].Properties["reconcilers"].MinProperties = jsonschema.Ptr(1)
	schema.Properties["owners"].MinProperties = jsonschema.Ptr(1)
	schema.Properties["webhooks"].Items.Properties["url"].Pattern = `^(https://[^\s/?#@]+|http://([Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]|127(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?)([/?][^\s#]*)?$`
	messages := schema.Properties["messages"].Items
	messages.Properties["mail"].Items.Pattern = mailPattern.String()
	messages.OneOf = []*jsonschema.Schema{{Required: []string{"mail"}}, {Required: []string{"chat_env"}}}
	var shipped []any
	for _, r := range tenancy.ShippedRoles() {
		shipped = append(shipped, r.Name)
	}
	roles := schema.Properties["roles"].Items
	roles.If = &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"name": {Enum: shipped, Description: "A role that ships with jig has permissions of its own."}}}
	roles.Then = &jsonschema.Schema{Not: &jsonschema.Schema{Required: []string{"permissions"}}}
	roles.Else = &jsonschema.Schema{Required: []string{"permissions"}}
	keys := schema.Properties["keys"].Items
	keys.Properties["public_key"].Pattern = `^[A-Za-z0-9+/]{43,}={0,2}$`
	keyOf := func(algorithm, has, hasNot string) *jsonschema.Schema {
		return &jsonschema.Schema{
			Properties: map[string]*jsonschema.Schema{"algorithm": {Const: jsonschema.Ptr[any](algorithm), Description: "A key of " + algorithm + " has " + has + "."}},
			Required:   []string{has}, Not: &jsonschema.Schema{Required: []string{hasNot}},
		}
	}
	passkey := keyOf(identity.AlgorithmWebAuthn, "public_key", "secret_env")
	passkey.Required = []string{"public_key", "principal", "rp_id", "origins"}
	keys.OneOf = []*jsonschema.Schema{
		keyOf(identity.AlgorithmEd25519, "public_key", "secret_env"), keyOf(identity.AlgorithmHMAC, "secret_env", "public_key"),
		passkey,
	}
	return nil
}

// budgetShape adds to the schema of a budget the rules that the Go types do not express.
func budgetShape(schema *jsonschema.Schema) error {
	schema.AnyOf = []*jsonschema.Schema{{Required: []string{"prices"}}, {Required: []string{"limits"}}}
	amount := func(s *jsonschema.Schema) { s.Minimum, s.Maximum = new(0.0), new(float64(maxAmount)) }
	for _, key := range []string{"input", "output", "cached_input", "cache_write", "call"} {
		amount(schema.Properties["prices"].Properties["models"].Items.Properties[key])
	}
	amount(schema.Properties["prices"].Properties["tools"].Items.Properties["call"])
	limit := schema.Properties["limits"].Items
	limit.Properties["cost"].Maximum = new(float64(maxAmount))
	limit.Properties["cost"].ExclusiveMinimum = new(0.0)
	limit.AnyOf = []*jsonschema.Schema{{Required: []string{"tokens"}}, {Required: []string{"cost"}}}
	rule := limit.Properties["exhausted"].Items
	rule.If = &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"action": {Const: jsonschema.Ptr[any](string(budget.ActionDegrade)), Description: "A rule that degrades names the model."}}}
	rule.Then = &jsonschema.Schema{Required: []string{"model"}}
	rule.Else = &jsonschema.Schema{Not: &jsonschema.Schema{Required: []string{"model"}}}
	return nil
}

// rateLimitShape adds to the schema of a rate limit the rules that the Go types do not express.
func rateLimitShape(schema *jsonschema.Schema) error {
	schema.Properties["limits"].MinItems = new(1)
	limit := schema.Properties["limits"].Items
	limit.AnyOf = []*jsonschema.Schema{{Required: []string{"rate"}}, {Required: []string{"concurrency"}}}
	limit.DependentRequired = map[string][]string{"rate": {"per"}, "per": {"rate"}, "burst": {"rate"}}
	return nil
}

// entityTypeShape adds to the schema of an entity type the rules that the Go types do not express.
func entityTypeShape(schema *jsonschema.Schema) error {
	// Separate types, so that fieldHead and itemHead inside them become references.
	type fieldKeys fieldHead
	type itemKeys itemHead
	field, err := shapeOf(reflect.TypeFor[fieldKeys]())
	if err != nil {
		return err
	}
	item, err := shapeOf(reflect.TypeFor[itemKeys]())
	if err != nil {
		return err
	}
	fieldTypeShape(field)
	fieldTypeShape(item)
	schema.Defs = map[string]*jsonschema.Schema{"field": field, "item": item}
	tasks := schema.Properties["tasks"].Items
	for _, action := range taskActions() {
		one := &jsonschema.Schema{Required: []string{action}}
		if stray := strayTaskKeys(entity.TaskKind(action)); len(stray) > 0 {
			one.Not = &jsonschema.Schema{}
			for _, key := range stray {
				one.Not.AnyOf = append(one.Not.AnyOf, &jsonschema.Schema{Required: []string{key}})
			}
		}
		tasks.OneOf = append(tasks.OneOf, one)
	}
	tasks.DependentRequired = map[string][]string{"backoff": {"attempts"}}
	return nil
}

// fieldTypeShape adds the rules that say which keys a field of each type may have and which it requires.
func fieldTypeShape(schema *jsonschema.Schema) {
	typed := func(types ...entity.FieldType) map[string]*jsonschema.Schema {
		one := &jsonschema.Schema{Description: "The types that have the key."}
		for _, t := range types {
			one.Enum = append(one.Enum, string(t))
		}
		return map[string]*jsonschema.Schema{"type": one}
	}
	for _, key := range ownKeys() {
		var types []entity.FieldType
		for _, t := range entity.FieldTypes() {
			if slices.Contains(typeKeys(t), key) {
				types = append(types, t)
			}
		}
		schema.AllOf = append(schema.AllOf, &jsonschema.Schema{
			If: &jsonschema.Schema{Required: []string{key}}, Then: &jsonschema.Schema{Properties: typed(types...)},
		})
	}
	for _, t := range entity.FieldTypes() {
		rule := &jsonschema.Schema{Properties: typed(t), Required: []string{"type"}}
		then := &jsonschema.Schema{Required: neededKeys(t), Properties: map[string]*jsonschema.Schema{"display": {Description: "A variant of the type."}}}
		for _, variant := range Displays(t) {
			then.Properties["display"].Enum = append(then.Properties["display"].Enum, variant)
		}
		schema.AllOf = append(schema.AllOf, &jsonschema.Schema{If: rule, Then: then})
	}
}
