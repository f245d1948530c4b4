package jsonpath

import (
	"encoding/json"
	"strings"

	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/jsontext"
)

// text collects compact JSON up to a number of bytes.
type text struct {
	b     strings.Builder
	limit int
}

func newText(limit int) *text { return &text{limit: limit} }

// String returns the text, cut to the limit at a character boundary.
func (t *text) String() string {
	return clip.Bytes(t.b.String(), t.limit)
}

// full reports whether the limit is exceeded, so that more text would not show.
func (t *text) full() bool { return t.b.Len() > t.limit }

func (t *text) raw(s string) {
	if !t.full() {
		t.b.WriteString(s[:min(len(s), t.limit+1)])
	}
}

// quoted writes a JSON string. It cuts a string that is longer than the limit, because the rest would not show.
func (t *text) quoted(s string) {
	if t.full() {
		return
	}
	if len(s) > t.limit {
		s = strings.ToValidUTF8(s[:t.limit+1], "")
	}
	raw, _ := jsontext.Encode(s) //nolint:errcheck // a string always encodes
	t.b.Write(raw)
}

func (t *text) scalar(v any) {
	switch x := v.(type) {
	case nil:
		t.raw("null")
	case bool:
		if x {
			t.raw("true")
		} else {
			t.raw("false")
		}
	case json.Number:
		t.raw(x.String())
	case string:
		t.quoted(x)
	}
}

// write appends a value of a tree to a text, until the text is full.
func (w *walk) write(t *text, v any) error {
	if err := w.spend(1); err != nil || t.full() {
		return err
	}
	switch x := v.(type) {
	case []any:
		t.raw("[")
		for i, item := range x {
			if i > 0 {
				t.raw(",")
			}
			if err := w.write(t, item); err != nil || t.full() {
				return err
			}
		}
		t.raw("]")
	case *object:
		t.raw("{")
		for i, m := range x.members {
			if i > 0 {
				t.raw(",")
			}
			t.quoted(m.name)
			t.raw(":")
			if err := w.write(t, m.value); err != nil || t.full() {
				return err
			}
		}
		t.raw("}")
	default:
		t.scalar(v)
	}
	return nil
}
