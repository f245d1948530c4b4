package tools_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

type booking struct {
	Task  string         `json:"task"`
	Seats []bookingSeat  `json:"seats,omitempty"`
	More  map[string]any `json:"more,omitempty"`
}

type bookingSeat struct {
	Class string `json:"class"`
}

func bookingTool(schema string) tools.Tool {
	return tools.New(jig.Tool{Name: "trip.book", Description: "Books.", InputSchema: json.RawMessage(schema)},
		func(_ context.Context, _ jig.Invocation, in booking) (booking, error) { return in, nil })
}

func TestRegistration_RefusesTypedToolsWithOpenSchemas(t *testing.T) {
	t.Parallel()
	const seat = `{"type":"object","properties":{"class":{"type":"string"}}`
	for schema, where := range map[string]string{
		`{"type":"object","properties":{"task":{"type":"string"}}}`:                                                                      "input_schema is open",
		`{"type":"object","additionalProperties":true,"properties":{"task":{"type":"string"}}}`:                                          "input_schema is open",
		`{"type":"object","additionalProperties":false,"properties":{"seats":{"type":"array","items":` + seat + `}}}}`:                   "input_schema/properties/seats/items is open",
		`{"type":"object","additionalProperties":false,"properties":{"seats":{"type":"array","items":` + seat + `,"minProperties":1}}}}`: "input_schema/properties/seats/items is open",
	} {
		_, err := tools.NewRegistry(bookingTool(schema))
		require.ErrorContains(t, err, where, schema)
		require.ErrorContains(t, err, `"additionalProperties": false`, schema)
	}
	for _, schema := range []string{
		`{"type":"object","additionalProperties":false,"properties":{"task":{"type":"string"},"seats":{"type":"array","items":` + seat + `,"additionalProperties":false}}}}`,
		`{"type":"object","unevaluatedProperties":false,"properties":{"task":{"type":"string"}}}`,
	} {
		_, err := tools.NewRegistry(bookingTool(schema))
		require.NoError(t, err, schema)
	}
}

// A reference may hide that a schema allows additional members. Decoding still refuses members that match a field only by case folding.
func TestInput_CaseFoldedMembersAreRefused(t *testing.T) {
	t.Parallel()
	registry, err := tools.NewRegistry(bookingTool(`{"type":"object","$ref":"#/$defs/in","$defs":{"in":{"type":"object"}}}`))
	require.NoError(t, err)
	for _, input := range []string{
		`{"task":"a","Task":"b"}`, "{\"task\":\"a\",\"tas\u212a\":\"b\"}", "{\"task\":\"a\",\"ta\u017fk\":\"b\"}", `{"TASK":"b"}`,
		`{"task":"a","seats":[{"class":"first","Class":"last"}]}`,
	} {
		result := registry.Run(t.Context(), "trip.book", []byte(input), jig.Invocation{})
		require.NotNil(t, result.Error, input)
		require.Equal(t, jig.CodeInvalidInput, result.Error.Code, input)
		require.True(t, result.Error.NotExecuted, input)
		require.Contains(t, result.Error.Message, "could be read as it", input)
	}
	for _, input := range []string{`{"task":"a","other":1}`, `{"task":"a","more":{"Task":1,"task":2}}`, `{"task":"a","seats":[{"class":"first"}]}`} {
		result := registry.Run(t.Context(), "trip.book", []byte(input), jig.Invocation{})
		require.True(t, result.Success, "%s %+v", input, result.Error)
	}
}
