package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
)

// fieldKey is the keyword that holds the settings of a field that JSON Schema cannot express.
const fieldKey = "x-field"

// ContentSchema returns the JSON Schema (2020-12) of the content of an entity type. It accepts what [CheckContent] accepts without partial,
// whether a validator asserts formats or treats them as annotations. The label of a field becomes its title. The display, the target of a
// relation and the task are kept under x-field, which validators ignore.
func ContentSchema(t entity.Type) json.RawMessage {
	o := jsonObject{{"$schema", "https://json-schema.org/draft/2020-12/schema"}}
	o.text("title", t.Title)
	o.text("description", t.Description)
	return writeJSON(append(o, membersSchema(t.Fields, true)...))
}

// text adds a member, unless its value is empty.
func (o *jsonObject) text(key, value string) {
	if value != "" {
		*o = append(*o, jsonMember{key, value})
	}
}

// fieldSchema returns the schema of a field. If notes is true, the schema includes keywords that do not restrict values, such as the title.
func fieldSchema(f *entity.Field, notes bool) jsonObject {
	o := valueSchema(f, notes)
	if !notes {
		return o
	}
	o.text("title", f.Label)
	o.text("description", f.Description)
	if json.Valid(f.Default) {
		o = append(o, jsonMember{"default", f.Default})
	}
	var own jsonObject
	own.text("display", f.Display)
	own.text("target", f.Target)
	own.text("task", f.Task)
	if len(own) > 0 {
		o = append(o, jsonMember{fieldKey, own})
	}
	return o
}

// valueSchema returns the part of a schema that restricts values.
func valueSchema(f *entity.Field, notes bool) jsonObject {
	switch f.Type {
	case entity.FieldText:
		o := append(jsonObject{{"type", "string"}}, lengths(f, "minLength", "maxLength")...)
		o.text("pattern", f.Pattern)
		return o
	case entity.FieldNumber:
		o := jsonObject{{"type", "number"}}
		if f.Integer {
			o[0].value = "integer"
		}
		if decimal(f.Minimum) != nil {
			o = append(o, jsonMember{"minimum", *f.Minimum})
		}
		if decimal(f.Maximum) != nil {
			o = append(o, jsonMember{"maximum", *f.Maximum})
		}
		return o
	case entity.FieldBoolean:
		return jsonObject{{"type", "boolean"}}
	case entity.FieldEnum:
		options := make([]any, 0, len(f.Options))
		for _, option := range f.Options {
			options = append(options, option)
		}
		return jsonObject{{"type", "string"}, {"enum", options}}
	case entity.FieldObject:
		return membersSchema(f.Fields, notes)
	case entity.FieldArray:
		o := jsonObject{{"type", "array"}}
		if f.Items != nil {
			o = append(o, jsonMember{"items", fieldSchema(f.Items, notes)})
		}
		return append(o, lengths(f, "minItems", "maxItems")...)
	case entity.FieldRelation:
		if f.Many {
			one := jsonObject{{"type", "string"}, {"pattern", relationPatternText}}
			o := jsonObject{{"type", "array"}, {"items", one}, {"uniqueItems", true}}
			return append(o, lengths(f, "minItems", "maxItems")...)
		}
		return formSchema(f)
	case entity.FieldDate, entity.FieldURL, entity.FieldEmail, entity.FieldPhone, entity.FieldMedia:
		return formSchema(f)
	}
	return jsonObject{{"not", jsonObject{}}} // a type that does not exist has no values
}

func lengths(f *entity.Field, low, high string) jsonObject {
	var o jsonObject
	if f.MinLength != nil {
		o = append(o, jsonMember{low, *f.MinLength})
	}
	if f.MaxLength != nil {
		o = append(o, jsonMember{high, *f.MaxLength})
	}
	return o
}

// formSchema returns the schema of a text that has a form.
func formSchema(f *entity.Field) jsonObject {
	form := textFormOf(f)
	o := jsonObject{{"type", "string"}}
	o.text("format", form.format)
	if form.limit > 0 {
		o = append(o, jsonMember{"maxLength", form.limit})
	}
	o.text("pattern", form.pattern.String())
	if f.Type == entity.FieldEmail {
		o = append(o, jsonMember{"allOf", []any{jsonObject{{"pattern", localPatternText}}}})
	}
	return o
}

func membersSchema(fields []entity.Field, notes bool) jsonObject {
	properties, required := jsonObject{}, []any{}
	for i := range fields {
		properties = append(properties, jsonMember{fields[i].Name, fieldSchema(&fields[i], notes)})
		if fields[i].Required {
			required = append(required, fields[i].Name)
		}
	}
	o := jsonObject{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		o = append(o, jsonMember{"required", required})
	}
	return append(o, jsonMember{"additionalProperties", false})
}

// Limits on the JSON text of a value.
const (
	maxValueDepth     = 64
	maxNumberLength   = 512
	maxNumberExponent = 400
)

// jsonObject is a JSON object with its members in the order of the text. Their names are distinct.
type jsonObject []jsonMember

type jsonMember struct {
	key   string
	value any
}

// readJSON reads one JSON value as nil, bool, string, json.Number, []any or jsonObject. It refuses what two readers might read differently
// (duplicate keys, unpaired surrogates) and what PostgreSQL cannot store (U+0000).
func readJSON(raw []byte) (any, error) {
	switch {
	case !json.Valid(raw):
		return nil, errors.New("this is not JSON")
	case !utf8.Valid(raw):
		return nil, errors.New("the text is not UTF-8")
	}
	if err := checkEscapes(raw); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return readValue(dec, 0)
}

func readValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("this is not JSON: %w", err)
	}
	if depth > maxValueDepth {
		return nil, fmt.Errorf("values are nested more than %d levels deep", maxValueDepth)
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			return readList(dec, depth)
		}
		return readObject(dec, depth)
	case json.Number:
		return v, checkNumber(v.String())
	}
	return token, nil
}

func readList(dec *json.Decoder, depth int) (any, error) {
	items := []any{}
	for dec.More() {
		item, err := readValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := dec.Token()
	return items, err //nolint:wrapcheck // cannot happen: the text is valid JSON
}

func readObject(dec *json.Decoder, depth int) (any, error) {
	object, seen := jsonObject{}, map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err //nolint:wrapcheck // cannot happen: the text is valid JSON
		}
		key := fmt.Sprint(token)
		if seen[key] {
			return nil, fmt.Errorf("the key %q appears twice", key)
		}
		seen[key] = true
		value, err := readValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		object = append(object, jsonMember{key: key, value: value})
	}
	_, err := dec.Token()
	return object, err //nolint:wrapcheck // cannot happen: the text is valid JSON
}

// checkNumber limits the digits and the exponent of a number, because arithmetic with a huge exponent takes forever.
func checkNumber(literal string) error {
	if len(literal) > maxNumberLength {
		return fmt.Errorf("a number has more than %d characters", maxNumberLength)
	}
	if at := strings.IndexAny(literal, "eE"); at >= 0 {
		e, err := strconv.Atoi(literal[at+1:])
		if err != nil || e > maxNumberExponent || e < -maxNumberExponent {
			return fmt.Errorf("a number has an exponent beyond %d", maxNumberExponent)
		}
	}
	return nil
}

// checkEscapes refuses unpaired surrogates and U+0000 among the escapes of a valid JSON text.
func checkEscapes(raw []byte) error {
	for at := 0; at < len(raw); at++ {
		if raw[at] != '\\' {
			continue
		}
		at++
		if raw[at] != 'u' {
			continue
		}
		unit := escapedUnit(raw[at+1:])
		at += 4
		switch {
		case unit == 0:
			return errors.New("a text contains the character U+0000, which cannot be stored")
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return errors.New("a text contains half a surrogate pair")
		case unit >= 0xD800 && unit <= 0xDBFF:
			if low := pairedUnit(raw[at+1:]); low < 0xDC00 || low > 0xDFFF {
				return errors.New("a text contains half a surrogate pair")
			}
			at += 6
		}
	}
	return nil
}

// escapedUnit returns the value of the four hex digits that a text begins with, or -1 if it does not begin with them.
func escapedUnit(text []byte) int64 {
	if len(text) < 4 {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[:4]), 16, 16)
	if err != nil {
		return -1
	}
	return int64(unit)
}

// pairedUnit returns the value of the \u escape that a text begins with, or -1 if there is none.
func pairedUnit(text []byte) int64 {
	if !bytes.HasPrefix(text, []byte(`\u`)) {
		return -1
	}
	return escapedUnit(text[2:])
}

// writeJSON writes a value of readJSON's types, or Go's numbers and lists, and keeps the order of members.
func writeJSON(v any) json.RawMessage {
	var b bytes.Buffer
	writeValue(&b, v)
	return b.Bytes()
}

func writeValue(b *bytes.Buffer, v any) {
	switch x := v.(type) {
	case jsonObject:
		b.WriteByte('{')
		for i, m := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, m.key)
			b.WriteByte(':')
			writeValue(b, m.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, item)
		}
		b.WriteByte(']')
	default:
		if err := jsontext.Write(b, v); err != nil {
			panic("spec: a value of JSON does not marshal: " + err.Error()) // only JSON values come here
		}
	}
}
