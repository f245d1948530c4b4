package expr

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/jig-run/jig/internal/jsontext"
)

// Check is [Env.CompileAs] followed by [Program.Check]. Callers that also need the program should call these two.
func (e *Env) Check(source string, want Type, shapes Shapes) error {
	p, err := e.program(source, want)
	if err != nil {
		return err
	}
	return p.Check(shapes)
}

// CheckTemplate is [Env.Template] followed by [Template.Check].
func (e *Env) CheckTemplate(source string, shapes Shapes) error {
	t, err := e.Template(source)
	if err != nil {
		return err
	}
	return t.Check(shapes)
}

// Describe is [Env.Compile] followed by [Program.Describe].
func (e *Env) Describe(source string, shapes Shapes) (json.RawMessage, error) {
	p, err := e.program(source, Any)
	if err != nil {
		return nil, err
	}
	return p.Describe(shapes)
}

// DescribeTemplate is [Env.Template] followed by [Template.Describe].
func (e *Env) DescribeTemplate(source string, shapes Shapes) (json.RawMessage, error) {
	t, err := e.Template(source)
	if err != nil {
		return nil, err
	}
	return t.Describe(shapes)
}

// Check uses the shapes of values to find mistakes that compiling does not find: members that an object does not have, operators and functions
// that cannot be applied, and a result that cannot have the wanted type. The error is about the first mistake. If an object's schema lists its
// properties, the object is assumed to have no others, unless the schema allows more or the expression itself tests whether they are present
// (has, in, .?). Check reports only mistakes that are certain.
func (p *Program) Check(shapes Shapes) error {
	_, err := p.infer(shapes)
	return err
}

// Describe returns the shape of the expression's result: a JSON Schema with a few hundred places at most, or {} if nothing is known. Callers
// use it as the shape of a name in further checks, such as the item of a loop (the `items` of the list's schema) or a variable. It returns
// the same errors as [Program.Check].
func (p *Program) Describe(shapes Shapes) (json.RawMessage, error) {
	found, err := p.infer(shapes)
	if err != nil {
		return nil, err
	}
	return found.schemaJSON(), nil
}

func (p *Program) infer(shapes Shapes) (shape, error) {
	found, issues := p.env.infer(p.source, p.checked, shapes)
	if len(issues) > 0 {
		first := slices.MinFunc(issues, func(a, b *IssueError) int { return cmp.Compare(a.Offset, b.Offset) })
		return shape{}, first.jig()
	}
	if p.want != Any && found.kinds&kindsOf(p.want.cel()) == 0 {
		return shape{}, wrongResult(p.source, found.kinds.String(), p.want).jig()
	}
	return found, nil
}

// Check runs [Program.Check] for all expressions of the template and returns the first error.
func (t *Template) Check(shapes Shapes) error {
	_, err := t.infer(shapes)
	return err
}

// Describe is like [Program.Describe] for a template. The result is a string unless the template is a single expression and nothing else.
func (t *Template) Describe(shapes Shapes) (json.RawMessage, error) {
	found, err := t.infer(shapes)
	if err != nil {
		return nil, err
	}
	return found.schemaJSON(), nil
}

func (t *Template) infer(shapes Shapes) (shape, error) {
	for _, part := range t.parts {
		if part.program == nil {
			continue
		}
		found, err := part.program.infer(shapes)
		if err != nil {
			return shape{}, within(err, t.source, part.offset)
		}
		if len(t.parts) == 1 {
			return found, nil
		}
	}
	return of(kindString), nil
}

// schemaMemo caches decoded schemas, because many expressions of a document read the same ones.
type schemaMemo struct {
	mu    sync.Mutex
	read  map[string]any
	bytes int
}

// maxSchemaMemo limits the cache, in bytes of source.
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

// maxDescribed limits the places in a described shape, because references may unfold without end.
const maxDescribed = 500

func (s shape) schemaJSON() json.RawMessage {
	left := maxDescribed
	raw, err := jsontext.Encode(s.describe(&left))
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// describe writes a shape as a schema without references. It leaves out everything that exceeds the remaining number of places.
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
	_, may := s.member("\x00") // no schema has this property
	out["additionalProperties"] = may
	return out
}

// schemaTypes returns JSON Schema's names for a set of kinds. It returns no names if one of the kinds has no corresponding JSON type.
func (k kinds) schemaTypes() []string {
	if k&kindDouble != 0 {
		k &^= kindInt // a number may be integral
	}
	var out []string
	for _, t := range jsonTypes {
		if k&t.kinds != 0 {
			out = append(out, t.name)
			k &^= t.kinds
		}
	}
	if k != 0 {
		return nil
	}
	return out
}
