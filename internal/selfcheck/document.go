// Package selfcheck tests a running server from outside: "jig selftest isolation" runs it against an installation, and the tests of package server
// against a server in the same process. It knows nothing of the server but its OpenAPI document, so new operations are tested without changes
// here.
//
// [Isolation.Run] plays two tenants, the owner and another one. It gathers the ids of both (foreign.go), and then makes requests as the other
// tenant with ids of the owner in every place of a request that names something; the extension x-names of the document marks these places
// (document.go). An answer must be the same as for an id that does not exist, in its status, its headers, its body and its cost, and must
// contain nothing of the owner. Credentials that do not count, embed tokens on pages of another origin (pages.go) and cursors of another tenant
// must be refused in the same way everywhere.
//
// What is wrong is a finding; what could not be tried, because the tenants lack something, is listed too. Begin with isolation.go.
package selfcheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
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
	// Security lists the kinds of credentials that the operation takes. It is empty if the operation needs none.
	Security []map[string][]string
	Body     *struct {
		Required bool
		Content  map[string]struct{ Schema Schema }
	} `json:"requestBody"` //nolint:tagliatelle // OpenAPI's own name
	Responses map[string]struct {
		Content map[string]struct{ Schema Schema }
	}
	// Method and Path come from the operation's place in the document.
	Method, Path string `json:"-"`
}

// Open reports whether the operation is for everybody, without a credential.
func (o *Operation) Open() bool { return len(o.Security) == 0 }

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

// place is a part of a request that names something of a tenant.
type place struct {
	// in and at are those of a [Text].
	in, at string
	// kind is the kind of the named thing.
	kind string
	// by is the parameter or the member beside it that holds the kind; empty if the kind is always the same.
	by string
}

// places lists the places of an operation, in headers too. One that names things of several kinds is there once for each.
func (d *Document) places(op *Operation) []place {
	var list []place
	for _, p := range op.Parameters {
		if kind := text(p.Schema["x-names"]); p.In == "header" && kind != "" {
			list = append(list, place{in: p.In, at: p.Name, kind: kind})
		}
	}
	texts := d.Texts(op)
	for _, one := range texts {
		kind := text(one.Schema["x-names"])
		by, other := strings.CutPrefix(strings.TrimSuffix(kind, "}"), "{")
		if !other {
			if kind != "" {
				list = append(list, place{in: one.In, at: one.At, kind: kind})
			}
			continue
		}
		beside := slices.IndexFunc(texts, func(t Text) bool { return t.In == one.In && t.At == one.beside(by) })
		if beside < 0 {
			continue
		}
		kinds, _ := texts[beside].Schema["enum"].([]any) //nolint:errcheck // without an enumeration there are no kinds
		for _, kind := range kinds {
			list = append(list, place{one.In, one.At, text(kind), by})
		}
	}
	return list
}

// prepared is a request without its credential.
type prepared struct {
	method, path string
	headers      http.Header
	body         any
}

// draft is a request that is being built.
type draft struct {
	*Document

	places []place
	// target is a place that the request contains even if it is optional. Other places are filled in only if they are required.
	target place
	// id returns the id to use for a place.
	id func(place) string
}

// request returns a small valid request of an operation.
func (d *Document) request(op *Operation, target place, id func(place) string) prepared {
	w := draft{d, d.places(op), target, id}
	path, query, headers := op.Path, url.Values{}, http.Header{}
	for _, p := range op.Parameters {
		value := fmt.Sprint(d.Sample(p.Schema))
		switch here, named := w.place(p.In, p.Name); {
		case named:
			value = id(here)
		case p.In == target.in && p.Name == target.by:
			value = target.kind
		}
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == "query" && (p.Required || target.in == p.In && target.at == p.Name):
			query.Set(p.Name, value)
		case p.In == "header" && target.in == p.In && target.at == p.Name: // it is an entity tag
			headers.Set(p.Name, `"`+value+`"`)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request := prepared{method: op.Method, path: path, headers: headers}
	if schema := d.BodySchema(op); schema != nil {
		request.body = w.fill(schema, d.Sample(schema), "")
	}
	return request
}

// place returns what a parameter or a member names in the request. named reports whether it names anything.
func (w draft) place(in, at string) (here place, named bool) {
	if w.target.in == in && w.target.at == at {
		return w.target, true
	}
	i := slices.IndexFunc(w.places, func(p place) bool { return p.in == in && p.at == at })
	if i < 0 {
		return here, false
	}
	return w.places[i], true
}

// fill writes ids into a value that fits a schema, and adds the optional parts that the target is in.
func (w draft) fill(s Schema, value any, at string) any {
	switch value := value.(type) {
	case []any:
		items := member(w.resolve(s)["items"])
		if len(value) == 0 && w.target.within(at+"[]") {
			value = []any{w.Sample(items)}
		}
		for i := range value {
			value[i] = w.fill(items, value[i], at+"[]")
		}
		return value
	case map[string]any:
		kinds := map[string]any{}
		for name, property := range w.Properties(s) {
			below := at + "." + name
			if value[name] == nil && w.target.within(below) {
				value[name] = w.Sample(property)
			}
			if value[name] == nil {
				continue
			}
			here, named := w.place("body", below)
			if !named {
				value[name] = w.fill(property, value[name], below)
				continue
			}
			value[name] = w.id(here)
			if here.by != "" {
				kinds[here.by] = here.kind
			}
		}
		maps.Copy(value, kinds)
		return value
	}
	return value
}

// within reports whether the place is at or below a member of the body.
func (p place) within(at string) bool {
	rest, found := strings.CutPrefix(p.at, at)
	return p.in == "body" && found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
