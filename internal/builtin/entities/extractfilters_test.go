package entities_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/model"
)

// asText returns a model's answer.
func asText(answer string) modeltest.Reply { return modeltest.Text(answer) }

func TestExtractFilters_KeepsWhatTheTextSays(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text    string
		answers []string
		// filter is the expected filter without its type; dropped are parts of the expected reasons.
		filter  string
		dropped []string
		// suggested are the expected fields to ask about.
		suggested []string
	}{
		"as it is": {
			"teams in Bonn with more than 5 people",
			[]string{`{"where":[{"field":"number","op":"gt","value":5,"said":"more than 5 people"}]}`},
			`{"where":[{"field":"number","op":"gt","value":5}]}`, nil, nil,
		},
		"converted": {
			"HIGH or low risk, 1,200 or more, done, since May 2026",
			[]string{`{"match":"all","where":[
				{"field":"enum","op":"eq","value":["High","low"],"said":"HIGH or  low risk"},{"field":"number","op":"gte","value":"1200","said":"1,200 or more"},
				{"field":"boolean","op":"eq","value":"Yes","said":"done"},{"field":"date","op":"gte","value":"2026-05-01","said":"since May 2026"},
				{"field":"array","op":"contains","value":"B","said":"HIGH"},{"field":"object.at","op":"lt","value":"2026-06-01T00:00:00Z","said":"may 2026"}
			]}`},
			`{"match":"all","where":[
				{"field":"enum","op":"in","value":["high","low"]},{"field":"number","op":"gte","value":1200},
				{"field":"boolean","op":"eq","value":true},{"field":"date","op":"gte","value":"2026-05-01"},
				{"field":"array","op":"contains","value":"b"},{"field":"object.at","op":"lt","value":"2026-06-01T00:00:00Z"}
			]}`, nil, nil,
		},
		"mended": {
			"low risk",
			[]string{`{"where":[{"field":"risk","op":"eq","value":"low","said":"low risk"}]}`, `{"where":[{"field":"enum","op":"eq","value":"low","said":"low risk"}]}`},
			`{"where":[{"field":"enum","op":"eq","value":"low"}]}`, nil, nil,
		},
		"dropped": {
			"something cheap called Alpha, after Easter",
			[]string{"", `{"where":[
				{"field":"price","op":"lt","value":10,"said":"cheap"},{"field":"enum","op":"eq","value":"medium","said":"cheap"},
				{"field":"number","op":"lt","value":"ten","said":"cheap"},{"field":"number","op":"contains","value":1,"said":"cheap"},
				{"field":"text","op":"eq","value":"Beta","said":"Alpha"},{"field":"text","op":"eq","value":"Alpha","said":"the Alpha"},
				{"field":"date","op":"gt","value":"after Easter","said":"after Easter"},{"field":"relation","op":"eq","value":"ent_1","said":"Alpha"},
				{"field":"text","op":"contains","value":["alpha"],"said":"Alpha"},{"field":"text","op":"in","value":["Alpha"],"said":"called Alpha"},
				{"field":"email","op":"eq","value":7,"said":"Alpha"},{"field":"boolean","op":"eq","value":"maybe","said":"Alpha"}
			]}`},
			`{"where":[{"field":"text","op":"in","value":["Alpha"]}]}`,
			[]string{
				"no field \"price\"", "not an option; the options are low, high", "is not a number", `does not name "Beta"`, "not supported by words", `does not name "ent_1"`,
				"takes one value", "is not text", "neither true nor false", "contains", "date",
			},
			[]string{"enum", "number", "relation", "email", "boolean", "date"},
		},
		"order and number": {
			"the 3 newest",
			[]string{`{"where":[],"sort":[{"field":"$created_at","desc":true},{"field":"array"}],"limit":3}`, `{"where":[],"sort":[{"field":"$created_at","desc":true},{"field":"array"}],"limit":3}`},
			`{"sort":[{"field":"$created_at","desc":true}],"limit":3}`, nil, nil,
		},
		"missing": {
			"those without a mail address",
			[]string{`{"where":[{"field":"email","op":"eq","value":null,"said":"without a mail address"}]}`},
			`{"where":[{"field":"email","op":"eq","value":null}]}`, nil, nil,
		},
		"nothing": {"hello", []string{`{"where":[]}`}, `{}`, nil, nil},
		"without a value": {
			"low risk, at some date, and the number matters",
			[]string{
				`{"where":[{"field":"enum","op":"eq","value":"low","said":"low risk"}],"unclear":[{"field":"date","said":"at some date"},
				{"field":"enum","said":"low risk"},{"field":"number","said":"the price"},{"field":"nothing","said":"date"},{"field":"date","said":"date"}]}`,
			},
			`{"where":[{"field":"enum","op":"eq","value":"low"}]}`, nil,
			[]string{"date"},
		},
		"worse the second time": {
			"low risk",
			[]string{`{"where":[{"field":"enum","op":"eq","value":"low","said":"low risk"},{"field":"x","op":"eq","value":"low","said":"low risk"}]}`, `sorry`},
			`{"where":[{"field":"enum","op":"eq","value":"low"}]}`,
			[]string{"no field \"x\""},
			nil,
		},
		"no way to match": {
			"low risk", []string{`{"match":"some","where":[]}`, `{"match":"some","where":[]}`}, `{}`, nil, nil,
		},
	} {
		for _, provider := range []string{"anthropic/m", "openai/m"} {
			t.Run(name+" "+provider[:6], func(t *testing.T) {
				t.Parallel()
				answers := row.answers
				if answers[0] == "" { // the same answer both times
					answers = []string{answers[1], answers[1]}
				}
				var replies []modeltest.Reply
				for _, a := range answers {
					replies = append(replies, asText(a))
				}
				s := modeltest.New(t, replies...)
				b := benchOver(t, func(o *entities.Options) {
					withEvery(o)
					o.Model = model.NewRouter(model.Settings{
						Anthropic: model.Provider{APIKey: "key", BaseURL: s.URL}, OpenAI: model.Provider{APIKey: "key", BaseURL: s.OpenAIURL()},
					})
					o.DefaultModel = provider
				}, "entities.every.read")
				var out entities.ExtractedFilter
				b.call(entities.ExtractFiltersTool, object{"type": "every", "text": row.text}, &out)
				require.Len(t, s.Requests(), len(answers))
				require.NotEmpty(t, out.Model)
				require.Equal(t, int64(10*len(answers)), out.Usage.Input)
				require.Equal(t, "every", out.Filter.Type)
				out.Filter.Type = ""
				raw, err := json.Marshal(out.Filter)
				require.NoError(t, err)
				require.JSONEq(t, strings.Replace(`{"type":"",`+row.filter[1:], ",}", "}", 1), string(raw))
				var whys []string
				for _, d := range out.Dropped {
					whys = append(whys, d.Condition.Field+": "+d.Why)
				}
				require.Len(t, whys, len(row.dropped), "%q", whys)
				for _, why := range row.dropped {
					require.Contains(t, strings.Join(whys, "\n"), why)
				}
				var fields []string
				for _, f := range out.Suggested {
					require.NotEmpty(t, f.Reason)
					fields = append(fields, f.Field)
				}
				require.Equal(t, row.suggested, fields)
				out.Filter.Type = "every"
				b.call(entities.FilterTool, must(t, out.Filter), nil) // the filter is valid
				require.Contains(t, s.Requests()[0].System, `"const":"object.at"`)
				require.Contains(t, s.Requests()[0].System, `"low","high"`)
				if len(answers) == 2 {
					require.Contains(t, s.Requests()[1].Last().Text, "Your answer is not right")
				}
			})
		}
	}
}

// must converts a value to an input.
func must(t *testing.T, v any) object {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	var o object
	require.NoError(t, json.Unmarshal(b, &o))
	return o
}

func TestExtractFilters_NeedsAModel(t *testing.T) {
	t.Parallel()
	e := newBench(t, "*").refusal(jig.CodeMissingParam, entities.ExtractFiltersTool, object{"type": "team", "text": "x"})
	require.Equal(t, "/model", e.Field)
	require.Contains(t, e.Hint, "JIG_MODEL")
	s := modeltest.New(t)
	b := newAsking(t, s, "*")
	require.Equal(t, "/model", b.refusal(jig.CodeInvalidInput, entities.ExtractFiltersTool, object{"type": "team", "text": "x", "model": "script/x"}).Field)
	require.Equal(t, "/type", b.refusal(jig.CodeNotFound, entities.ExtractFiltersTool, object{"type": "nope", "text": "x"}).Field)
	require.Empty(t, s.Requests())
}

func TestExtractFilters_FailsWithTheModel(t *testing.T) {
	t.Parallel()
	for code, replies := range map[jig.Code][]modeltest.Reply{
		jig.CodeInvalidOutput: {asText("one moment"), asText("{not JSON}")},
		jig.CodeDenied:        {{Refusal: "no"}},
		jig.CodeRateLimited:   {modeltest.RateLimited("1")},
	} {
		b := newAsking(t, modeltest.New(t, replies...), "*")
		b.refused(code, entities.ExtractFiltersTool, object{"type": "team", "text": "x"})
	}
	cut := newAsking(t, modeltest.New(t, modeltest.Reply{Text: `{"where":`, CutOff: true}), "*")
	require.Equal(t, "cut_off", cut.refusal(jig.CodeInvalidOutput, entities.ExtractFiltersTool, object{"type": "team", "text": "x"}).Reason)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}
