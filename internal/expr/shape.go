package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig/internal/jsontext"
)

// Shapes describes values before anything runs. It maps paths that start with a variable, such as "input", "steps.page", "steps.page.data",
// "vars.total" or "item", to JSON Schemas. The schema of a longer path overrides what the schema of a shorter path says about the same place.
// A steps.<id> without a schema is a tool result or, for a loop, a list.
type Shapes map[string]json.RawMessage

// ResultShape returns the JSON Schema of a tool result whose data has the given schema, or any data if the schema is empty. It describes
// steps.<id> and, for a loop, each item of the list in steps.<id> (see [ListShape]).
func ResultShape(data json.RawMessage) json.RawMessage {
	return object(map[string]json.RawMessage{
		"success": typed("boolean"), "data": embedded(data), "summary": typed("string"), "markdown": typed("string"),
		"error": ErrorShape(), "artifacts": ListShape(typed("string")), "skipped": typed("boolean"),
	})
}

// ErrorShape returns the JSON Schema of the error in a tool result.
func ErrorShape() json.RawMessage {
	text := typed("string")
	return object(map[string]json.RawMessage{
		"code": text, "message": text, "field": text, "hint": text, "reason": text, "violations": typed("array"),
	})
}

// ListShape returns the JSON Schema of a list with items of the given schema, or with any items if the schema is empty.
func ListShape(items json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"type":"array","items":` + string(embedded(items)) + `}`)
}

func typed(name string) json.RawMessage { return json.RawMessage(`{"type":"` + name + `"}`) }

func object(members map[string]json.RawMessage) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","additionalProperties":false,"properties":{`)
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(name) + ":" + string(members[name]))
	}
	b.WriteString("}}")
	return json.RawMessage(b.String())
}

// embedded returns a schema that can be placed in another schema: its references still resolve within it.
func embedded(schema json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if len(schema) == 0 || json.Unmarshal(schema, &fields) != nil {
		return json.RawMessage(`{}`)
	}
	if _, has := fields["$id"]; !has {
		fields["$id"] = json.RawMessage(`"embedded"`)
	}
	raw, err := jsontext.Encode(fields)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// shape holds what is known about a value. The zero value means that no value is possible.
type shape struct {
	kinds kinds
	// schema describes members and items, and root is the schema in which its references are resolved.
	schema, root map[string]any
	// path is the value's path in Shapes; empty if Shapes has nothing more about it.
	path string
	// items is the shape of a list's items, if no schema gives it.
	items *shape
}

func anything() shape { return shape{kinds: anyKind} }

func of(k kinds) shape { return shape{kinds: k} }

func listOf(items shape) shape { return shape{kinds: kindList, items: &items} }

// shapeOf reads a schema. It ignores restrictions that it does not understand.
func shapeOf(schema any, root map[string]any) shape {
	for range maxRefs {
		s, ok := schema.(map[string]any)
		if !ok {
			return anything()
		}
		if _, own := s["$id"]; own || root == nil {
			root = s
		}
		to, isRef := s["$ref"]
		if !isRef {
			return shape{kinds: schemaKinds(s), schema: s, root: root}
		}
		if schema = target(s, to, root); schema == nil {
			return anything()
		}
	}
	return anything()
}

// maxRefs limits a chain of references.
const maxRefs = 20

// target follows a reference within the document. It returns nil if keywords beside the reference restrict it further.
func target(s map[string]any, to any, root map[string]any) any {
	for key := range s {
		switch key {
		case "$ref", "$defs", "definitions", "$id", "$schema", "$comment", "title", "description", "default", "examples", "deprecated",
			"readOnly", "writeOnly":
		default:
			return nil
		}
	}
	pointer, isText := to.(string)
	pointer, local := strings.CutPrefix(pointer, "#")
	if !isText || !local {
		return nil
	}
	if pointer == "" {
		return root
	}
	if pointer[0] != '/' || strings.Contains(pointer, "%") {
		return nil
	}
	var at any = root
	for i, token := range strings.Split(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		m, ok := at.(map[string]any)
		if _, own := m["$id"]; !ok || own && i > 0 {
			return nil // another document begins here
		}
		at = m[token]
	}
	return at
}

// schemaKinds returns the kinds that `type`, `enum` and `const` allow.
func schemaKinds(s map[string]any) kinds {
	k := anyKind
	switch t := s["type"].(type) {
	case string:
		k = namedKind(t)
	case []any:
		k = 0
		for _, name := range t {
			k |= namedKind(fmt.Sprint(name))
		}
	}
	if values, ok := s["enum"].([]any); ok {
		k &= valueKinds(values...)
	}
	if value, ok := s["const"]; ok {
		k &= valueKinds(value)
	}
	if s["nullable"] == true {
		k |= kindNull // `nullable` is not a JSON Schema keyword, but people use it as in OpenAPI
	}
	if k == 0 {
		return anyKind // no value can match; other checks of schemas report that
	}
	return k
}

// jsonTypes are JSON Schema's names of types, in the order in which a described shape lists them.
var jsonTypes = [...]struct {
	name  string
	kinds kinds
}{
	{"null", kindNull},
	{"boolean", kindBool},
	{"integer", kindInt},
	{"number", kindNumber},
	{"string", kindString},
	{"array", kindList},
	{"object", kindMap},
}

func namedKind(name string) kinds {
	for _, t := range jsonTypes {
		if t.name == name {
			return t.kinds
		}
	}
	return anyKind
}

func valueKinds(values ...any) kinds {
	k := kinds(0)
	for _, v := range values {
		switch v.(type) {
		case nil:
			k |= kindNull
		case bool:
			k |= kindBool
		case int64:
			k |= kindInt
		case float64:
			k |= kindDouble
		case string:
			k |= kindString
		case []any:
			k |= kindList
		case map[string]any:
			k |= kindMap
		default:
			return anyKind
		}
	}
	return k
}

// member returns the shape of a member, and whether the value may have it at all.
func (s shape) member(name string) (shape, bool) {
	properties := s.properties()
	if schema, ok := properties[name]; ok {
		return shapeOf(schema, s.root), true
	}
	if _, patterns := s.schema["patternProperties"]; patterns {
		return anything(), true
	}
	additional, said := s.schema["additionalProperties"]
	if said && additional == false {
		return anything(), false
	}
	if said {
		return shapeOf(additional, s.root), true
	}
	if len(properties) == 0 || s.extended() {
		return anything(), true
	}
	required, ok := s.schema["required"].([]any)
	return anything(), ok && slices.Contains(required, any(name))
}

func (s shape) properties() map[string]any {
	properties, ok := s.schema["properties"].(map[string]any)
	if !ok {
		return nil
	}
	return properties
}

// extended reports whether other parts of the schema may add members.
func (s shape) extended() bool {
	for _, key := range []string{
		"allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "unevaluatedProperties", "$dynamicRef", "$recursiveRef",
		"extends",
	} {
		if _, has := s.schema[key]; has {
			return true
		}
	}
	return false
}

// members lists the names of the known members.
func (s shape) members() []string {
	return keysOf(s.properties())
}

// item returns the shape of a list's items.
func (s shape) item() shape {
	if s.empty() {
		return anything()
	}
	if s.items != nil {
		return *s.items
	}
	if _, tuple := s.schema["prefixItems"]; tuple || s.schema == nil {
		return anything()
	}
	items, ok := s.schema["items"]
	if !ok {
		return anything()
	}
	return shapeOf(items, s.root)
}

// join returns the shape of a value that is one or the other.
func join(a, b shape) shape { return joinTo(a, b, maxJoined) }

// maxJoined limits how deep lists of lists are joined, because a schema may contain itself.
const maxJoined = 4

func joinTo(a, b shape, depth int) shape {
	if a.kinds == 0 {
		return b
	}
	if b.kinds == 0 || a.path != "" && a.path == b.path {
		return a
	}
	joined := of(a.kinds | b.kinds)
	if a.schema != nil && same(a.schema, b.schema) && same(a.root, b.root) {
		joined.schema, joined.root = a.schema, a.root
		return joined
	}
	if joined.kinds == kindList {
		joined.items = joinItems(a, b, depth-1)
	}
	return joined
}

func joinItems(a, b shape, depth int) *shape {
	var items shape
	switch {
	case depth <= 0:
		items = anything()
	case a.empty():
		items = b.item()
	case b.empty():
		items = a.item()
	default:
		items = joinTo(a.item(), b.item(), depth)
	}
	return &items
}

// empty reports whether the value is a list that is known to have no items.
func (s shape) empty() bool { return s.items != nil && s.items.kinds == 0 }

// same reports whether two schemas are the same map.
func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
