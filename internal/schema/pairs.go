package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
	"github.com/jig-run/jig/internal/suggest"
)

// FromPairs makes a JSON object from key=value pairs. The schema determines how each value is converted:
//
//   - numbers, booleans and null are read as such where the schema wants them; where it wants a string, 1 stays "1";
//   - an array is a JSON array, or its items with commas between them; "" is the empty array;
//   - an object is a JSON object, or several pairs whose keys name its properties: author.name=Ana;
//   - where the schema does not restrict the type, a value that is JSON is taken as JSON and any other as a string.
//
// The result still has to be validated. The error is a *jig.Error with code INVALID_INPUT; its field is the pointer of the value at fault.
func FromPairs(raw json.RawMessage, pairs map[string]string) (json.RawMessage, error) {
	document, err := strictjson.Decode(raw, strictjson.Limits{Depth: 64, Values: MaxSchemaValues})
	if err != nil {
		return nil, notJSON("the schema", err)
	}
	c := converter{document: document}
	object := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		if err := c.set(object, document, key, pairs[key]); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(object)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input cannot be written as JSON: %w", err)
	}
	return b, nil
}

// converter looks up the types that a schema declares, following references within the document.
type converter struct{ document any }

// set stores one value at the position that its key names and creates the objects on the way.
func (c converter) set(object map[string]any, node any, key, value string) error {
	var path []string
	rest := key
	for {
		name, below, nested := c.step(node, rest)
		if name == "" {
			return jig.Errorf(jig.CodeInvalidInput, "the key %q lacks a name", clip(key)).WithField(strictjson.Pointer(key)).
				WithHint("write name=value, or outer.inner=value for a property of an object")
		}
		path = append(path, name)
		child, known := c.property(node, name)
		if !known {
			names := slices.Sorted(maps.Keys(c.propertiesOf(node)))
			return jig.Errorf(jig.CodeInvalidInput, "there is no property %q", clip(name)).WithField(strictjson.Pointer(path...)).
				WithHint(suggest.Hint(name, names, "known properties: "+clipList(names)))
		}
		if !nested {
			if _, twice := object[name]; twice {
				return jig.Errorf(jig.CodeInvalidInput, "%q is given twice, whole and by its parts", clip(key)).WithField(strictjson.Pointer(path...))
			}
			v, err := c.convert(child, value)
			if err != nil {
				return jig.Errorf(jig.CodeInvalidInput, "%s %w", clip(key), err).WithField(strictjson.Pointer(path...))
			}
			object[name] = v
			return nil
		}
		inner, ok := object[name].(map[string]any)
		if _, taken := object[name]; taken && !ok {
			return jig.Errorf(jig.CodeInvalidInput, "%q is given twice, whole and by its parts", clip(name)).WithField(strictjson.Pointer(path...))
		}
		if types := c.types(child, 0); types != nil && !types["object"] {
			return jig.Errorf(jig.CodeInvalidInput, "%s is not an object, so %s cannot be set", clip(name), clip(key)).
				WithField(strictjson.Pointer(path...)).WithHint("give the whole value: " + clip(name) + "=…")
		}
		if !ok {
			inner = map[string]any{}
			object[name] = inner
		}
		object, node, rest = inner, child, below
	}
}

// step splits the first name off a key. A property whose name contains dots takes precedence over nesting.
func (c converter) step(node any, key string) (name, rest string, nested bool) {
	if _, ok := c.propertiesOf(node)[key]; ok {
		return key, "", false
	}
	name, rest, nested = strings.Cut(key, ".")
	return name, rest, nested
}

// property returns the schema of a property: nil (any value) if there is none, and false if the property is not allowed.
func (c converter) property(node any, name string) (any, bool) {
	if child, ok := c.propertiesOf(node)[name]; ok {
		return child, true
	}
	object, ok := c.resolve(node).(map[string]any)
	if !ok {
		return nil, true
	}
	switch additional := object["additionalProperties"].(type) {
	case bool:
		return nil, additional || object["patternProperties"] != nil
	case map[string]any:
		return additional, true
	}
	return nil, true
}

// propertiesOf collects the properties of a schema and of the schemas that it combines.
func (c converter) propertiesOf(node any) map[string]any {
	all := map[string]any{}
	c.gather(node, all, 0)
	return all
}

func (c converter) gather(node any, all map[string]any, depth int) {
	object, ok := c.resolve(node).(map[string]any)
	if !ok || depth > 8 {
		return
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, ok := object[keyword].([]any)
		if !ok {
			continue
		}
		for _, branch := range branches {
			c.gather(branch, all, depth+1)
		}
	}
	if own, ok := object["properties"].(map[string]any); ok {
		maps.Copy(all, own)
	}
}

// resolve follows $ref within the document.
func (c converter) resolve(node any) any {
	for range 16 {
		object, ok := node.(map[string]any)
		if !ok {
			return node
		}
		ref, ok := object["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#") {
			return node
		}
		target, ok := strictjson.LookUp(c.document, unescapeFragment(ref[1:]))
		if !ok {
			return node
		}
		node = target
	}
	return nil
}
