package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/strictjson"
)

func TestUnmarshalKnown_RefusesWhatTwoReadersCouldReadDifferently(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ field, message string }{
		``:                                   {"", "empty"},
		`{"call":"1.1","bye":"ana"}`:         {"", `unknown field "bye"`},
		`{"call":"1.1"} {"call":"1.2"}`:      {"", "text after the JSON value"},
		`{"call":3}`:                         {"", "`call` must not be of type number"},
		`"1.1"`:                              {"", "it is of type string"},
		`{"call":"1.1","by":"ana"`:           {"", "a comma or a closing brace"},
		`{"decisions":[{"cal":"1.1"}]}`:      {"", `unknown field "cal"`},
		`{"decisions":[{"Call":"1.1"}]}`:     {"/decisions/0/Call", `unknown field "Call"`},
		`{"Decisions":[]}`:                   {"/Decisions", `unknown field "Decisions"`},
		`{"decision\u017f":[]}`:              {"/decisionſ", `unknown field`}, // encoding/json takes a long s for an s
		`{"answer":"deny","answer":"deny"}`:  {"/answer", `the property "answer" appears twice`},
		`{"answer":"deny","a\u006eswer":""}`: {"/answer", `the property "answer" appears twice`},
		`{"input":{"a":{"b":1,"b":1}}}`:      {"/input/a/b", `the property "b" appears twice`},
		`{"grant":{"when":"x","When":"y"}}`:  {"/grant/When", `unknown field "When"`},
		"{\"by\":\"caf\xe9\"}":               {"/by", "not valid UTF-8"},
		"{\"caf\xe9\":1}":                    {"", "not valid UTF-8"},
		`{"by":"\ud99c"}`:                    {"/by", "half a surrogate pair"},
		`{"by":"\udc00"}`:                    {"/by", "half a surrogate pair"},
		`{"input":{"a":"\ud99c\u0041"}}`:     {"/input/a", "half a surrogate pair"},
		strings.Repeat(`[`, 2000):            {"", "nested more than"},
	} {
		var d protocol.Decisions
		err := strictjson.UnmarshalKnown([]byte(text), &d)
		require.ErrorContains(t, err, want.message, text)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), text)
		if want.field != "" {
			require.Equal(t, want.field, jig.AsError(err).Field, text)
		}
	}
}

func TestUnmarshalKnown_TakesFreeDataAsItIs(t *testing.T) {
	t.Parallel()
	var d protocol.Decisions
	payload := `{"by":"ana","reason":"not now","note":"n","answer":"deny","decisions":[{"call":"1.1","input":{"Call":1,"call":12345678901234567890}},
		{"call":"1.2","by":"bo","reason":"never","answer":"approve"}]}`
	require.NoError(t, strictjson.UnmarshalKnown([]byte(payload), &d))
	require.Equal(t, []jig.Decision{
		{Call: "1.1", By: "ana", Answer: jig.AnswerDeny, Reason: "not now", Note: "n", Input: json.RawMessage(`{"Call":1,"call":12345678901234567890}`)},
		{Call: "1.2", By: "bo", Answer: jig.AnswerApprove, Reason: "never", Note: "n"},
	}, d.All())
}

func TestUnmarshal_IgnoresUnknownNamesButNotOtherCases(t *testing.T) {
	t.Parallel()
	type inner struct {
		Size int `json:"size"`
	}
	type outer struct {
		inner
		Name  string           `json:"name"`
		Parts []inner          `json:"parts"`
		By    map[string]inner `json:"by"`
		Any   any              `json:"any"`
		Skip  string           `json:"-"`
	}
	var got outer
	require.NoError(t, strictjson.Unmarshal([]byte(`{"name":"a","other":1,"Skip":"x","by":{"A":{"size":1},"a":{"size":2}},"any":{"N":1,"n":2}}`), &got))
	require.Equal(t, 2, got.By["a"].Size)
	for _, text := range []string{`{"NAME":"a"}`, `{"parts":[{"Size":1}]}`, `{"by":{"a":{"sIze":1}}}`} {
		require.ErrorContains(t, strictjson.Unmarshal([]byte(text), &got), "unknown field", text)
	}
}

// Signals wait in the input of the next run as they arrived; they are refused when they are read, not with the run.
func TestPassInput_RefusesAllButTheInbox(t *testing.T) {
	t.Parallel()
	var in protocol.PassInput
	inbox := `{"tenant":"t","inbox":[{"name":"approve","key":"k","payload":{"call":"1.1","call":"1.2","n":1e999}}],"start":{"agent":"a"}}`
	require.NoError(t, json.Unmarshal([]byte(inbox), &in))
	require.Equal(t, `{"call":"1.1","call":"1.2","n":1e999}`, string(in.Inbox[0].Payload)) //nolint:testifylint // to the byte
	for _, text := range []string{
		`{"tenant":"t","tenant":"u"}`, `{"Tenant":"t"}`, `{"tenant":"t","start":{"task":"a","task":"b"}}`, `{"tenant":"t","start":{"Task":"a"}}`,
		`{"tenant":"t","start":{"input":{"a":1,"a":2}}}`, "{\"start\":{\"task\":\"caf\xe9\"}}", `{"inbox":[],"inbox":[]}`,
	} {
		require.Error(t, json.Unmarshal([]byte(text), &in), text)
	}
	var call protocol.CallInput
	require.Error(t, json.Unmarshal([]byte(`{"tool":"file.read","tool":"file.write"}`), &call))
	require.Error(t, json.Unmarshal([]byte(`{"tool":"file.read","Tool":"file.write"}`), &call))
}
