package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/schema"
)

const person = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "minLength": 1},
		"age": {"type": "integer", "minimum": 0, "maximum": 150},
		"role": {"enum": ["reader", "writer"]},
		"tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
		"size": {"anyOf": [{"type": "number"}, {"type": "null"}]},
		"home": {"$ref": "#/$defs/address"}
	},
	"required": ["name", "age"],
	"additionalProperties": false,
	"$defs": {"address": {
		"type": "object", "properties": {"street/no": {"type": "string"}}, "required": ["street/no"], "additionalProperties": false
	}}
}`

func compile(tb testing.TB, raw string, options schema.Options) *schema.Schema {
	tb.Helper()
	s, err := schema.NewCompiler(options).Compile([]byte(raw))
	require.NoError(tb, err)
	return s
}

func TestValidate_ReportsEveryViolation(t *testing.T) {
	t.Parallel()
	s := compile(t, person, schema.Options{ExactNumbers: true})
	tests := map[string]struct {
		input      string
		code       jig.Code
		violations []jig.Violation
	}{
		"missing": {`{}`, jig.CodeMissingParam, []jig.Violation{
			{Pointer: "/age", Message: "is required and missing"}, {Pointer: "/name", Message: "is required and missing"},
		}},
		"missing deep": {`{"name":"a","age":1,"home":{}}`, jig.CodeMissingParam, []jig.Violation{
			{Pointer: "/home/street~1no", Message: "is required and missing"},
		}},
		"missing and wrong": {`{"age":"x"}`, jig.CodeInvalidInput, []jig.Violation{
			{Pointer: "/age", Message: "must be of type integer, not string"}, {Pointer: "/name", Message: "is required and missing"},
		}},
		"unknown": {`{"name":"a","age":1,"rol":"x"}`, jig.CodeInvalidInput, []jig.Violation{
			{Pointer: "/rol", Message: "is not a known property, did you mean role?"},
		}},
		"bounds": {`{"name":"","age":151,"role":"x","tags":["a",1,"c"]}`, jig.CodeInvalidInput, []jig.Violation{
			{Pointer: "/age", Message: "must be at most 150"},
			{Pointer: "/name", Message: "must have at least 1 character, not 0"},
			{Pointer: "/role", Message: `must be one of "reader", "writer"`},
			{Pointer: "/tags", Message: "must have at most 2 items, not 3"},
			{Pointer: "/tags/1", Message: "must be of type string, not number"},
		}},
		"choice": {`{"name":"a","age":1,"size":"x"}`, jig.CodeInvalidInput, []jig.Violation{
			{Pointer: "/size", Message: "must be of type number or null"},
		}},
		"top": {`[]`, jig.CodeInvalidInput, []jig.Violation{{Message: "must be of type object, not array"}}},
		"twice": {`{"name":"a","age":1,"home":{"street/no":"a","street/no":"b"}}`, jig.CodeInvalidInput, []jig.Violation{
			{Pointer: "/home/street~1no", Message: `the property "street/no" appears twice`},
		}},
		"large": {`{"name":"a","age":9007199254740993}`, jig.CodeInvalidInput, []jig.Violation{
			{Pointer: "/age", Message: "a number is beyond 2^53 and would lose digits; write it as a string"},
		}},
		"in list": {`{"name":"a","age":1,"tags":["a", 1e9999]}`, jig.CodeInvalidInput, []jig.Violation{
			{Pointer: "/tags/1", Message: "a number has an exponent beyond 400"},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := jig.AsError(s.Validate([]byte(tc.input)))
			require.NotNil(t, e)
			require.Equal(t, tc.code, e.Code)
			for i, v := range e.Violations {
				require.Equal(t, v.Message, jig.Text(v.Template), "no value of the input is in it")
				e.Violations[i].Template = ""
			}
			require.Equal(t, tc.violations, e.Violations)
			require.Equal(t, tc.violations[0].Pointer, e.Field)
			require.NotEmpty(t, e.Message)
		})
	}
	require.NoError(t, s.Validate([]byte(`{"name":"a","age":1.0,"size":null,"home":{"street/no":"x"}}`)))
}

func TestValidate_HintsAtKnownProperties(t *testing.T) {
	t.Parallel()
	s := compile(t, person, schema.Options{})
	e := jig.AsError(s.Validate([]byte(`{"name":"a","age":1,"xyzzy":1}`)))
	require.Equal(t, "known properties: age, home, name, role, size, tags", e.Hint)
}

func TestCompile_RefusesReferences(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{
		"http://example.com/a.json", "https://json-schema.example/x", "file:///etc/passwd", "other.json", "ftp://x/y", "//host/x",
	} {
		t.Run(ref, func(t *testing.T) {
			t.Parallel()
			for _, raw := range []string{
				fmt.Sprintf(`{"type":"object","properties":{"a":{"$ref":%q}}}`, ref),
				fmt.Sprintf(`{"$schema":%q,"type":"object"}`, ref),
				fmt.Sprintf(`{"$id":"file:///tmp/x.json","$ref":%q}`, ref),
			} {
				_, err := schema.NewCompiler(schema.Options{}).Compile([]byte(raw))
				require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, raw)
			}
		})
	}
}

func TestCompile_RefusesLargeSchemas(t *testing.T) {
	t.Parallel()
	c := schema.NewCompiler(schema.Options{MaxSchemaBytes: 2000, MaxInstanceBytes: 2000})
	deep := strings.Repeat(`{"not":`, 70) + "true" + strings.Repeat("}", 70)
	for name, raw := range map[string]string{
		"size":       `{"description":"` + strings.Repeat("x", 2000) + `"}`,
		"depth":      deep,
		"not JSON":   `{"type":`,
		"wrong type": `{"type":"text"}`,
		"regexp":     `{"pattern":"(?=x)"}`,
		"dangling":   `{"$ref":"#/$defs/nothing"}`,
	} {
		_, err := c.Compile([]byte(raw))
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, name)
	}
	s, err := c.Compile([]byte(`{}`))
	require.NoError(t, err)
	require.Error(t, s.Validate([]byte(strings.Repeat("[", 129)+strings.Repeat("]", 129))))
	require.NoError(t, s.Validate([]byte(strings.Repeat("[", 128)+strings.Repeat("]", 128))))
	require.Error(t, s.Validate([]byte(`"`+strings.Repeat("x", 2000)+`"`)))
}

func TestCompile_OncePerHash(t *testing.T) {
	t.Parallel()
	c := schema.NewCompiler(schema.Options{CacheSize: 2})
	first := make([]*schema.Schema, 8)
	failed := make([]error, len(first))
	var wait sync.WaitGroup
	for i := range first {
		wait.Go(func() { first[i], failed[i] = c.Compile([]byte(person)) })
	}
	wait.Wait()
	for i, s := range first {
		require.NoError(t, failed[i])
		require.Same(t, first[0], s)
	}
	for i := range 3 {
		_, err := c.Compile(fmt.Appendf(nil, `{"minimum":%d}`, i))
		require.NoError(t, err)
	}
	again, err := c.Compile([]byte(person))
	require.NoError(t, err)
	require.NotSame(t, first[0], again, "the cache is bounded")
}

func TestRead_AgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	s := compile(t, `{}`, schema.Options{})
	for _, text := range []string{
		`{"a":[1,2.5,-3e2,"xé\n\ud83d\ude00\/",true,false,null,{}],"b":{"":""}}`, ` [ ] `, `"é"`, `0`, `-0`, `1E+2`,
	} {
		v, err := s.Read([]byte(text))
		require.NoError(t, err, text)
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var want any
		require.NoError(t, decoder.Decode(&want))
		require.Equal(t, want, v)
	}
	for _, text := range []string{
		``, ` `, `{`, `[1,]`, `{"a":1,}`, `{a:1}`, `01`, `1.`, `.5`, `+1`, `-`, `1e`, `nul`, `"a`, `"\x"`, "\"\n\"", `[1]]`, `{"a" 1}`,
		`"\ud800"`, `"\udc00x"`, `"\ud800\u0041"`, "\"\xff\"", `{"a":1,"a":1}`, `{"a":1,"\u0061":1}`, `tru`, `[1 2]`, `"\u12"`, `"\\\"`,
	} {
		_, err := s.Read([]byte(text))
		require.Error(t, err, text)
	}
}

func TestExactNumbers_AreRefusedBeyond53Bits(t *testing.T) {
	t.Parallel()
	s := compile(t, `{}`, schema.Options{ExactNumbers: true})
	for _, good := range []string{"9007199254740992", "-9007199254740992", "1e300", "12345678901234.5", "0.1234567890123456789", "1.5e20", "150000000000000000000", "-100000000000000000000", "123456789012345000000"} {
		require.NoError(t, s.Validate([]byte(good)), good)
	}
	for _, bad := range []string{"9007199254740993", "-9007199254740993", "1e400", "9007199254740993.0", "9.007199254740993e15", "100000000000000000001", "1234567890123456000000", "9007199254740994"} {
		require.Error(t, s.Validate([]byte(bad)), bad)
	}
}

// The output of a tool may contain numbers that are refused in inputs.
func TestChecker_TakesAnyNumberInOutputs(t *testing.T) {
	t.Parallel()
	c := schema.NewChecker(schema.Options{ExactNumbers: true})
	whole := []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	large := []byte(`{"n":9223372036854775807}`)
	require.Error(t, c.Validate(whole, large))
	require.NoError(t, c.ValidateOutput(whole, large))
	require.Error(t, c.ValidateOutput(whole, []byte(`{"n":"1"}`)))
	require.Error(t, c.ValidateOutput(nil, []byte(`[]`)))
}

func FuzzValidate(f *testing.F) {
	s := compile(f, person, schema.Options{ExactNumbers: true})
	f.Add(`{"name":"a","age":1}`)
	f.Add(`{"name":"\ud83d\ude00","age":1e2,"tags":["",""],"home":{}}`)
	f.Add(`[[{"a":-0.5e-3}]]`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := s.Read([]byte(text))
		if err != nil {
			require.NotNil(t, jig.AsError(err))
			require.NotEqual(t, jig.CodeInternal, jig.CodeOf(err))
			return
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var want any
		require.NoError(t, decoder.Decode(&want))
		require.Equal(t, want, v)
	})
}
