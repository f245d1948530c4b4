package expr

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
)

// Check is Compile without a program, and also finds, from what the shapes say of the values: members that an object does
// not have, operators and functions that cannot be applied, and a result that cannot be of the wanted type. The error is that
// of the first place. An object whose schema lists its properties is taken to have no others, unless the schema says so or
// the expression itself asks whether they are there (has, in, .?). Where a schema leaves a doubt nothing is reported.
func (e *Env) Check(source string, want Type, shapes Shapes) error {
	_, err := e.checked(source, want, shapes)
	return err
}

// CheckTemplate is Check for a template.
func (e *Env) CheckTemplate(source string, shapes Shapes) error {
	_, err := e.checkedTemplate(source, shapes)
	return err
}

// CheckDocument is Check for every string of a JSON document, as Document reads it.
func (e *Env) CheckDocument(raw json.RawMessage, shapes Shapes) []Problem {
	_, problems := e.compileDocument(raw, func(source string, pieces []piece) (*Template, error) {
		_, err := e.checkedPieces(source, pieces, shapes)
		return &Template{env: e, source: source}, err
	})
	return problems
}

// Describe is the shape of what an expression gives: a JSON Schema that says what is known of it, no more than a few hundred
// places deep and wide; {} when nothing is known. It describes what a name stands for in further checks, such as the items
// of a loop (the `items` of a list's schema) or a variable. Its errors are those of Check.
func (e *Env) Describe(source string, shapes Shapes) (json.RawMessage, error) {
	found, err := e.checked(source, Any, shapes)
	if err != nil {
		return nil, err
	}
	return found.schemaJSON(), nil
}

// DescribeTemplate is Describe for a template: a text unless it is one expression and nothing else.
func (e *Env) DescribeTemplate(source string, shapes Shapes) (json.RawMessage, error) {
	found, err := e.checkedTemplate(source, shapes)
	if err != nil {
		return nil, err
	}
	return found.schemaJSON(), nil
}

func (e *Env) checkedTemplate(source string, shapes Shapes) (shape, error) {
	pieces, err := e.split(source)
	if err != nil {
		return shape{}, err
	}
	return e.checkedPieces(source, pieces, shapes)
}

func (e *Env) checkedPieces(source string, pieces []piece, shapes Shapes) (shape, error) {
	for _, p := range pieces {
		if !p.expression {
			continue
		}
		found, err := e.checked(p.text, Any, shapes)
		if err != nil {
			return shape{}, within(err, source, p.offset)
		}
		if len(pieces) == 1 {
			return found, nil
		}
	}
	return of(kindString), nil
}

func (e *Env) checked(source string, want Type, shapes Shapes) (shape, error) {
	ast, err := e.compile(source, want)
	if err != nil {
		return shape{}, err
	}
	found, issues := e.infer(source, ast.NativeRep(), shapes)
	if len(issues) > 0 {
		first := slices.MinFunc(issues, func(a, b *IssueError) int { return cmp.Compare(a.Offset, b.Offset) })
		return shape{}, first.jig()
	}
	if want != Any && found.kinds&kindsOf(want.cel()) == 0 {
		return shape{}, wrongResult(source, found.kinds.String(), want).jig()
	}
	return found, nil
}

// schemaMemo keeps schemas that were read, because many expressions of a document read the same ones.
type schemaMemo struct {
	mu    sync.Mutex
	read  map[string]any
	bytes int
}

// maxSchemaMemo bounds what is kept, in bytes of source.
const maxSchemaMemo = 4 << 20

func (m *schemaMemo) shape(raw json.RawMessage) shape {
	m.mu.Lock()
	schema, known := m.read[string(raw)]
	m.mu.Unlock()
	if !known {
		var err error
		if schema, err = decode(raw); err != nil {
			schema = nil
		}
		m.keep(string(raw), schema)
	}
	return shapeOf(schema, nil)
}

func (m *schemaMemo) keep(raw string, schema any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes += len(raw); m.read == nil || m.bytes > maxSchemaMemo {
		m.read, m.bytes = map[string]any{}, len(raw)
	}
	m.read[raw] = schema
}

// maxDescribed bounds the places of a described shape; references may unfold without end.
const maxDescribed = 500

func (s shape) schemaJSON() json.RawMessage {
	left := maxDescribed
	raw, err := marshal(s.describe(&left))
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// describe writes a shape as a schema without references; beyond what is left it says nothing.
func (s shape) describe(left *int) map[string]any {
	out := map[string]any{}
	if *left--; *left < 0 {
		return out
	}
	if names := s.kinds.schemaTypes(); len(names) > 0 {
		out["type"] = names
	}
	if s.kinds&kindList != 0 {
		if items := s.item(); items.kinds != anyKind || items.schema != nil {
			out["items"] = items.describe(left)
		}
	}
	members := s.members()
	if s.kinds&kindMap == 0 || len(members) == 0 || len(members) > *left {
		return out
	}
	properties := make(map[string]any, len(members))
	for _, name := range members {
		member, _ := s.member(name)
		properties[name] = member.describe(left)
	}
	out["properties"] = properties
	_, may := s.member("\x00") // no schema names it
	out["additionalProperties"] = may
	return out
}

// schemaTypes are the names that JSON Schema has for a set of kinds; none when one of them has no JSON of its own.
func (k kinds) schemaTypes() []string {
	if k&kindDouble != 0 {
		k &^= kindInt // a number may be whole
	}
	names := map[kinds]string{
		kindNull: "null", kindBool: "boolean", kindInt: "integer", kindDouble: "number", kindString: "string", kindList: "array", kindMap: "object",
	}
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(names)) {
		if k&kind != 0 {
			out = append(out, names[kind])
			k &^= kind
		}
	}
	if k != 0 {
		return nil
	}
	return out
}
