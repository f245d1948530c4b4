package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Shapes says what is known of values before anything runs: a JSON Schema for each path from a variable, such as "input",
// "steps.page", "steps.page.data", "vars.total" or "item". A longer path counts for more than what a shorter one says of the
// same place. Of steps.<id> without a schema it is known that it is a tool result or, of a loop, a list.
type Shapes map[string]json.RawMessage

// ResultShape is the JSON Schema of a tool result whose data has a schema; of any data when it is empty. It is what
// steps.<id> holds, and each item of what a loop's steps.<id> holds (see ListShape).
func ResultShape(data json.RawMessage) json.RawMessage {
	return object(map[string]json.RawMessage{
		"success": typed("boolean"), "data": embedded(data), "summary": typed("string"), "markdown": typed("string"),
		"error": ErrorShape(), "artifacts": ListShape(typed("string")), "skipped": typed("boolean"),
	})
}

// ErrorShape is the JSON Schema of the error in a tool result.
func ErrorShape() json.RawMessage {
	text := typed("string")
	return object(map[string]json.RawMessage{
		"code": text, "message": text, "field": text, "hint": text, "reason": text, "violations": typed("array"),
	})
}

// ListShape is the JSON Schema of a list; of any items when items is empty.
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

// embedded is a schema to stand in another: its references go on meaning itself.
func embedded(schema json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if len(schema) == 0 || json.Unmarshal(schema, &fields) != nil {
		return json.RawMessage(`{}`)
	}
	if _, has := fields["$id"]; !has {
		fields["$id"] = json.RawMessage(`"embedded"`)
	}
	raw, err := marshal(fields)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// shape is what is known of a value. The zero value is what cannot be.
type shape struct {
	kinds kinds
	// schema is what the members and items are looked up in, root what its references mean.
	schema, root map[string]any
	// path leads on in Shapes; empty when nothing more is known there.
	path string
	// items is the shape of a list's items when no schema tells.
	items *shape
}

func anything() shape { return shape{kinds: anyKind} }

func of(k kinds) shape { return shape{kinds: k} }

func listOf(items shape) shape { return shape{kinds: kindList, items: &items} }

// shapeOf reads a schema. What it does not understand it takes for anything.
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

// maxRefs bounds a chain of references.
const maxRefs = 20

// target follows a reference within the document, when nothing stands beside it that says more.
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

// schemaKinds is what `type`, `enum` and `const` leave.
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
		k |= kindNull // OpenAPI's word, which JSON Schema does not have and people write
	}
	if k == 0 {
		return anyKind // nothing can be that; whoever checks schemas says so
	}
	return k
}

func namedKind(name string) kinds {
	switch name {
	case "null":
		return kindNull
	case "boolean":
		return kindBool
	case "integer":
		return kindInt
	case "number":
		return kindNumber
	case "string":
		return kindString
	case "array":
		return kindList
	case "object":
		return kindMap
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

// member is the shape of a member, and whether the value may have it at all.
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

// extended reports whether other parts of the schema may bring in members.
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

// members lists the names of the members that are known.
func (s shape) members() []string {
	return keysOf(s.properties())
}

// item is the shape of a list's items.
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

// join is the shape of a value that is one or the other.
func join(a, b shape) shape { return joinTo(a, b, maxJoined) }

// maxJoined bounds how deep lists of lists are joined; a schema may hold itself.
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

// empty reports whether it is a list that is known to have no items.
func (s shape) empty() bool { return s.items != nil && s.items.kinds == 0 }

// same reports whether two schemas are one.
func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
