package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
	"github.com/jig-run/jig/internal/suggest"
)

// types returns the set of JSON types that a schema allows; nil if it does not restrict them.
func (c converter) types(node any, depth int) map[string]bool {
	object, ok := c.resolve(node).(map[string]any)
	if !ok || depth > 8 {
		return nil
	}
	set := map[string]bool{}
	switch t := object["type"].(type) {
	case string:
		set[t] = true
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok {
				set[name] = true
			}
		}
	}
	if len(set) > 0 {
		return set
	}
	if allowed, ok := object["enum"].([]any); ok {
		for _, v := range allowed {
			set[typeName(v)] = true
		}
		return set
	}
	if only, ok := object["const"]; ok {
		return map[string]bool{typeName(only): true}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		branches, ok := object[keyword].([]any)
		if !ok {
			continue
		}
		for _, branch := range branches {
			for name := range c.types(branch, depth+1) {
				set[name] = true
			}
		}
	}
	if len(set) == 0 {
		return nil
	}
	return set
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// convert reads a value as the schema requires.
func (c converter) convert(node any, value string) (any, error) {
	types := c.types(node, 0)
	v, err := strictjson.Decode([]byte(value), strictjson.Limits{Depth: 64, Values: strictjson.MaxValues})
	isJSON := err == nil
	if types == nil {
		if isJSON {
			return v, nil
		}
		return value, nil
	}
	// A value that is JSON of an allowed type is used as JSON. Strings are the exception: they are taken literally.
	if name := typeName(v); isJSON && name != "string" && (types[name] || (name == "number" && types["integer"])) {
		if name == "number" && !types["number"] && !isInteger(value) {
			if !strictjson.ExactNumber(strings.TrimSpace(value)) && !strings.ContainsAny(value, ".eE") {
				return nil, errors.New("is beyond 2^53 and would lose digits; write it as a string")
			}
			return nil, errors.New("must be an integer")
		}
		return v, nil
	}
	switch {
	case types["string"]:
		return value, nil
	case types["array"] && !startsLike(value, '['):
		return c.items(node, value)
	}
	return nil, errors.New("must be " + wanted(types))
}

// items splits a list at its commas and converts each item.
func (c converter) items(node any, value string) (any, error) {
	list := []any{}
	if strings.TrimSpace(value) == "" {
		return list, nil
	}
	var item any
	if object, ok := c.resolve(node).(map[string]any); ok {
		item = object["items"]
	}
	for part := range strings.SplitSeq(value, ",") {
		v, err := c.convert(item, strings.TrimSpace(part))
		if err != nil {
			return nil, errors.New("has an item that " + err.Error())
		}
		list = append(list, v)
	}
	return list, nil
}

func startsLike(value string, c byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace([]byte(value)), []byte{c})
}

// isInteger reports whether a JSON number is an integer in the sense of JSON Schema: 1.0 and 1e3 are integers.
func isInteger(literal string) bool {
	_, ok := integer(strings.TrimSpace(literal))
	return ok
}

// wanted describes a set of types, with an example where people often make mistakes.
func wanted(types map[string]bool) string {
	words := map[string]string{
		"integer": "an integer", "number": "a number", "boolean": "true or false", "null": "null",
		"array": "a list: a,b,c or a JSON array", "object": "a JSON object, or pairs name.property=value",
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if word, ok := words[name]; ok && !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return strings.Join(list, " or ")
}

// integer returns a JSON number without fraction and exponent if it is an integer up to 2^53, as 1.0 and 1e3 are.
func integer(literal string) (string, bool) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > strictjson.MaxExactInteger || !strictjson.ExactNumber(literal) {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// RewriteIntegers returns the JSON text with its integers written without fraction and exponent (1.0 and 1e3 become 1 and 1000), so that
// they decode into Go's integer types. All other values stay the same.
func RewriteIntegers(text []byte) ([]byte, error) {
	v, err := strictjson.Decode(text, strictjson.Limits{Depth: 128, Values: strictjson.MaxValues})
	if err != nil {
		return nil, notJSON("the value", err)
	}
	b, err := json.Marshal(whole(v))
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the value cannot be written as JSON: %w", err)
	}
	return b, nil
}

func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			v[name] = whole(child)
		}
	case []any:
		for i, child := range v {
			v[i] = whole(child)
		}
	case json.Number:
		if n, ok := integer(v.String()); ok {
			return json.Number(n)
		}
	}
	return v
}

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
