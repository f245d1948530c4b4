package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/strictjson"
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
