package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
)

// maxDepth is how deeply a text may be nested that is not checked against a schema with a limit of its own.
const maxDepth = 500

// Check returns an error if a text is not acceptable JSON, whatever it means. The error is INVALID_INPUT; its field is a JSON pointer.
func Check(text []byte) error {
	_, err := read(text, "")
	return err
}

// Unmarshal decodes a text like [json.Unmarshal], and refuses what [Check] refuses and members whose names differ from a field's only in
// their case. It ignores other unknown members. Values of types that decode themselves, such as [json.RawMessage], and of interface types
// are free data, whose names are not compared. The error is INVALID_INPUT; its field is a JSON pointer.
func Unmarshal(text []byte, v any) error { return unmarshal(text, v, "", false) }

// UnmarshalKnown is like Unmarshal and refuses all unknown members.
func UnmarshalKnown(text []byte, v any) error { return unmarshal(text, v, "", true) }

// UnmarshalBut is like Unmarshal and does not check the value of one member of the outermost object.
func UnmarshalBut(member string, text []byte, v any) error { return unmarshal(text, v, member, false) }

func unmarshal(text []byte, v any, skip string, known bool) error {
	value, err := read(text, skip)
	if err != nil {
		return err
	}
	if folded := FindFolded(value, reflect.TypeOf(v)); folded != nil {
		return jig.Errorf(jig.CodeInvalidInput, "unknown field %q", jig.Known(clip(folded.Name))).WithField(folded.Pointer).
			WithHint("names are case-sensitive: write " + strconv.Quote(folded.Field))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if known {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return unfit(err)
	}
	return nil
}

func read(text []byte, skip string) (any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, jig.Errorf(jig.CodeInvalidInput, "it is empty; give a JSON object")
	}
	value, err := Decode(text, Limits{Depth: maxDepth, Values: MaxValues, Skip: skip})
	var s *SyntaxError
	if errors.As(err, &s) {
		return nil, jig.Errorf(jig.CodeInvalidInput, "%w", err).WithField(s.Pointer).WithHint(s.Hint)
	}
	return value, err
}

// unfit translates an error of encoding/json about a text that is JSON.
func unfit(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "":
		return jig.Errorf(jig.CodeInvalidInput, "it is of type %s; give a JSON object", wrong.Value)
	case errors.As(err, &wrong):
		return jig.Errorf(jig.CodeInvalidInput, "`%s` must not be of type %s", jig.Known(wrong.Field[strings.LastIndex(wrong.Field, ".")+1:]), wrong.Value)
	}
	message := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(message, "unknown field ") { // names of members are no values
		return jig.Errorf(jig.CodeInvalidInput, "%s", jig.Known(message))
	}
	return jig.Errorf(jig.CodeInvalidInput, "%s", message)
}

// FoldedName is a member of an object that encoding/json decodes into a field although their names differ in case.
type FoldedName struct{ Pointer, Name, Field string }

// FindFolded returns the first folded name in a decoded text that is to be decoded into a value of type t, or nil.
func FindFolded(value any, t reflect.Type) *FoldedName { return findFolded(value, t, nil) }

func findFolded(value any, t reflect.Type, path []string) *FoldedName {
	for t != nil && t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	if t == nil || decodesItself(t) {
		return nil
	}
	switch v := value.(type) {
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return nil
		}
		for i, item := range v {
			if found := findFolded(item, t.Elem(), append(path, strconv.Itoa(i))); found != nil {
				return found
			}
		}
	case map[string]any:
		return foldedMember(v, t, path)
	}
	return nil
}

func foldedMember(members map[string]any, t reflect.Type, path []string) *FoldedName {
	var fields map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		fields = FieldsOf(t)
	} else if t.Kind() != reflect.Map {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := append(slices.Clone(path), name)
		below := fields[name]
		switch {
		case fields == nil:
			below = t.Elem()
		case below == nil:
			for field := range fields {
				if strings.EqualFold(field, name) {
					return &FoldedName{Pointer: Pointer(at...), Name: name, Field: field}
				}
			}
			continue
		}
		if found := findFolded(members[name], below, at); found != nil {
			return found
		}
	}
	return nil
}

// FieldsOf returns the types of the fields of a struct that encoding/json fills, by their names in JSON, including those of embedded structs.
func FieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || f.Tag.Get("json") == "-" || (f.Anonymous && name == ""):
			continue
		case name == "":
			name = f.Name
		}
		if _, ok := fields[name]; !ok {
			fields[name] = f.Type
		}
	}
	return fields
}

// decodesItself reports whether values of a type, or what points to them, decode JSON themselves.
func decodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return true
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Pointer returns a JSON pointer (RFC 6901); without parts it returns "", the whole document.
func Pointer(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		if strings.ContainsAny(part, "~/") {
			part = strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1")
		}
		b.WriteString(part)
	}
	return b.String()
}

// LookUp follows a JSON pointer into a decoded document.
func LookUp(document any, pointer string) (any, bool) {
	if pointer == "" {
		return document, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch node := document.(type) {
		case map[string]any:
			child, ok := node[part]
			if !ok {
				return nil, false
			}
			document = child
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			document = node[i]
		default:
			return nil, false
		}
	}
	return document, true
}
