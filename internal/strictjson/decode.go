// Package strictjson reads the JSON that people and programs send. It refuses texts that two readers might understand differently: a name that
// occurs twice in an object, invalid UTF-8, half a surrogate pair, and a member whose name differs from a known one only in its case.
//
// [Unmarshal] and [UnmarshalKnown] decode into Go types and are what most callers need. [Decode] returns the decoded text, within [Limits] of
// depth, values and the digits of numbers. encoding/json takes the last of two members with the same name and ignores case, so a policy could
// otherwise judge another value than the one that is used.
//
// The package must not know what the JSON means.
package strictjson

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
)

// Limits on numbers. Exact arithmetic would need unbounded memory for longer literals.
const (
	maxNumberLength   = 512
	maxNumberExponent = 400
)

// MaxValues is the maximum number of values in a JSON text that jig reads.
const MaxValues = 1_000_000

// SyntaxError describes a text that is not acceptable JSON, with the JSON pointer of the value at fault.
type SyntaxError struct {
	Pointer string
	Offset  int
	Message string
	// Words is the message with its values set apart.
	Words string
	// Hint says how to fix it; it may be empty.
	Hint string
}

func (e *SyntaxError) Error() string { return e.Message + " at byte " + strconv.Itoa(e.Offset) }

// Template returns the error's text with its values set apart.
func (e *SyntaxError) Template() string {
	return jig.Templatef("%s at byte %d", jig.Words(e.Words), jig.Known(e.Offset))
}

// Limits bound what [Decode] accepts.
type Limits struct {
	// Depth and Values are the maximum depth and number of values.
	Depth, Values int
	// Exact refuses numbers that fail [ExactNumber].
	Exact bool
	// Skip names a member of the outermost object whose value may be any JSON. It becomes nil.
	Skip string
}

// decoder reads one JSON value in a single pass. Unlike encoding/json, it refuses duplicate keys, invalid UTF-8, lone surrogates and
// excessive nesting, all of which could make two readers see different values in the same text.
type decoder struct {
	text     string
	pos      int
	depth    int
	maxDepth int
	values   int // how many more are allowed
	exact    bool
	skip     string
	path     []string
}

// Decode returns the value of a JSON text: map[string]any, []any, string, json.Number, bool or nil. The error is a [*SyntaxError].
func Decode(text []byte, l Limits) (any, error) {
	d := decoder{text: string(text), maxDepth: l.Depth, values: l.Values, exact: l.Exact, skip: l.Skip}
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	if d.space(); d.pos < len(d.text) {
		return nil, d.fail("there is text after the JSON value")
	}
	return v, nil
}

func (d *decoder) fail(format string, args ...any) error {
	words := jig.Templatef(format, args...)
	return &SyntaxError{Pointer: Pointer(d.path...), Offset: d.pos, Message: jig.Text(words), Words: words}
}

func (d *decoder) failWith(hint, format string, args ...any) error {
	err := d.fail(format, args...)
	if s, ok := err.(*SyntaxError); ok { //nolint:errorlint // made in this file, never wrapped
		s.Hint = hint
	}
	return err
}

func (d *decoder) space() {
	for d.pos < len(d.text) {
		switch d.text[d.pos] {
		case ' ', '\t', '\r', '\n':
			d.pos++
		default:
			return
		}
	}
}

// next skips white space and returns the next byte without consuming it, 0 at the end.
func (d *decoder) next() byte {
	d.space()
	if d.pos >= len(d.text) {
		return 0
	}
	return d.text[d.pos]
}

func (d *decoder) value() (any, error) {
	if d.values--; d.values < 0 {
		return nil, d.fail("too many values")
	}
	switch c := d.next(); {
	case c == '{':
		return d.object()
	case c == '[':
		return d.array()
	case c == '"':
		return d.str()
	case c == '-' || (c >= '0' && c <= '9'):
		return d.number()
	case c == 't':
		return true, d.word("true")
	case c == 'f':
		return false, d.word("false")
	case c == 'n':
		return nil, d.word("null")
	case c == 0 && d.pos >= len(d.text):
		return nil, d.fail("the JSON text ends too early")
	default:
		return nil, d.fail("a JSON value cannot begin with %q", c)
	}
}

func (d *decoder) word(word string) error {
	if len(d.text)-d.pos < len(word) || d.text[d.pos:d.pos+len(word)] != word {
		return d.fail("want %s", jig.Known(word))
	}
	d.pos += len(word)
	return nil
}

func (d *decoder) enter() error {
	if d.depth++; d.depth > d.maxDepth {
		return d.fail("nested more than %d levels deep", d.maxDepth)
	}
	d.pos++
	return nil
}

func (d *decoder) object() (any, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	members := map[string]any{}
	for first := true; ; first = false {
		c := d.next()
		if c == '}' && first {
			break
		}
		if c != '"' {
			return nil, d.fail("want a property name in quotes")
		}
		key, err := d.str()
		if err != nil {
			return nil, err
		}
		d.path = append(d.path, key)
		if _, twice := members[key]; twice {
			return nil, d.failWith("give it once", "the property %q appears twice", jig.Known(clip(key)))
		}
		if d.next() != ':' {
			return nil, d.fail("want a colon after the property name")
		}
		d.pos++
		if members[key], err = d.member(key); err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		if c = d.next(); c == '}' {
			break
		}
		if c != ',' {
			return nil, d.fail("want a comma or a closing brace")
		}
		d.pos++
	}
	d.pos++
	d.depth--
	return members, nil
}

// member reads the value of a member of an object.
func (d *decoder) member(name string) (any, error) {
	if d.depth > 1 || name != d.skip || name == "" {
		return d.value()
	}
	var skipped json.RawMessage
	rest := json.NewDecoder(strings.NewReader(d.text[d.pos:]))
	if err := rest.Decode(&skipped); err != nil {
		return nil, d.fail("%s", err)
	}
	d.pos += int(rest.InputOffset())
	return nil, nil
}

func (d *decoder) array() (any, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	items := []any{}
	for first := true; ; first = false {
		if d.next() == ']' && first {
			break
		}
		// The index is written into the path only if there is an error below it.
		at := len(d.path)
		d.path = append(d.path, "")
		v, err := d.value()
		if err != nil {
			return nil, d.indexed(err, at, len(items))
		}
		d.path = d.path[:at]
		items = append(items, v)
		c := d.next()
		if c == ']' {
			break
		}
		if c != ',' {
			return nil, d.fail("want a comma or a closing bracket")
		}
		d.pos++
	}
	d.pos++
	d.depth--
	return items, nil
}

// indexed inserts the index of an array item into the pointer of an error that was found below the item.
func (d *decoder) indexed(err error, at, index int) error {
	if s, ok := err.(*SyntaxError); ok { //nolint:errorlint // made in this file, never wrapped
		d.path[at] = strconv.Itoa(index)
		s.Pointer = Pointer(d.path...)
	}
	return err
}

func (d *decoder) str() (string, error) {
	start := d.pos + 1
	ascii := true
	for i := start; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '"':
			s := d.text[start:i]
			if !ascii && !utf8.ValidString(s) {
				return "", d.failWith("encode the text as UTF-8", "a string is not valid UTF-8")
			}
			d.pos = i + 1
			return s, nil
		case c == '\\':
			return d.escaped(start)
		case c < ' ':
			d.pos = i
			return "", d.fail("a string contains a control character; escape it")
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", d.fail("a string is not closed")
}

// escaped reads a string that contains escapes; start is the position after its opening quote.
func (d *decoder) escaped(start int) (string, error) {
	for i := start; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '\\':
			if i+5 < len(d.text) && d.text[i+1] == 'u' {
				width, ok := surrogate(d.text[i:])
				if !ok {
					return "", d.failWith(`write the character itself, or both halves of its pair`, "a string contains half a surrogate pair")
				}
				i += width - 1
				continue
			}
			i++
		case c < ' ':
			d.pos = i
			return "", d.fail("a string contains a control character; escape it")
		case c == '"':
			literal := d.text[start-1 : i+1]
			if !utf8.ValidString(literal) {
				return "", d.failWith("encode the text as UTF-8", "a string is not valid UTF-8")
			}
			var s string
			if err := json.Unmarshal([]byte(literal), &s); err != nil {
				return "", d.fail("a string has an escape that JSON does not know")
			}
			d.pos = i + 1
			return s, nil
		}
	}
	return "", d.fail("a string is not closed")
}

// surrogate returns the width of the \u escape at the start of s, counting a surrogate pair as one; false for half a pair.
func surrogate(s string) (int, bool) {
	high, err := strconv.ParseUint(s[2:6], 16, 32)
	switch {
	case err != nil: // refused later as an unknown escape
		return 2, true
	case high >= 0xDC00 && high <= 0xDFFF:
		return 0, false
	case high < 0xD800 || high > 0xDBFF:
		return 6, true
	case len(s) < 12 || s[6] != '\\' || s[7] != 'u':
		return 0, false
	}
	low, err := strconv.ParseUint(s[8:12], 16, 32)
	return 12, err == nil && low >= 0xDC00 && low <= 0xDFFF
}

// clip shortens a text for a message.
func clip(s string) string { return jig.Cut(s, 64) }
