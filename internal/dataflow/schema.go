package dataflow

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// object is a JSON object in a schema.
type object map[string]any

// subschemas are the parts of a schema that apply to one value, including the branches of allOf, anyOf and oneOf.
type subschemas []object

// maxSubschemas limits how many parts of a schema apply to one value. Further parts are ignored, so that a constant in them counts as data.
const maxSubschemas = 64

// parseSchema reads a JSON Schema. It returns nil for a schema that is not an object.
func parseSchema(schema json.RawMessage) object {
	var o object
	if json.Unmarshal(schema, &o) != nil {
		return nil
	}
	return o
}

// subschemas returns the parts of the schema that apply to the whole input.
func (o object) subschemas() subschemas {
	return subschemas{}.with(o, o, 0)
}

// with adds a part of the schema and everything that it refers to.
func (p subschemas) with(root, part object, depth int) subschemas {
	if part == nil || depth > maxDepth || len(p) >= maxSubschemas {
		return p
	}
	p = append(p, part)
	if name, ok := part["$ref"].(string); ok {
		p = p.with(root, root.resolve(name), depth+1)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, branch := range list(part[key]) {
			p = p.with(root, asObject(branch), depth+1)
		}
	}
	for _, key := range []string{"then", "else"} {
		p = p.with(root, asObject(part[key]), depth+1)
	}
	return p
}

// resolve returns the part that a reference within the document names, or nil.
func (o object) resolve(ref string) object {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := o
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if name == "" {
			continue
		}
		at = asObject(at[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)])
	}
	return at
}

// property returns the parts that apply to a property. known reports whether the schema has its name.
func (p subschemas) property(root object, name string) (inner subschemas, known bool) {
	for _, part := range p {
		if part[destinationKey] == true { // a mark on the object is a mark on its properties
			inner = append(inner, object{destinationKey: true})
		}
	}
	for _, part := range p {
		if property, ok := asObject(part["properties"])[name]; ok {
			inner, known = inner.with(root, asObject(property), 0), true
		}
	}
	if known {
		return inner, true
	}
	known = slices.ContainsFunc(p, func(part object) bool { return subschemas{asObject(part["propertyNames"])}.constant(name) })
	for _, part := range p {
		for _, pattern := range slices.Sorted(maps.Keys(asObject(part["patternProperties"]))) {
			inner = inner.with(root, asObject(asObject(part["patternProperties"])[pattern]), 0)
		}
		inner = inner.with(root, asObject(part["additionalProperties"]), 0)
	}
	return inner, known
}

// item returns the parts that apply to item i of an array.
func (p subschemas) item(root object, i int) subschemas {
	var inner subschemas
	for _, part := range p {
		if prefix := list(part["prefixItems"]); i < len(prefix) {
			inner = inner.with(root, asObject(prefix[i]), 0)
		} else {
			inner = inner.with(root, asObject(part["items"]), 0)
		}
		// A mark on the array is a mark on its items.
		if part[destinationKey] == true {
			inner = append(inner, object{destinationKey: true})
		}
	}
	return inner
}

const (
	// destinationKey marks arguments that say where data goes.
	destinationKey = "x-destination"
	// quantityKey marks integers that are amounts, not ids.
	quantityKey = "x-quantity"
)

// destination reports whether the schema marks the value as a destination.
func (p subschemas) destination() bool {
	return slices.ContainsFunc(p, func(part object) bool { return part[destinationKey] == true })
}

// quantity reports whether the schema says that a number is an amount or a measure, and not an id: it need not be whole, has a maximum, or is
// marked.
func (p subschemas) quantity() bool {
	return slices.ContainsFunc(p, func(part object) bool {
		return part["type"] == "number" || slices.Contains(list(part["type"]), any("number")) || part["maximum"] != nil || part[quantityKey] == true
	})
}

// constant reports whether the author of the schema wrote the value: a member of an enum, a const or a default. Such a value is a choice and
// carries no data of its own.
func (p subschemas) constant(v any) bool {
	for _, part := range p {
		if part.constant("const", v) || part.constant("default", v) || slices.ContainsFunc(list(part["enum"]), func(e any) bool { return same(e, v) }) {
			return true
		}
	}
	return false
}

// constant reports whether the value of a keyword is v.
func (o object) constant(keyword string, v any) bool {
	c, ok := o[keyword]
	return ok && same(c, v)
}

// same compares a value of the schema with a value of the input, whose numbers are json.Number.
func same(constant, v any) bool {
	if n, ok := v.(json.Number); ok {
		f, err := n.Float64()
		return err == nil && constant == f
	}
	return reflect.DeepEqual(constant, v)
}

// asObject returns v as an object, or nil.
func asObject(v any) object {
	if o, ok := v.(map[string]any); ok {
		return o
	}
	return nil
}

// list returns v as a list, or nil.
func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return nil
}
