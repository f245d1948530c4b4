package store

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// patchColumns returns the arguments of EntityUpdate between the id and the revision.
func patchColumns(patch entity.Patch) ([]any, error) {
	set, gone, touched := map[string]json.RawMessage{}, []string{}, []string{}
	for name, v := range patch.Fields {
		if name == "" {
			return nil, jig.Errorf(jig.CodeInvalidInput, "a field of the change has no name").WithField("fields")
		}
		touched = append(touched, text(name))
		if len(v) == 0 || bytes.Equal(bytes.TrimSpace(v), []byte("null")) {
			gone = append(gone, text(name))
			continue
		}
		set[name] = v
	}
	for name := range patch.Provenance {
		touched = append(touched, text(name))
	}
	whole, err := json.Marshal(set)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the change cannot be written as JSON: %w", err).WithField("fields")
	}
	content, err := contentOf(whole)
	if err != nil {
		return nil, err
	}
	provenance, err := provenanceOf(patch.Provenance)
	if err != nil {
		return nil, err
	}
	title := patch.Title
	if title != nil {
		clean := text(*title)
		title = &clean
	}
	return []any{content, gone, touched, provenance, title, text(patch.TypeVersion), text(patch.Key)}, nil
}

// contentOf returns content as its column stores it. It refuses content that is not a JSON object, or has texts or numbers that PostgreSQL
// cannot store.
func contentOf(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return []byte("{}"), nil
	}
	if len(raw) > entity.MaxBytes {
		return nil, tooLarge()
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var content map[string]any
	if err := d.Decode(&content); err != nil || content == nil || d.More() {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the content is not a JSON object").WithField("content")
	}
	b, err := encode(content)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(b, []byte(`\u0000`)) && hasNUL(content) {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the content has a text with a NUL character").WithField("content").WithHint("leave it out")
	}
	if field := extreme(content); field != "" {
		return nil, jig.Errorf(jig.CodeInvalidInput, "a number in %q is out of range", field).WithField(field).WithHint("use an exponent of at most 400")
	}
	return b, nil
}

func tooLarge() *jig.Error {
	return jig.Errorf(jig.CodeInvalidInput, "the content has more than %d KiB", entity.MaxBytes>>10).WithField("content").
		WithHint("store long texts as texts of the entity, which can be searched, or as artifacts")
}

// hasNUL reports whether a text or a name in a value contains a NUL character.
func hasNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "\x00")
	case []any:
		return slices.ContainsFunc(v, hasNUL)
	case map[string]any:
		for name, part := range v {
			if strings.Contains(name, "\x00") || hasNUL(part) {
				return true
			}
		}
	}
	return false
}

// extreme returns the name of a field whose value contains a number that PostgreSQL would refuse, or "" if all numbers fit.
func extreme(content map[string]any) string {
	var outside func(v any) bool
	outside = func(v any) bool {
		switch v := v.(type) {
		case json.Number:
			return !plainNumber(v.String())
		case []any:
			return slices.ContainsFunc(v, outside)
		case map[string]any:
			for _, part := range v {
				if outside(part) {
					return true
				}
			}
		}
		return false
	}
	for name, v := range content {
		if outside(v) {
			return name
		}
	}
	return ""
}

func provenanceOf(p map[string]entity.Provenance) ([]byte, error) {
	if len(p) == 0 {
		return []byte("{}"), nil
	}
	b, err := encode(p)
	if err == nil && bytes.Contains(b, []byte(`\u0000`)) {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the provenance has a text with a NUL character").WithField("provenance")
	}
	return b, err
}

// contentMap decodes stored content and keeps numbers as they are written.
func contentMap(content json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "a stored value cannot be read: %w", err)
	}
	return m, nil
}
