package guarded

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/toolname"
)

// Complete fills in the defaults of a new entity and checks its content. If the type has fields that tasks fill, these may be missing.
func (g Entities) Complete(
	t entity.Type, given map[string]json.RawMessage, at string,
) (raw json.RawMessage, content map[string]json.RawMessage, err error) {
	awaits := false
	content = map[string]json.RawMessage{}
	for _, f := range t.Fields {
		awaits = awaits || f.Task != ""
		if len(f.Default) > 0 {
			content[f.Name] = f.Default
		}
	}
	maps.Copy(content, given)
	for _, f := range t.Fields {
		if _, ok := content[f.Name]; awaits && f.Required && f.Task == "" && !ok {
			return nil, nil, jig.Errorf(jig.CodeInvalidInput, "the field %q is required", f.Name).WithField(at)
		}
	}
	raw, err = g.CheckFields(t, content, awaits, at)
	return raw, content, err
}

// CheckFields encodes fields as an entity's content and checks the content. at is the content's position in the input; it becomes a prefix
// of the pointers in errors.
func (g Entities) CheckFields(t entity.Type, fields map[string]json.RawMessage, partial bool, at string) (json.RawMessage, error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write the content: %w", err)
	}
	if err := g.Check(t, b, partial); err != nil {
		e := *jig.AsError(err)
		e.Field = at + e.Field
		e.Violations = slices.Clone(e.Violations)
		for i := range e.Violations {
			e.Violations[i].Pointer = at + e.Violations[i].Pointer
		}
		return nil, &e
	}
	return b, nil
}

// FieldAt finds a field of a type by its dotted name.
func FieldAt(t entity.Type, at, name string) (entity.Field, error) {
	fields, found := t.Fields, entity.Field{}
	for part := range strings.SplitSeq(name, ".") {
		i := slices.IndexFunc(fields, func(f entity.Field) bool { return f.Name == part })
		if i < 0 || part == "" {
			return found, jig.Errorf(jig.CodeInvalidInput, "the type %s has no field %q", t.Name, name).WithField(at).
				WithHint(toolname.EntitiesListTypes + " with the type shows its fields")
		}
		if found, fields = fields[i], nil; found.Type == entity.FieldObject {
			fields = found.Fields
		}
	}
	return found, nil
}
