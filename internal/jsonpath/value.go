package jsonpath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/jsontext"
)

// object is a JSON object in its original order. If several members have the same name, the last value counts.
type object struct {
	members []member
	places  map[string]int // only for objects with many members
}

type member struct {
	name  string
	value any
}

// indexedFrom is the number of members from which on an object has a map for looking up names.
const indexedFrom = 16

func (o *object) place(key string) (int, bool) {
	if o.places != nil {
		at, ok := o.places[key]
		return at, ok
	}
	for i := range o.members {
		if o.members[i].name == key {
			return i, true
		}
	}
	return 0, false
}

func (o *object) get(key string) (any, bool) {
	at, ok := o.place(key)
	if !ok {
		return nil, false
	}
	return o.members[at].value, true
}

func (o *object) set(key string, v any) {
	if at, twice := o.place(key); twice {
		o.members[at].value = v
		return
	}
	o.members = append(o.members, member{name: key, value: v})
	switch {
	case o.places != nil:
		o.places[key] = len(o.members) - 1
	case len(o.members) >= indexedFrom:
		o.places = make(map[string]int, 2*indexedFrom)
		for i, m := range o.members {
			o.places[m.name] = i
		}
	}
}

// tokens reads JSON token by token. It refuses excessive nesting and checks the context regularly.
type tokens struct {
	ctx         context.Context //nolint:containedctx // tokens lives for one query
	decoder     *json.Decoder
	depth, read int
	// held counts the values of a tree.
	held int
}

func newTokens(ctx context.Context, r io.Reader) *tokens {
	t := &tokens{ctx: ctx, decoder: json.NewDecoder(r)}
	t.decoder.UseNumber()
	return t
}

func (t *tokens) next() (json.Token, error) {
	if t.read++; t.read%1024 == 0 && t.ctx.Err() != nil {
		return nil, t.ctx.Err() //nolint:wrapcheck // callers need the context's error unchanged
	}
	token, err := t.decoder.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch token {
	case json.Delim('['), json.Delim('{'):
		if t.depth++; t.depth > MaxDepth {
			return nil, tooMuch("the JSON is nested more than %d levels deep", MaxDepth)
		}
	case json.Delim(']'), json.Delim('}'):
		t.depth--
	}
	return token, nil
}

// end checks that nothing follows the value.
func (t *tokens) end() error {
	_, err := t.decoder.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("something follows the JSON value")
	}
	return err //nolint:wrapcheck // the caller adds the context
}

// tree reads a whole document as *object, []any, string, json.Number, bool or nil.
func (t *tokens) tree() (any, error) {
	v, err := t.value()
	if err != nil {
		return nil, err
	}
	return v, t.end()
}

func (t *tokens) value() (any, error) {
	token, err := t.next()
	if err != nil {
		return nil, err
	}
	return t.begun(token)
}

// begun reads the rest of a value, given its first token.
func (t *tokens) begun(token json.Token) (any, error) {
	if t.held++; t.held > MaxValues {
		return nil, tooMuch("the JSON holds more than %d values; a path with only names, indices and [*] does not load the whole JSON into memory", MaxValues)
	}
	switch token {
	case json.Delim('{'):
		o := &object{}
		for {
			key, err := t.next()
			if err != nil || key == json.Delim('}') {
				return o, err
			}
			v, err := t.value()
			if err != nil {
				return nil, err
			}
			o.set(fmt.Sprint(key), v)
		}
	case json.Delim('['):
		list := []any{}
		for {
			token, err := t.next()
			if err != nil || token == json.Delim(']') {
				return list, err
			}
			v, err := t.begun(token)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
	}
	return token, nil
}

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
