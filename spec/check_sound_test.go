package spec_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// dice makes random schemas, and values that often fit them or nearly do.
type dice struct{ *rand.Rand }

func (d dice) one(all ...any) any { return all[d.IntN(len(all))] }

func (d dice) word(all ...string) string { return all[d.IntN(len(all))] }

func (d dice) schema(depth int) any {
	if depth == 0 || d.IntN(12) == 0 {
		return d.one(true, true, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"type": "integer"}, map[string]any{"const": "a"}, false)
	}
	s := map[string]any{}
	if d.IntN(3) > 0 {
		s["type"] = d.one("object", "object", "object", "array", "string", "integer", "number", "boolean", "null", []any{"string", "null"}, []any{"object", "integer"})
	}
	for range 1 + d.IntN(3) {
		switch d.IntN(22) {
		case 0, 1, 2:
			s["properties"] = map[string]any{"a": d.schema(depth - 1), "b": d.schema(depth - 1)}
		case 3:
			s["required"] = d.one([]any{"a"}, []any{"a", "b"}, []any{"c"})
		case 4:
			s["additionalProperties"] = d.one(false, d.schema(depth-1))
		case 5:
			s["items"] = d.schema(depth - 1)
		case 6:
			s["prefixItems"] = []any{d.schema(depth - 1), d.schema(depth - 1)}
		case 7:
			s[d.word("minItems", "maxItems", "minProperties", "maxProperties")] = d.IntN(3)
		case 8:
			s[d.word("minLength", "maxLength")] = d.IntN(6)
		case 9:
			s[d.word("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")] = d.one(0, 1, 1.5, -2)
		case 10:
			s["enum"] = []any{d.value(1), d.value(1), d.value(1)}
		case 11:
			s["const"] = d.value(1)
		case 12:
			s[d.word("anyOf", "oneOf")] = []any{d.schema(depth - 1), d.schema(depth - 1)}
		case 13:
			s["allOf"] = []any{d.schema(depth - 1)}
		case 14:
			s["$ref"] = d.one("#", "#/$defs/x", "#/$defs/y")
		case 15:
			s["pattern"] = d.one("^a", `\d`, "b$")
		case 16:
			s["patternProperties"] = map[string]any{"^[ac]": d.schema(depth - 1)}
		case 17:
			s["not"] = d.schema(depth - 1)
		case 18:
			s["if"], s["then"], s["else"] = d.schema(0), d.schema(depth-1), d.schema(depth-1)
		case 19:
			s["uniqueItems"] = true
		case 20:
			s["propertyNames"] = d.schema(0)
		case 21:
			s["unevaluatedProperties"] = false
		}
	}
	return s
}

func (d dice) value(depth int) any {
	switch n := d.IntN(10); {
	case depth > 0 && n < 4:
		v := map[string]any{}
		for _, key := range []string{"a", "b", "c"} {
			if d.IntN(2) == 0 {
				v[key] = d.value(depth - 1)
			}
		}
		return v
	case depth > 0 && n < 5:
		v := []any{}
		for range d.IntN(4) {
			v = append(v, d.value(depth-1))
		}
		return v
	}
	return d.one("a", "ab", "", "1b", "$${a}", 0, 1, 2, 1.5, -3, true, nil)
}

// hide replaces parts of a value with templates.
func (d dice) hide(v any) any {
	if d.IntN(6) == 0 {
		if _, text := v.(string); text && d.IntN(2) == 0 {
			return "x${input.y}"
		}
		return "${input.x}"
	}
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range x {
			out[key] = d.hide(inner)
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range x {
			out = append(out, d.hide(inner))
		}
		return out
	}
	return v
}

// fill replaces templates with random values.
func (d dice) fill(v any) any {
	switch x := v.(type) {
	case string:
		if x == "${input.x}" {
			return d.value(2)
		}
		return strings.ReplaceAll(strings.ReplaceAll(x, "$${", "${"), "x${input.y}", "x"+d.word("", "a", "1b"))
	case map[string]any:
		out := map[string]any{}
		for key, inner := range x {
			out[key] = d.fill(inner)
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range x {
			out = append(out, d.fill(inner))
		}
		return out
	}
	return v
}

// A reported input cannot fit, whatever values its templates give: a validator refuses it, too. The check also finds most of the inputs that
// the validator refuses.
func TestCheck_ReportedInputsNeverFit(t *testing.T) {
	t.Parallel()
	d := dice{rand.New(rand.NewPCG(7, 9))}
	refused, found, hidden := 0, 0, 0
	for range 2000 {
		top := map[string]any{"allOf": []any{d.schema(3)}, "$defs": map[string]any{"x": d.schema(1), "y": d.schema(2)}}
		raw, err := json.Marshal(top)
		require.NoError(t, err)
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource("s.json", document))
		schema, err := compiler.Compile("s.json")
		if err != nil {
			continue // a circular reference
		}
		literal := d.value(3)
		for _, input := range []any{literal, d.hide(literal)} {
			problems := checkInput(t, raw, input)
			fits := func(v any) bool {
				b, err := json.Marshal(v)
				require.NoError(t, err)
				v, err = jsonschema.UnmarshalJSON(bytes.NewReader(b))
				require.NoError(t, err)
				return schema.Validate(v) == nil
			}
			for range 8 {
				filled := d.fill(input)
				require.False(t, len(problems) > 0 && fits(filled), "%s takes %v, but: %v", raw, filled, problems)
			}
			if containsTemplate(input) {
				hidden += min(len(problems), 1)
			} else if !fits(d.fill(input)) {
				refused++
				found += min(len(problems), 1)
			}
		}
	}
	require.Greater(t, refused, 500)
	require.Greater(t, found*100/refused, 75, "found %d of %d", found, refused)
	require.Greater(t, hidden, 50)
}

func checkInput(t *testing.T, schema json.RawMessage, input any) spec.Problems {
	t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(t, err)
	x := &spec.Execution{Kind: spec.KindComposition, Name: "a", Steps: []spec.Step{{ID: "x", Tool: "b.c", Input: raw}}}
	docs := []spec.Document{{Kind: spec.KindComposition, Name: "a", Path: "a.yaml", Value: x}}
	return spec.Check(docs, spec.Catalog{Tools: []jig.Tool{{Name: "b.c", InputSchema: schema}}})
}

func containsTemplate(v any) bool {
	raw, err := json.Marshal(v)
	return err != nil || strings.Contains(string(raw), "${input")
}
