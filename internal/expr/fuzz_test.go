package expr_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/costtest"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
)

// Compiling and evaluating any source ends soon, with a value that can be encoded as JSON or with a jig error. A second evaluation gives the same
// result.
func FuzzExpression(f *testing.F) {
	if !raceEnabled { // under the race detector, these seeds would take a minute
		for _, source := range hostile() {
			f.Add(source, `{}`)
		}
	}
	f.Add("input.m.map(k, k + string(input.m[k]))", `{"m":{"b":1,"a":2.5}}`)
	f.Add("input.l.filter(x, x.n > 1).sortBy(x, x.n).map(x, '%s'.format([x]))", `{"l":[{"n":2},{"n":3}]}`)
	f.Add("input.?a[?0].orValue({'a': [1, 2.0, b'x', duration('1h')]})", `{}`)
	use := expr.ScriptUse()
	use.Limits = expr.Limits{}
	env, err := expr.NewEnv(use)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, source, input string) {
		p, err := env.Compile(source)
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		vars := map[string]any{"input": json.RawMessage(input), "task": input, "pass": 1, "calls": []any{}, "last": []any{}, "messages": []any{}, "vars": map[string]any{}}
		first, err := p.EvalJSON(ctx, vars)
		again, err2 := p.EvalJSON(ctx, vars)
		require.Equal(t, err == nil, err2 == nil)
		require.Equal(t, string(first), string(again))
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), err.Error())
			return
		}
		require.True(t, json.Valid(first))
	})
}

// If a value fits a schema and an expression works on the value, the check reports nothing. Expressions that may skip a part of themselves are
// left out, because a part that is not evaluated may be wrong.
func FuzzCheck(f *testing.F) {
	for _, seed := range []struct{ source, schema, value string }{
		{"input.n + 1", `{"properties":{"n":{"type":"number"}}}`, `{"n":1}`},
		{"input.l.map(x, x.a + 'x')", `{"properties":{"l":{"items":{"properties":{"a":{"type":["string","null"]}}},"type":"array"}}}`, `{"l":[{"a":"b"}]}`},
		{"input.s.size() == input.n", `{"type":"object","properties":{"s":{"enum":["a",1]},"n":{"const":1}},"additionalProperties":false}`, `{"s":"a","n":1}`},
		{"input.a.b.c", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"a":{"$ref":"#"}}}}}`, `{"a":{"b":{"c":null}}}`},
		{"input.tags.sort()[0] + input.x", `{"allOf":[{"required":["x"]}],"properties":{"tags":{"type":"array","items":{"type":"string"}}}}`, `{"tags":["b","a"],"x":"y"}`},
		{"-input.m['a'] < 2.5", `{"properties":{"m":{"additionalProperties":{"type":"integer"}}}}`, `{"m":{"a":3}}`},
		{"input.filter(k, k > 'a').map(k, k + 'x')", `{"type":"object"}`, `{"b":1}`},
		{"cel.bind(x, input.o, x.p * 2)", `{"properties":{"o":{"patternProperties":{"p":{"type":"integer"}}}}}`, `{"o":{"p":2}}`},
	} {
		f.Add(seed.source, seed.schema, seed.value)
	}
	env := stepEnv(f)
	f.Fuzz(func(t *testing.T, source, schema, value string) {
		if len(schema) > 4<<10 || len(value) > 4<<10 {
			return
		}
		shapes := expr.Shapes{"input": json.RawMessage(schema)}
		err := env.Check(source, expr.Any, shapes)
		_, describeErr := env.Describe(source, shapes)
		require.Equal(t, err == nil, describeErr == nil)
		if err == nil {
			return
		}
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
		p, compileErr := env.Compile(source)
		if compileErr != nil || partial(source) || strings.Contains(err.Error(), "never equal") || !fits(schema, value) {
			return
		}
		if strings.Contains(err.Error(), " has no '") && !strings.Contains(schema, `"additionalProperties":false`) {
			return // a schema's properties are taken to be complete
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, evalErr := p.Eval(ctx, map[string]any{"input": json.RawMessage(value)})
		require.Error(t, evalErr, "it gives %v, but the check says %v", got, err)
	})
}

// partial reports whether an expression may skip a part of itself or tests whether something is present.
func partial(source string) bool {
	for _, word := range []string{"?", "&&", "||", "has", " in ", "all", "exists", "map", "filter", "transform", "sortBy", "dyn", "bind"} {
		if strings.Contains(source, word) {
			return true
		}
	}
	return false
}

func fits(schema, value string) bool {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return false
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		return false
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if c.AddResource("urn:schema", document) != nil {
		return false
	}
	compiled, err := c.Compile("urn:schema")
	return err == nil && compiled.Validate(instance) == nil
}

// A template and a document that contains it compile alike and give the same result.
func FuzzTemplate(f *testing.F) {
	for _, source := range []string{"a ${task} b", "$${x}", "${'}'}", "${r'\\'}", "${ {} }", "$$${task}", "${", "é${'''}'''}"} {
		f.Add(source)
	}
	env := scriptEnv(f)
	f.Fuzz(func(t *testing.T, source string) {
		vars := map[string]any{"task": "x"}
		tm, err := env.Template(source)
		var got json.RawMessage
		if err == nil {
			var v any
			if v, err = tm.Eval(t.Context(), vars); err == nil {
				got, err = jsontext.Encode(v)
			}
		}
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
		}
		checked := env.CheckTemplate(source, nil)
		require.True(t, checked != nil || tm != nil, "what the check accepts compiles")
		if !utf8.ValidString(source) {
			return
		}
		quoted, marshalErr := json.Marshal([]string{source})
		require.NoError(t, marshalErr)
		d, problems := env.Document(quoted)
		require.Equal(t, tm != nil, len(problems) == 0)
		if d == nil {
			return
		}
		require.Equal(t, tm.Reads(), d.Reads())
		rendered, renderErr := d.Render(t.Context(), vars)
		require.Equal(t, err == nil, renderErr == nil)
		if err == nil {
			require.Equal(t, "["+string(got)+"]", string(rendered))
		}
	})
}

// The scan before parsing never refuses a source that cel-go can parse as a syntax error.
func FuzzTokens(f *testing.F) {
	for _, source := range []string{"'''a'b'''", `''+'\'"\x41\u00e9\101'`, `r'\'+br"\"`, "\"\"\"\n\"\"\"", "a.`b c`", "1e-3u0x1f // '", "'''a'", "rb''", "x\fy", "!-!--1"} {
		f.Add(source)
	}
	env := stepEnv(f)
	raw, err := cel.NewEnv(cel.OptionalTypes())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, source string) {
		if _, err := env.Compile(source); err == nil || !strings.Contains(err.Error(), "syntax error") {
			return
		}
		_, issues := raw.Parse(source)
		require.NotEmpty(t, issues.Errors(), source)
	})
}

// mostOfExpression is the number of bytes that compiling and evaluating one expression may allocate, including freed memory.
const mostOfExpression = 96 << 20

// Compiling and evaluating any source allocates no more than the limit. An attack ends in an error.
func FuzzExpressionMemory(f *testing.F) {
	for _, source := range hostile() {
		f.Add(source)
	}
	env := stepEnv(f)
	f.Fuzz(func(t *testing.T, source string) {
		costtest.AtMost(t, mostOfExpression, func() {
			if p, err := env.Compile(source); err == nil {
				_, _ = p.Eval(t.Context(), nil) //nolint:errcheck // any error will do
			}
			if template, err := env.Template(source); err == nil {
				_, _ = template.Eval(t.Context(), nil) //nolint:errcheck // as above
			}
		})
	})
}
