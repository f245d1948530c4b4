package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/jig-run/jig"
)

// encoding/json also fills a field from a member whose name equals the field's only under case folding, such as "Amount" for amount, or
// "tas\u212a" for task. Policies and people would then see one value and the tool another. So typed tools refuse such members, and their
// schemas must not allow them.

// checkFolding refuses an input with a member that matches a field of t only by case folding.
func checkFolding(t reflect.Type, input []byte, at string) error {
	t = pointee(t)
	if decodesItself(t) {
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // other kinds have no members
	case reflect.Slice, reflect.Array:
		var items []json.RawMessage
		if json.Unmarshal(input, &items) != nil {
			return nil //nolint:nilerr // what does not decode is reported elsewhere
		}
		for i, item := range items {
			if err := checkFolding(t.Elem(), item, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
	case reflect.Map, reflect.Struct:
		var members map[string]json.RawMessage
		if !bytes.HasPrefix(bytes.TrimSpace(input), []byte("{")) || json.Unmarshal(input, &members) != nil {
			return nil //nolint:nilerr // what does not decode is reported elsewhere
		}
		if t.Kind() == reflect.Map {
			for name, member := range members {
				if err := checkFolding(t.Elem(), member, at+"/"+name); err != nil {
					return err
				}
			}
			return nil
		}
		fields := fieldsOf(t)
		for name, member := range members {
			if field, ok := fields[name]; ok {
				if err := checkFolding(field, member, at+"/"+name); err != nil {
					return err
				}
				continue
			}
			for known := range fields {
				if strings.EqualFold(known, name) {
					return jig.Errorf(jig.CodeInvalidInput, "%q is not the field %s, but could be read as it", at+"/"+name, known).
						WithField(at + "/" + name).WithHint("write it as " + known + ", and only once")
				}
			}
		}
	}
	return nil
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
		fields := fieldsOf(t)
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

// fieldsOf returns the fields of a struct that encoding/json fills, by JSON name, including those of embedded structs.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && pointee(f.Type).Kind() == reflect.Struct:
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}
