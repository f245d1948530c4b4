package jsonpath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
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

// tokens reads JSON token by token. It refuses excessive nesting and checks the context regularly. It keeps the first error; from then on,
// there are no more tokens.
type tokens struct {
	ctx         context.Context //nolint:containedctx // tokens lives for one query
	decoder     *json.Decoder
	depth, read int
	// held counts the values of a tree.
	held int
	err  error
}

func newTokens(ctx context.Context, r io.Reader) *tokens {
	t := &tokens{ctx: ctx, decoder: json.NewDecoder(r)}
	t.decoder.UseNumber()
	return t
}

// next returns the next token; nil for null, and after an error.
func (t *tokens) next() json.Token {
	if t.read++; t.read%1024 == 0 && t.err == nil {
		t.err = t.ctx.Err()
	}
	if t.err != nil {
		return nil
	}
	token, err := t.decoder.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	t.err = err
	switch token {
	case json.Delim('['), json.Delim('{'):
		if t.depth++; t.depth > MaxDepth {
			t.err = tooMuch("the JSON is nested more than %d levels deep", MaxDepth)
		}
	case json.Delim(']'), json.Delim('}'):
		t.depth--
	}
	return token
}

// until returns the tokens that begin the items of a list or the names of an object, up to its end.
func (t *tokens) until(end json.Delim) iter.Seq[json.Token] {
	return func(yield func(json.Token) bool) {
		for token := t.next(); t.err == nil && token != end && yield(token); {
			token = t.next()
		}
	}
}

// end checks that nothing follows the value, and returns the first error.
func (t *tokens) end() error {
	if t.err != nil {
		return t.err
	}
	_, err := t.decoder.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("something follows the JSON value")
	}
	return err //nolint:wrapcheck // the caller adds the context
}

// value reads the rest of a value, given its first token: *object, []any, string, json.Number, bool or nil.
func (t *tokens) value(token json.Token) any {
	if t.held++; t.held > MaxValues && t.err == nil {
		t.err = tooMuch("the JSON holds more than %d values; a path with only names, indices and [*] does not load the whole JSON into memory", MaxValues)
	}
	switch token {
	case json.Delim('{'):
		o := &object{}
		for key := range t.until('}') {
			o.set(fmt.Sprint(key), t.value(t.next()))
		}
		return o
	case json.Delim('['):
		list := []any{}
		for first := range t.until(']') {
			list = append(list, t.value(first))
		}
		return list
	}
	return token
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
		t.raw(strconv.FormatBool(x))
	case json.Number:
		t.raw(x.String())
	case string:
		t.quoted(x)
	}
}

// write appends a value of a tree to a text, until the text is full.
func (w *walk) write(t *text, v any) {
	if !w.spend(1) || t.full() {
		return
	}
	separator := ""
	switch x := v.(type) {
	case []any:
		t.raw("[")
		for _, item := range x {
			t.raw(separator)
			if w.write(t, item); t.full() || w.err != nil {
				return
			}
			separator = ","
		}
		t.raw("]")
	case *object:
		t.raw("{")
		for _, m := range x.members {
			t.raw(separator)
			t.quoted(m.name)
			t.raw(":")
			if w.write(t, m.value); t.full() || w.err != nil {
				return
			}
			separator = ","
		}
		t.raw("}")
	default:
		t.scalar(v)
	}
}
