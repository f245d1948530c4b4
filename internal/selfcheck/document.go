// Package selfcheck tests a running server from outside. It derives its requests from the server's OpenAPI document, so new operations are tested
// without changes here.
package selfcheck

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// Document is the part of an OpenAPI document that tests need.
type Document struct {
	Paths      map[string]map[string]*Operation
	Components struct{ Schemas map[string]Schema }
}

// Schema is a JSON Schema.
type Schema = map[string]any

// Operation is an operation of a server.
type Operation struct {
	ID    string `json:"operationId"` //nolint:tagliatelle // OpenAPI's own name
	Scope string `json:"x-scope"`     //nolint:tagliatelle // names of extensions begin with x-
	// Or is a scope that does as well.
	Or string `json:"x-or-scope"` //nolint:tagliatelle // names of extensions begin with x-
	// Embed is the kind of embed tokens that the operation accepts; empty for none.
	Embed string `json:"x-embed"` //nolint:tagliatelle // names of extensions begin with x-
	// Record says where a change is recorded. An operation that makes a call responds before the call has run.
	Record     string `json:"x-record"` //nolint:tagliatelle // names of extensions begin with x-
	Parameters []Parameter
	Body       *struct {
		Required bool
		Content  map[string]struct{ Schema Schema }
	} `json:"requestBody"` //nolint:tagliatelle // OpenAPI's own name
	Responses map[string]struct {
		Content map[string]struct{ Schema Schema }
	}
	// Method and Path come from the operation's place in the document.
	Method, Path string `json:"-"`
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name, In string
	Required bool
	Schema   Schema
}

// Parse reads an OpenAPI document.
func Parse(text []byte) (*Document, error) {
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the OpenAPI document cannot be read: %w", err)
	}
	if len(d.Operations()) == 0 {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the OpenAPI document has no operations")
	}
	return &d, nil
}

// Operations lists the operations by path and method.
func (d *Document) Operations() []*Operation {
	var list []*Operation
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			op := d.Paths[path][method]
			op.Method, op.Path = strings.ToUpper(method), path
			list = append(list, op)
		}
	}
	return list
}

// resolve follows references.
func (d *Document) resolve(s Schema) Schema {
	for range 20 {
		name, ok := strings.CutPrefix(text(s["$ref"]), "#/components/schemas/")
		if !ok {
			break
		}
		s = d.Components.Schemas[name]
	}
	return s
}

// BodySchema returns the schema of an operation's JSON body, or nil if it takes none.
func (d *Document) BodySchema(op *Operation) Schema {
	if op.Body == nil {
		return nil
	}
	return d.resolve(op.Body.Content["application/json"].Schema)
}

// Sample returns a small value that fits a schema: the required members of objects only, and the first value of an enumeration.
func (d *Document) Sample(s Schema) any { return d.sample(s, 0) }

func (d *Document) sample(s Schema, depth int) any {
	s = d.resolve(s)
	if options, ok := s["enum"].([]any); ok && len(options) > 0 {
		return options[0]
	}
	for _, choice := range []string{"oneOf", "anyOf", "allOf"} {
		if options, ok := s[choice].([]any); ok && len(options) > 0 {
			return d.sample(member(options[0]), depth+1)
		}
	}
	switch d.TypeOf(s) {
	case "string":
		if text(s["format"]) == "date-time" {
			return "2026-01-02T15:04:05Z"
		}
		return strings.Repeat("a", max(1, number(s["minLength"])))
	case "integer", "number":
		return max(1, number(s["minimum"]))
	case "boolean":
		return false
	case "array":
		list := make([]any, number(s["minItems"]))
		for i := range list {
			list[i] = d.sample(member(s["items"]), depth+1)
		}
		return list
	}
	object := map[string]any{}
	if required, ok := s["required"].([]any); ok && depth < 10 {
		for _, name := range required {
			object[text(name)] = d.sample(member(member(s["properties"])[text(name)]), depth+1)
		}
	}
	return object
}

// TypeOf returns the type of a schema, other than null; empty if it has none.
func (d *Document) TypeOf(s Schema) string {
	switch t := d.resolve(s)["type"].(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if text(one) != "null" {
				return text(one)
			}
		}
	}
	return ""
}

// Properties lists the members of an object's schema by name.
func (d *Document) Properties(s Schema) map[string]Schema {
	all := map[string]Schema{}
	for name, property := range member(d.resolve(s)["properties"]) {
		all[name] = d.resolve(member(property))
	}
	return all
}

// maxDepth is how deep a body is searched for texts.
const maxDepth = 6

// Text is a text of a request: a parameter, or a member of the body, however deep.
type Text struct {
	// In is path, query or body. At is the name of the parameter or the path of the member, such as .decisions[].grant_id.
	In, At string
	Schema Schema
}

// Texts lists the texts that an operation takes in its path, its query and its body.
func (d *Document) Texts(op *Operation) []Text {
	var list []Text
	for _, in := range []string{"path", "query"} {
		for _, p := range op.Parameters {
			if p.In == in {
				list = d.texts(list, Text{in, p.Name, p.Schema})
			}
		}
	}
	return d.texts(list, Text{"body", "", d.BodySchema(op)})
}

// texts appends the texts in values of a schema.
func (d *Document) texts(list []Text, t Text) []Text {
	t.Schema = d.resolve(t.Schema)
	if strings.Count(t.At, ".") > maxDepth {
		return list
	}
	if d.TypeOf(t.Schema) == "string" || t.Schema["x-names"] != nil { // a list of names is a text, too
		return append(list, t)
	}
	if items := member(t.Schema["items"]); items != nil {
		return d.texts(list, Text{t.In, t.At + "[]", items})
	}
	object := d.Properties(t.Schema)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		list = d.texts(list, Text{t.In, t.At + "." + name, object[name]})
	}
	return list
}

// beside returns where another parameter or member of the same object is.
func (t Text) beside(name string) string { return t.At[:strings.LastIndex(t.At, ".")+1] + name }

func text(v any) string { s, _ := v.(string); return s } //nolint:errcheck // another type is no text

func member(v any) Schema { m, _ := v.(Schema); return m } //nolint:errcheck // another type has no members

func number(v any) int { n, _ := v.(float64); return int(n) } //nolint:errcheck // another type is no number
