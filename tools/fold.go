package tools

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// encoding/json also fills a field from a member whose name equals the field's only under case folding, such as "Amount" for amount, or
// "tas\u212a" for task. Policies and people would then see one value and the tool another. So typed tools refuse such members, and their
// schemas must not allow them.

// checkFolding refuses an input with a member that matches a field of t only by case folding.
func checkFolding(t reflect.Type, input []byte) error {
	var value any
	if json.Unmarshal(input, &value) != nil {
		return nil //nolint:nilerr // what does not decode is reported elsewhere
	}
	folded := strictjson.FindFolded(value, t)
	if folded == nil {
		return nil
	}
	return jig.Errorf(jig.CodeInvalidInput, "%q is not the field %s, but could be read as it", folded.Pointer, folded.Field).
		WithField(folded.Pointer).WithHint("write it as " + folded.Field + ", and only once")
}

// checkClosed refuses the input schema of a typed tool if it lets an object have members other than the fields of its struct. It follows
// properties and items; schemas behind a reference are not checked, but decoding a call still refuses such members.
func checkClosed(t reflect.Type, schema json.RawMessage, at string) error {
	t = pointee(t)
	var s struct {
		Properties  map[string]json.RawMessage `json:"properties"`
		Items       json.RawMessage            `json:"items"`
		Additional  json.RawMessage            `json:"additionalProperties"`  //nolint:tagliatelle // JSON Schema defines the name
		Unevaluated json.RawMessage            `json:"unevaluatedProperties"` //nolint:tagliatelle // JSON Schema defines the name
		Ref         string                     `json:"$ref"`
	}
	if decodesItself(t) || json.Unmarshal(schema, &s) != nil {
		return nil //nolint:nilerr // what does not decode is reported elsewhere
	}
	switch t.Kind() { //nolint:exhaustive // other kinds have no members
	case reflect.Slice, reflect.Array:
		if len(s.Items) > 0 {
			return checkClosed(t.Elem(), s.Items, at+"/items")
		}
	case reflect.Struct:
		closed := string(s.Additional) == "false" || string(s.Unevaluated) == "false" || s.Ref != ""
		fields := strictjson.FieldsOf(t)
		if !closed && len(fields) > 0 {
			return fmt.Errorf("input_schema%s is open: a member whose name differs from a field only in case could silently replace it; add \"additionalProperties\": false", at)
		}
		for name, member := range s.Properties {
			if field, ok := fields[name]; ok {
				if err := checkClosed(field, member, at+"/properties/"+name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func pointee(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// decodesItself reports whether a type decodes its own JSON.
func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}
