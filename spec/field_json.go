package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig/internal/jsontext"
)

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
