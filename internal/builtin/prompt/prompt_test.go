package prompt_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/prompt"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/model"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/tools/tooltest"
)

// skills holds skills by tenant/name.
type skills map[string]spec.Skill

func (s skills) Skill(_ context.Context, tenant, name string) (spec.Skill, error) {
	if skill, ok := s[tenant+"/"+name]; ok {
		return skill, nil
	}
	return spec.Skill{}, jig.Errorf(jig.CodeNotFound, "there is no skill %q", name).WithHint("did you mean release-notes?")
}

// answer is the data of a result.
type answer struct {
	Text   *string         `json:"text"`
	Output json.RawMessage `json:"output"`
	Model  string          `json:"model"`
	Usage  json.RawMessage `json:"usage"`
}

// kitOver runs the tools with the real clients against a server that speaks their wire formats.
func kitOver(t *testing.T, s *modeltest.Server, change ...func(*prompt.Options)) *tooltest.Kit {
	t.Helper()
	options := prompt.Options{
		Model: model.NewRouter(model.Settings{
			Anthropic: model.Provider{APIKey: "sk-ant-secret", BaseURL: s.URL},
			OpenAI:    model.Provider{APIKey: "sk-secret", BaseURL: s.OpenAIURL()},
		}),
		Skills: skills{},
	}
	for _, c := range change {
		c(&options)
	}
	return tooltest.New(t, prompt.Tools(options)...)
}

// bothProviders runs a test for a model of each provider.
func bothProviders(t *testing.T, test func(t *testing.T, name string)) {
	t.Helper()
	for _, provider := range []string{"anthropic", "openai"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			test(t, provider+"/some-model")
		})
	}
}

const titled = `{"type":"object","properties":{"title":{"type":"string"},"count":{"type":"integer"}},"required":["title"],"additionalProperties":false}`

// ask returns an input for the model with this name, with titled as the schema.
func ask(name string) map[string]any {
	return map[string]any{"model": name, "system": "You sum up.", "prompt": "Sum up the text.", "schema": json.RawMessage(titled)}
}

func TestDirect_AnswersInText(t *testing.T) {
	t.Parallel()
	bothProviders(t, func(t *testing.T, name string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Reply{Text: "A text of\nseveral pieces.", Usage: modeltest.Usage{Input: 7, Output: 9, CacheRead: 100}})
		kit := kitOver(t, s)
		var got answer
		result := kit.Succeed("prompt.direct", map[string]any{"model": name, "system": "You sum up.", "prompt": "Sum up.", "max_tokens": 77.0}, &got)
		require.Equal(t, "A text of\nseveral pieces.", *got.Text)
		require.Nil(t, got.Output)
		require.Equal(t, "some-model", got.Model)
		require.JSONEq(t, `{"input":7,"output":9,"cache_read":100}`, string(got.Usage))
		require.Equal(t, "A text of several pieces.", result.Summary)
		require.Greater(t, len(kit.Progress()), 1)
		require.Equal(t, *got.Text, strings.Join(kit.Progress(), ""))

		request := s.Requests()[0]
		require.Equal(t, "You sum up.", request.System)
		require.Equal(t, []modeltest.Turn{{Role: "user", Text: "Sum up."}}, request.Turns)
		require.Empty(t, request.Tools)
		require.Contains(t, string(request.Body), ":77")
	})
}

func TestDirect_HasDefaults(t *testing.T) {
	t.Parallel()
	s := modeltest.New(t, modeltest.Text("yes"), modeltest.Text("no"))
	kit := kitOver(t, s, func(o *prompt.Options) { o.DefaultModel = "anthropic/usual" })
	kit.Succeed("prompt.direct", map[string]any{"prompt": "Is it?"}, nil)
	kit.Succeed("prompt.direct", map[string]any{"prompt": "Is it?", "model": "openai/other"}, nil)
	require.Equal(t, "usual", s.Requests()[0].Model)
	require.Contains(t, string(s.Requests()[0].Body), `"max_tokens":4096`)
	require.Equal(t, modeltest.OpenAI, s.Requests()[1].Wire)
	require.Equal(t, "other", s.Requests()[1].Model)
}

func TestDirect_AnswersWithStructuredOutput(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"plain":          `{"title": "a", "count": 2}`,
		"fence":          "```json\n{\"title\": \"a\",\n \"count\": 2}\n```",
		"fence in prose": "Here you are:\n\n```\n{\"title\": \"a\", \"count\": 2}\n```\nAnything else?",
		"open fence":     "```json\n{\"title\": \"a\", \"count\": 2}",
		"prose":          `I read {name}, [1, as above] and [a link](x). The answer is {"title": "a", "count": 2}, as asked.`,
		"other JSON":     "Of [1, 2] and {\"x\": 1} this is what counts:\n{\"title\": \"a\", \"count\": 2}",
		"answered twice": "{\"title\": \"a\", \"count\": 2}\n\nOnce more: {\"title\":\"a\",\"count\":2}",
		"fence wins":     "Like {\"title\": \"example\"}:\n```json\n{\"title\": \"a\", \"count\": 2}\n```",
		"one-line fence": "```json {\"title\": \"a\", \"count\": 2} ```",
	}
	for what, text := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bothProviders(t, func(t *testing.T, name string) {
				t.Helper()
				s := modeltest.New(t, modeltest.Text(text))
				var got answer
				result := kitOver(t, s).Succeed("prompt.direct", ask(name), &got)
				require.JSONEq(t, `{"title":"a","count":2}`, string(got.Output))
				require.JSONEq(t, `{"title":"a","count":2}`, result.Summary)
				require.Nil(t, got.Text)
				require.JSONEq(t, `{"input":10,"output":5}`, string(got.Usage))
				require.True(t, strings.HasPrefix(s.Requests()[0].System, "You sum up.\n\nAnswer with one JSON value"))
				require.True(t, strings.HasSuffix(s.Requests()[0].System, "\n\n"+titled))
			})
		})
	}
}

func TestDirect_AnswersWithOutputOfAnyType(t *testing.T) {
	t.Parallel()
	for schema, text := range map[string]string{
		`{"type":"string"}`:                            `"word"`,
		`{"type":"number"}`:                            "```\n42\n```",
		`{"type":"null"}`:                              `null`,
		`{"type":"array","items":{"type":"integer"}}`:  `They are [1, 2, 3].`,
		`{"type":["object","null"],"maxProperties":0}`: "\ufeff{}",
	} {
		s := modeltest.New(t, modeltest.Text(text))
		var got answer
		kitOver(t, s).Succeed("prompt.direct", map[string]any{"model": "openai/m", "prompt": "?", "schema": json.RawMessage(schema)}, &got)
		require.NotEmpty(t, got.Output, text)
	}
}

func TestRepair_AsksOnceMore(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ text, want string }{
		"misfit":         {`{"titel": "a", "count": "two"}`, "/count must be"},
		"missing":        {`{"count": 2}`, "/title is required and missing"},
		"not JSON":       {"The title is a.", "the answer contains no JSON value"},
		"broken":         {`Here: {"title": "a", "count": 2,}`, "- "},
		"broken outside": {`{"all": {"title": "inner"}, oops}`, "- "},
		"broken list":    {`[{"title": "inner"},]`, "- "},
		"quoted wrongly": {`{'all': {"title": "inner"}}`, "- "},
		"same key twice": {`{"title": "a", "title": "b"}`, "title"},
		"ambiguous":      {`Either {"title": "a"} or {"title": "b"}.`, "several JSON values that fit"},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bothProviders(t, func(t *testing.T, name string) {
				t.Helper()
				s := modeltest.New(t, modeltest.Text(c.text), modeltest.Text(`{"title":"good"}`))
				kit := kitOver(t, s)
				var got answer
				kit.Succeed("prompt.direct", ask(name), &got)
				require.JSONEq(t, `{"title":"good"}`, string(got.Output))
				require.JSONEq(t, `{"input":20,"output":10}`, string(got.Usage))
				require.Contains(t, strings.Join(kit.Progress(), ""), "asking once more")

				second := s.Requests()[1]
				require.Equal(t, s.Requests()[0].System, second.System)
				require.Contains(t, second.Last().Text, "does not fit the JSON Schema")
				require.Contains(t, second.Last().Text, c.want)
				if c.text != "" {
					require.Equal(t, modeltest.Turn{Role: "assistant", Text: c.text}, second.Turns[1])
				}
			})
		})
	}
}

// Calls of tools that were never offered are not sent back to the provider, which would refuse them.
func TestRepair_AfterCalls(t *testing.T) {
	t.Parallel()
	bothProviders(t, func(t *testing.T, name string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Reply{Thinking: "hm", Text: "Looking.", Calls: []modeltest.Call{{Name: "look", Args: "{}"}}}, modeltest.Text(`{"title":"good"}`))
		kitOver(t, s).Succeed("prompt.direct", ask(name), nil)
		require.Equal(t, modeltest.Turn{Role: "assistant", Text: "Looking."}, s.Requests()[1].Turns[1])
	})
}

// Signed reasoning is sent back with the answer that needs repair.
func TestRepair_AfterReasoning(t *testing.T) {
	t.Parallel()
	s := modeltest.New(t, modeltest.Reply{Thinking: "hm", Text: "{}"}, modeltest.Text(`{"title":"good"}`))
	kitOver(t, s).Succeed("prompt.direct", ask("anthropic/m"), nil)
	require.Contains(t, string(s.Requests()[1].Body), "signed:hm")
}

func TestRepair_FailsTwice(t *testing.T) {
	t.Parallel()
	bothProviders(t, func(t *testing.T, name string) {
		t.Helper()
		long := `{"titel": "` + strings.Repeat("ü", 10_000) + `"}`
		kit := kitOver(t, modeltest.New(t, modeltest.Text(`{}`), modeltest.Text(long)))
		result := kit.Run(t.Context(), "prompt.direct", ask(name))
		require.False(t, result.Success)
		require.Equal(t, jig.CodeInvalidOutput, result.Error.Code)
		require.Equal(t, "schema_mismatch", result.Error.Reason)
		require.NotEmpty(t, result.Error.Hint)
		require.Contains(t, result.Error.Violations, jig.Violation{Pointer: "/title", Message: "is required and missing", Template: "is required and missing"})
		require.Len(t, result.Error.Violations, 2)
		var got answer
		require.NoError(t, json.Unmarshal(result.Data, &got))
		require.True(t, strings.HasPrefix(*got.Text, `{"titel": "üü`))
		require.True(t, strings.HasSuffix(*got.Text, "ü…"))
		require.LessOrEqual(t, len(*got.Text), 8<<10)
		require.JSONEq(t, `{"input":20,"output":10}`, string(got.Usage))
	})
}

func TestDirect_ReportsRefusalsAndCutOffAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		replies []modeltest.Reply
		code    jig.Code
		reason  string
		text    string
	}{
		"refusal":               {[]modeltest.Reply{{Refusal: "I would rather not."}}, jig.CodeDenied, "refusal", "I would rather not."},
		"cut off":               {[]modeltest.Reply{{Text: "It is", CutOff: true}}, jig.CodeInvalidOutput, "cut_off", "It is"},
		"refusal of the repair": {[]modeltest.Reply{{Text: "{}"}, {Refusal: "No."}}, jig.CodeDenied, "refusal", "No."},
		"repair cut off":        {[]modeltest.Reply{{Text: "{}"}, {Text: `{"title"`, CutOff: true}}, jig.CodeInvalidOutput, "cut_off", `{"title"`},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bothProviders(t, func(t *testing.T, name string) {
				t.Helper()
				s := modeltest.New(t, c.replies...)
				input := ask(name)
				if len(c.replies) == 1 {
					delete(input, "schema")
				}
				result := kitOver(t, s).Run(t.Context(), "prompt.direct", input)
				require.False(t, result.Success)
				require.Equal(t, c.code, result.Error.Code)
				require.Equal(t, c.reason, result.Error.Reason)
				require.NotEmpty(t, result.Error.Hint)
				require.Len(t, s.Requests(), len(c.replies))
				var got answer
				require.NoError(t, json.Unmarshal(result.Data, &got))
				require.Equal(t, c.text, *got.Text)
				require.NotEmpty(t, got.Usage)
			})
		})
	}
}

func TestDirect_ReportsFailuresOfTheProvider(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reply modeltest.Reply
		code  jig.Code
		after time.Duration
	}{
		"rate":      {modeltest.RateLimited("7"), jig.CodeRateLimited, 7 * time.Second},
		"away":      {modeltest.Fail(http.StatusServiceUnavailable, "busy"), jig.CodeUnavailable, 0},
		"key":       {modeltest.Fail(http.StatusUnauthorized, "bad key"), jig.CodeNotPermitted, 0},
		"bad":       {modeltest.Fail(http.StatusBadRequest, "too long"), jig.CodeInvalidInput, 0},
		"broke off": {modeltest.Reply{Text: "half of an answer", Break: true}, jig.CodeUnavailable, 0},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bothProviders(t, func(t *testing.T, name string) {
				t.Helper()
				result := kitOver(t, modeltest.New(t, c.reply)).Run(t.Context(), "prompt.direct", ask(name))
				require.Equal(t, c.code, result.Error.Code, result.Error)
				require.Equal(t, c.after, result.Error.RetryAfter)
				require.Empty(t, result.Data)

				// The cost of the first answer is reported even if the repair fails.
				result = kitOver(t, modeltest.New(t, modeltest.Text("{}"), c.reply)).Run(t.Context(), "prompt.direct", ask(name))
				require.Equal(t, c.code, result.Error.Code)
				require.Equal(t, c.after, result.Error.RetryAfter)
				require.JSONEq(t, `{"text":"{}","model":"some-model","usage":{"input":10,"output":5}}`, string(result.Data))
			})
		})
	}
}

func TestDirect_CanBeCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := modeltest.Func(t, func(modeltest.Request) modeltest.Reply {
		cancel()
		return modeltest.Reply{Text: "half of it", Stall: true}
	})
	result := kitOver(t, s).Run(ctx, "prompt.direct", ask("anthropic/m"))
	require.Equal(t, jig.CodeCanceled, result.Error.Code, result.Error)
}

func TestInvalidInput_IsNotSentToTheModel(t *testing.T) {
	t.Parallel()
	with := func(more map[string]any) map[string]any {
		input := map[string]any{"prompt": "?", "model": "openai/m"}
		for k, v := range more {
			input[k] = v
		}
		return input
	}
	cases := map[string]struct {
		input map[string]any
		code  jig.Code
		field string
		hint  string
	}{
		"no model":          {map[string]any{"prompt": "?"}, jig.CodeMissingParam, "/model", "JIG_MODEL"},
		"script":            {with(map[string]any{"model": "script/x"}), jig.CodeInvalidInput, "/model", "agent.run"},
		"unknown provider":  {with(map[string]any{"model": "antropic/x"}), jig.CodeInvalidInput, "model", "anthropic/"},
		"no prompt":         {map[string]any{"model": "openai/m"}, jig.CodeMissingParam, "/prompt", ""},
		"blank prompt":      {with(map[string]any{"prompt": " \n"}), jig.CodeInvalidInput, "/prompt", ""},
		"schema a text":     {with(map[string]any{"schema": "object"}), jig.CodeInvalidInput, "/schema", ""},
		"schema invalid":    {with(map[string]any{"schema": map[string]any{"properties": map[string]any{"a": map[string]any{"type": "strin"}}}}), jig.CodeInvalidInput, "/schema/properties/a/type", "JSON Schema"},
		"schema of a file":  {with(map[string]any{"schema": map[string]any{"$ref": "file:///etc/passwd"}}), jig.CodeInvalidInput, "/schema", "$defs"},
		"max_tokens 0":      {with(map[string]any{"max_tokens": 0}), jig.CodeInvalidInput, "/max_tokens", ""},
		"skill of a direct": {with(map[string]any{"skill": "x"}), jig.CodeInvalidInput, "/skill", ""},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := modeltest.New(t)
			e := kitOver(t, s).Fail("prompt.direct", c.input)
			require.Equal(t, c.code, e.Code, e)
			require.Equal(t, c.field, e.Field)
			require.Contains(t, e.Hint, c.hint)
			require.Empty(t, s.Requests())
			if what != "unknown provider" { // this one is the provider's own error
				require.True(t, e.NotExecuted)
			}
		})
	}
}

func TestDirect_SchemaViolationsPointIntoTheInput(t *testing.T) {
	t.Parallel()
	bad := json.RawMessage(`{"prompt":"?","model":"openai/m","schema":{"type":"objekt","minimum":"one"}}`)
	e := kitOver(t, modeltest.New(t)).Fail("prompt.direct", bad)
	require.NotEmpty(t, e.Violations)
	for _, v := range e.Violations {
		require.True(t, strings.HasPrefix(v.Pointer, "/schema/"), v.Pointer)
	}
}

// An answer without a text, be it empty or calls of tools that were not offered, never counts as an answer. A retry
// of the call asks again.
func TestAnswersWithoutText_Fail(t *testing.T) {
	t.Parallel()
	bothProviders(t, func(t *testing.T, name string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Text(""), modeltest.Calls(modeltest.Call{Name: "test__echo", Args: "{}"}))
		registry, err := tools.NewRegistry(prompt.Tools(prompt.Options{Skills: skills{}, Model: model.NewRouter(model.Settings{
			Anthropic: model.Provider{BaseURL: s.URL}, OpenAI: model.Provider{BaseURL: s.OpenAIURL()},
		})})...)
		require.NoError(t, err)
		for range 2 {
			inv := jig.Invocation{Progress: func(string) {}}
			result := registry.Run(t.Context(), "prompt.direct", []byte(`{"model":"`+name+`","prompt":"Sum up."}`), inv)
			require.False(t, result.Success)
			require.Equal(t, jig.CodeUnavailable, result.Error.Code)
			require.Equal(t, jig.ReasonNoAnswer, result.Error.Reason)
		}
	})
}
