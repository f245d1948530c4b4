// Package stored converts texts and JSON values to a form that rows and events can hold: valid UTF-8 without NUL, and previews of a bounded
// size in place of values that are too large. It must not know what is stored or where.
package stored

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
)

// replacement stands for bytes that are not UTF-8, and for NUL.
const replacement = "\uFFFD"

// Encode encodes a value as JSON that any JSON column accepts. An error is INVALID_INPUT.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "a value cannot be written as JSON: %w", err)
	}
	return Valid(b), nil
}

// Valid returns b with every sequence of bytes that is not UTF-8 replaced.
func Valid(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte(replacement))
}

// escapes finds the escapes in JSON: a surrogate pair, half of one, NUL, or another one.
var escapes = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\u0000|\\.`)

// Readable returns JSON in a form of which SQL can read members: PostgreSQL converts neither NUL nor half of a surrogate pair to text, so they are
// replaced.
func Readable(b []byte) []byte {
	const half = len(`\u0000`)
	return escapes.ReplaceAllFunc(b, func(escape []byte) []byte {
		if len(escape) == half {
			return []byte(`\ufffd`)
		}
		return escape
	})
}

// Clean returns s in a form that a text column accepts: valid UTF-8 without NUL.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}

// Cut shortens a text to at most n bytes without splitting a character.
func Cut(s string, n int) string { return clip.Bytes(s, n) }

// Preview returns a JSON value for display, in at most [jig.ExcerptBytes]: the value itself when it is short, else a string with its
// beginning.
func Preview(raw []byte) (shown json.RawMessage, truncated bool) {
	if len(raw) <= jig.ExcerptBytes && json.Valid(raw) {
		return Valid(raw), false
	}
	begin := Cut(strings.ToValidUTF8(string(raw), replacement), jig.ExcerptBytes-256)
	for { // escaping makes quotes and control characters longer
		b, err := Encode(begin)
		if err != nil {
			return json.RawMessage(`""`), true
		}
		if len(b) <= jig.ExcerptBytes {
			return b, len(begin) < len(raw)
		}
		begin = Cut(begin, len(begin)*3/4)
	}
}

// PreviewInput returns a call's input as it is shown to people.
func PreviewInput(raw []byte) (shown json.RawMessage, truncated bool) {
	if !json.Valid(raw) {
		return Preview(raw)
	}
	return jig.Excerpt(Valid(raw), jig.ExcerptBytes)
}

// eventBytes bounds the excerpt of an input or result in an event, in bytes.
const eventBytes = 512

// InputDetails returns the part of a call's input that the event of an attempt shows: an excerpt of at most 512 bytes.
func InputDetails(input []byte) map[string]any {
	shown, truncated := excerpt(input)
	return map[string]any{"input": shown, "truncated": truncated}
}

// ResultDetails returns the part of a result that the event of a finished call shows. Data of at most 512 bytes is included whole as "data",
// longer data as an excerpt of that size, "data_preview".
func ResultDetails(r jig.ToolResult) map[string]any {
	d := map[string]any{"summary": Cut(r.Summary, jig.ExcerptBytes)}
	if len(r.Data) > 0 {
		shown, truncated := excerpt(r.Data)
		if truncated {
			d["data_preview"] = shown
		} else {
			d["data"] = shown
		}
	}
	if len(r.Artifacts) > 0 {
		d["artifacts"] = r.Artifacts
	}
	if len(r.Warnings) > 0 {
		d["warnings"] = r.Warnings
	}
	if r.Error != nil {
		d["error"] = r.Error
	}
	return d
}

// excerpt returns a JSON value as an event shows it. A value that is not valid JSON is shown as a string.
func excerpt(raw []byte) (shown json.RawMessage, truncated bool) {
	if !json.Valid(raw) {
		raw, _ = Preview(raw)
	}
	return jig.Excerpt(Valid(raw), eventBytes)
}
