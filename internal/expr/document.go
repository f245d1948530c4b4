package expr

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
)

// Document is a JSON document whose strings are templates.
type Document struct {
	env  *Env
	root node
}

// node is a part of a document: fixed JSON, a slot, a list or an object.
type node any

// slot is a string that contains expressions.
type slot struct {
	template *Template
	at       *place
}

// objectNode is an object with sorted keys, which are stored as JSON.
type objectNode struct {
	keys   []json.RawMessage
	values []node
}

// Problem is an error in one string of a document.
type Problem struct {
	// Path is the path of the string from the document's root, e.g. "files[2].name". It is empty for the root itself.
	Path string
	Err  *jig.Error
}

// maxDocumentDepth limits the nesting of a document of templates.
const maxDocumentDepth = 100

// Document compiles every string of a JSON document and reports those that do not compile, up to 100. It does not change keys or the notation
// of numbers.
func (e *Env) Document(raw json.RawMessage) (*Document, []Problem) {
	if limit := 4 * e.use.Limits.Result; len(raw) > limit {
		return nil, []Problem{{Err: jig.Errorf(jig.CodeInvalidInput, "the document has %d bytes, at most %d are allowed", len(raw), limit)}}
	}
	v, err := decodeAsWritten(raw)
	if err != nil {
		return nil, []Problem{{Err: jig.AsError(err)}}
	}
	if err := (&counter{env: e}).count(v, 0); err != nil {
		return nil, []Problem{{Err: jig.AsError(err)}}
	}
	c := &documentCompiler{env: e}
	root := asWritten([]node{c.value(v, nil)})
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return &Document{env: e, root: root[0]}, nil
}

// counter counts the expressions of a document, so that a document with too many is refused before the first is compiled.
type counter struct {
	env                          *Env
	expressions, sources, broken int
}

func (c *counter) count(v any, depth int) error {
	if depth > maxDocumentDepth {
		return jig.Errorf(jig.CodeInvalidInput, "nested more than %d levels deep", maxDocumentDepth)
	}
	switch x := v.(type) {
	case string:
		pieces, err := c.env.split(x)
		if err != nil { // compiling splits it once more and reports the error
			if c.broken++; c.broken > maxProblems {
				return err
			}
			return nil
		}
		for _, p := range pieces {
			if p.expression {
				c.expressions++
				c.sources += len(p.text)
			}
		}
		return c.env.tooMany("document", c.expressions, c.sources)
	case []any:
		for _, item := range x {
			if err := c.count(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range keysOf(x) {
			if err := c.count(x[key], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxProblems limits how many problems of a document are reported.
const maxProblems = 100

type documentCompiler struct {
	env      *Env
	problems []Problem
	over     bool
}

func (c *documentCompiler) report(at *place, err error) node {
	c.problems = append(c.problems, Problem{Path: at.String(), Err: jig.AsError(err)})
	c.over = c.over || len(c.problems) >= maxProblems
	return nil
}

func (c *documentCompiler) text(source string, at *place) node {
	pieces, err := c.env.split(source)
	if err != nil {
		return c.report(at, err)
	}
	t, err := c.env.template(source, pieces)
	switch {
	case err != nil:
		return c.report(at, err)
	case t.Constant():
		return fixed{t.constant()}
	}
	return &slot{template: t, at: at}
}

func (c *documentCompiler) value(v any, at *place) node {
	if c.over {
		return nil
	}
	switch x := v.(type) {
	case string:
		return c.text(x, at)
	case []any:
		parts := make([]node, len(x))
		for i, item := range x {
			parts[i] = c.value(item, at.item(i))
		}
		if values, all := fixedValues(parts); all {
			return fixed{values}
		}
		return asWritten(parts)
	case map[string]any:
		keys, parts := keysOf(x), make([]node, 0, len(x))
		for _, key := range keys {
			parts = append(parts, c.value(x[key], at.member(key)))
		}
		if values, all := fixedValues(parts); all {
			object := make(map[string]any, len(keys))
			for i, key := range keys {
				object[key] = values[i]
			}
			return fixed{object}
		}
		o := &objectNode{values: asWritten(parts)}
		for _, key := range keys {
			o.keys = append(o.keys, fixed{key}.json())
		}
		return o
	}
	return fixed{v}
}

// fixed is a part without expressions that is not yet encoded as JSON.
type fixed struct{ value any }

func (f fixed) json() json.RawMessage {
	raw, err := jsontext.Encode(f.value)
	if err != nil {
		return json.RawMessage("null") // unreachable: the value was read from JSON
	}
	return raw
}

func fixedValues(parts []node) ([]any, bool) {
	values := make([]any, len(parts))
	for i, part := range parts {
		f, ok := part.(fixed)
		if !ok {
			return nil, false
		}
		values[i] = f.value
	}
	return values, true
}

// asWritten encodes the fixed parts of a list or object as JSON if it also has other parts.
func asWritten(parts []node) []node {
	for i, part := range parts {
		if f, ok := part.(fixed); ok {
			parts[i] = f.json()
		}
	}
	return parts
}

func keysOf(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// place is the position of a value in a document; nil is the root. It is converted to text only for an error message.
type place struct {
	parent *place
	key    string
	index  int
}

func (p *place) member(key string) *place {
	return &place{parent: p, key: key, index: -1}
}

func (p *place) item(i int) *place { return &place{parent: p, index: i} }

// longestKey is the maximum number of bytes of a key that a path shows.
const longestKey = 200

func (p *place) String() string {
	if p == nil {
		return ""
	}
	before := p.parent.String()
	if p.index >= 0 {
		return before + "[" + strconv.Itoa(p.index) + "]"
	}
	key := p.key
	if len(key) > longestKey {
		key = strings.ToValidUTF8(key[:longestKey], "") + "…"
	}
	if before == "" {
		return key
	}
	return before + "." + key
}

// JoinPath appends inner, a path that begins with a key or an index, to path. Either may be empty.
func JoinPath(path, inner string) string {
	if path == "" || inner == "" || inner[0] == '[' {
		return path + inner
	}
	return path + "." + inner
}

// Render evaluates the document's templates, which share the limits of one evaluation, and returns the document as JSON. The Field of an
// error is the path of the string.
func (d *Document) Render(ctx context.Context, vars map[string]any) (json.RawMessage, error) {
	r := &renderer{evaluation: d.env.evaluation(vars), limit: d.env.use.Limits.Result}
	r.encoder = json.NewEncoder(&r.text)
	r.encoder.SetEscapeHTML(false)
	if err := r.write(ctx, d.root); err != nil {
		return nil, err
	}
	return r.text.Bytes(), nil
}

// renderer writes a document as JSON.
type renderer struct {
	*evaluation
	text    bytes.Buffer
	encoder *json.Encoder
	limit   int
}

func (r *renderer) write(ctx context.Context, n node) error {
	switch x := n.(type) {
	case json.RawMessage:
		r.text.Write(x)
	case *slot:
		v, err := x.template.evalIn(ctx, r.evaluation)
		if err != nil {
			return jig.AsError(err).WithField(x.at.String())
		}
		if err := r.encoder.Encode(v); err != nil {
			return fmt.Errorf("write the result as JSON: %w", err)
		}
		r.text.Truncate(r.text.Len() - 1) // the encoder's newline
	case []node:
		return r.writeAll(ctx, '[', nil, x, ']')
	case *objectNode:
		return r.writeAll(ctx, '{', x.keys, x.values, '}')
	}
	if r.text.Len() > r.limit {
		return jig.Errorf(jig.CodeInvalidInput, "the rendered document is larger than %d KiB", r.limit>>10)
	}
	return nil
}

func (r *renderer) writeAll(ctx context.Context, open byte, keys []json.RawMessage, values []node, closed byte) error {
	r.text.WriteByte(open)
	for i, value := range values {
		if i > 0 {
			r.text.WriteByte(',')
		}
		if keys != nil {
			r.text.Write(keys[i])
			r.text.WriteByte(':')
		}
		if err := r.write(ctx, value); err != nil {
			return err
		}
	}
	r.text.WriteByte(closed)
	return nil
}
