package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/schema"
)

const page = `{
	"type": "object",
	"properties": {
		"title": {"type": "string"},
		"count": {"type": "integer"},
		"ratio": {"type": "number"},
		"draft": {"type": "boolean"},
		"tags": {"type": "array", "items": {"type": "string"}},
		"sizes": {"type": "array", "items": {"type": "integer"}},
		"level": {"enum": [1, "high"]},
		"maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
		"free": {},
		"dotted.name": {"type": "integer"},
		"author": {"$ref": "#/$defs/author"},
		"labels": {"type": "object", "additionalProperties": {"type": "integer"}}
	},
	"additionalProperties": false,
	"$defs": {"author": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "additionalProperties": false}}
}`

func TestFromPairs_ReadsValuesAsTheSchemaSays(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pairs map[string]string
		want  string
	}{
		"none":        {nil, `{}`},
		"string":      {map[string]string{"title": "5"}, `{"title":"5"}`},
		"quoted":      {map[string]string{"title": `"5"`}, `{"title":"\"5\""}`},
		"integer":     {map[string]string{"count": "5"}, `{"count":5}`},
		"exponent":    {map[string]string{"count": "1e3"}, `{"count":1e3}`},
		"number":      {map[string]string{"ratio": "0.5"}, `{"ratio":0.5}`},
		"boolean":     {map[string]string{"draft": "true"}, `{"draft":true}`},
		"list":        {map[string]string{"tags": "a, b,3"}, `{"tags":["a","b","3"]}`},
		"JSON list":   {map[string]string{"tags": `["a,b"]`}, `{"tags":["a,b"]}`},
		"empty list":  {map[string]string{"tags": ""}, `{"tags":[]}`},
		"one number":  {map[string]string{"sizes": "3"}, `{"sizes":[3]}`},
		"enum":        {map[string]string{"level": "1"}, `{"level":1}`},
		"enum string": {map[string]string{"level": "high"}, `{"level":"high"}`},
		"null":        {map[string]string{"maybe": "null"}, `{"maybe":null}`},
		"free JSON":   {map[string]string{"free": `{"a":1}`}, `{"free":{"a":1}}`},
		"free text":   {map[string]string{"free": "so so"}, `{"free":"so so"}`},
		"dotted":      {map[string]string{"dotted.name": "1"}, `{"dotted.name":1}`},
		"nested":      {map[string]string{"author.name": "Ana", "author.age": "7"}, `{"author":{"name":"Ana","age":7}}`},
		"object":      {map[string]string{"author": `{"name":"Ana"}`}, `{"author":{"name":"Ana"}}`},
		"map":         {map[string]string{"labels.x": "1"}, `{"labels":{"x":1}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := schema.FromPairs(json.RawMessage(page), tc.pairs)
			require.NoError(t, err)
			require.JSONEq(t, tc.want, string(got))
			require.NoError(t, compile(t, page, schema.Options{}).Validate(got))
		})
	}
}

func TestFromPairs_NamesTheField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pairs map[string]string
		field string
		hint  string
	}{
		"integer":    {map[string]string{"count": "many"}, "/count", ""},
		"fraction":   {map[string]string{"count": "1.5"}, "/count", ""},
		"boolean":    {map[string]string{"draft": "yes"}, "/draft", ""},
		"item":       {map[string]string{"sizes": "1,two"}, "/sizes", ""},
		"object":     {map[string]string{"author": "Ana"}, "/author", ""},
		"unknown":    {map[string]string{"titel": "x"}, "/titel", "did you mean title?"},
		"inner":      {map[string]string{"author.naem": "x"}, "/author/naem", "did you mean name?"},
		"not object": {map[string]string{"title.x": "1"}, "/title", "give the whole value: title=…"},
		"both":       {map[string]string{"author": `{"name":"A"}`, "author.name": "B"}, "/author/name", ""},
		"no name":    {map[string]string{"": "x"}, "/", "write name=value, or outer.inner=value for a property of an object"},
		"bad JSON":   {map[string]string{"tags": `["a"`}, "/tags", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schema.FromPairs(json.RawMessage(page), tc.pairs)
			require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
			e := jig.AsError(err)
			require.Equal(t, tc.field, e.Field, e.Message)
			require.Equal(t, tc.hint, e.Hint)
		})
	}
	_, err := schema.FromPairs(json.RawMessage(`{`), nil)
	require.Error(t, err)
}

func FuzzFromPairs(f *testing.F) {
	f.Add("title", "x", "author.age", "1")
	f.Add("tags", `["a"`, "labels.x.y", "")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		got, err := schema.FromPairs(json.RawMessage(page), map[string]string{k1: v1, k2: v2})
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
			return
		}
		require.True(t, json.Valid(got))
	})
}

// A number that would lose digits is an integer all the same, and the message says what is wrong with it.
func TestFromPairs_IntegerBeyondDoubles(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{"7615917337495251231", "-7615917337495251231"} {
		_, err := schema.FromPairs(json.RawMessage(`{"type":"object","properties":{"v":{"type":"integer"}}}`), map[string]string{"v": literal})
		require.ErrorContains(t, err, "would lose digits; write it as a string")
	}
}
