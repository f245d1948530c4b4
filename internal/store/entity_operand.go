package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/stored"
)

// maxOperand is the maximum length of a text in a filter, in bytes. maxNumber is the maximum length of a number, in characters.
const (
	maxOperand = 32 << 10
	maxNumber  = 1000
)

// operand decodes a value that the column is compared with. why is empty when the value fits.
func (c filterColumn) operand(raw json.RawMessage) (v any, why string) {
	switch c.kind {
	case kindText:
		s, why := textOperand(raw)
		if why == "" && c.field != nil && c.field.Type == entity.FieldEnum && len(c.field.Options) > 0 && !slices.Contains(c.field.Options, s) {
			why = fmt.Sprintf("%q is not one of the options %s", stored.Cut(s, 100), oneOf(c.field.Options[:min(len(c.field.Options), 20)]))
		}
		return s, why
	case kindNumber:
		var n json.Number
		if err := json.Unmarshal(raw, &n); err != nil || jsonKind(raw) == "a text" {
			return nil, "want a number, not " + jsonKind(raw)
		}
		if !plainNumber(n.String()) {
			return nil, "the number is out of range"
		}
		return n.String(), ""
	case kindBoolean:
		var b bool
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, "want true or false, not " + jsonKind(raw)
		}
		return b, ""
	case kindMoment:
		s, why := textOperand(raw)
		at, ok := momentOf(s)
		if why != "" || !ok {
			given := jsonKind(raw)
			if why == "" {
				given = fmt.Sprintf("%q", stored.Cut(s, 100))
			}
			return nil, "want a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z (RFC 3339), not " + given
		}
		return at, ""
	case kindList, kindObject:
	}
	return nil, "want null"
}

func textOperand(raw json.RawMessage) (s, why string) {
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", "want a text, not " + jsonKind(raw)
	}
	switch {
	case len(s) > maxOperand:
		return "", fmt.Sprintf("the text has more than %d bytes", maxOperand)
	case strings.Contains(s, "\x00"):
		return "", "the text has a NUL character"
	case !utf8.ValidString(s):
		return "", "the text is not UTF-8"
	}
	return s, ""
}

// part decodes a value that a list or object must contain, and returns it as the JSON to look for.
func (c filterColumn) part(raw json.RawMessage) (string, string) {
	item := c
	if c.kind == kindList {
		item = filterColumn{name: c.name, field: &entity.Field{Type: entity.FieldRelation}, kind: kindText}
		if c.field.Type == entity.FieldArray {
			if c.field.Items == nil {
				return "", "the list's items have no type"
			}
			item.field, item.kind = c.field.Items, kindOf(c.field.Items)
		}
	}
	switch item.kind {
	case kindList:
		return "", "lists of lists cannot be searched"
	case kindObject:
		if jsonKind(raw) != "an object" {
			return "", "want an object, not " + jsonKind(raw)
		}
	case kindText, kindNumber, kindBoolean, kindMoment:
		if _, why := item.operand(raw); why != "" {
			return "", why
		}
	}
	if len(raw) > maxOperand {
		return "", fmt.Sprintf("the value has more than %d bytes", maxOperand)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || hasNUL(v) || extreme(map[string]any{"value": v}) != "" {
		return "", "the value has a NUL character or a number out of range"
	}
	if c.kind == kindList {
		v = []any{v}
	}
	b, err := encode(v)
	if err != nil {
		return "", "the value cannot be written as JSON"
	}
	return string(b), ""
}

var (
	numberForm = regexp.MustCompile(`^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$`)
	momentForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]))?$`)
)

// plainNumber reports whether a JSON number is accepted by PostgreSQL and cannot make a result grow without bounds.
func plainNumber(s string) bool {
	return len(s) <= maxNumber && numberForm.MatchString(s) && smallExponent(s)
}

func smallExponent(s string) bool {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return true
	}
	n, err := strconv.Atoi(s[i+1:])
	return err == nil && n >= -400 && n <= 400
}

// momentOf parses a date (midnight UTC) or a time, in the same way as the SQL function jig_moment.
func momentOf(s string) (time.Time, bool) {
	if !momentForm.MatchString(s) || strings.HasPrefix(s, "0000") {
		return time.Time{}, false
	}
	layout := time.RFC3339Nano
	if len(s) == len(time.DateOnly) {
		layout = time.DateOnly
	}
	t, err := time.Parse(layout, s)
	return t.UTC().Truncate(time.Microsecond), err == nil
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// jsonKind names the kind of a JSON value, for messages.
func jsonKind(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func oneOf[T ~string](words []T) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return strings.Join(list, ", ")
}
