package starter

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
)

// askingEngine is an engine with one waiting question.
func askingEngine(q jig.Question) *fake {
	return &fake{pending: []jig.Pending{
		{SessionID: "ses_1", Call: "2.1", Kind: jig.PendingApproval, Tool: "file.write", Digest: "d1"},
		{SessionID: "ses_1", Call: "3.1", Kind: jig.PendingQuestion, Tool: "person.ask", Digest: "d2", Question: &q},
	}}
}

func values(list ...string) []json.RawMessage {
	raw := make([]json.RawMessage, len(list))
	for i, v := range list {
		raw[i] = json.RawMessage(v)
	}
	return raw
}

func schemaOf(text string) jig.Question {
	return jig.Question{Text: "?", Schema: json.RawMessage(text)}
}

func TestAnswer_IsParsedForTheQuestion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		question    jig.Question
		given, want string
	}{
		"text":                    {jig.Question{}, "in Berlin", `"in Berlin"`},
		"a number as text":        {jig.Question{}, "42", `"42"`},
		"quotes are text":         {jig.Question{}, `"a"`, `"\"a\""`},
		"an object as text":       {jig.Question{}, `{"a":1}`, `"{\"a\":1}"`},
		"number":                  {schemaOf(`{"type":"number"}`), " 4.5 ", `4.5`},
		"integer":                 {schemaOf(`{"type":"integer"}`), "4", `4`},
		"no integer":              {schemaOf(`{"type":"integer"}`), "4.5", `"4.5"`},
		"boolean":                 {schemaOf(`{"type":"boolean"}`), "true", `true`},
		"object":                  {schemaOf(`{"type":"object"}`), `{"days":3}`, `{"days":3}`},
		"array":                   {schemaOf(`{"type":"array"}`), `[1]`, `[1]`},
		"null":                    {schemaOf(`{"type":["null","string"]}`), `null`, `null`},
		"string":                  {schemaOf(`{"type":"string"}`), "42", `"42"`},
		"JSON string":             {schemaOf(`{"type":"string"}`), `"42"`, `"42"`},
		"one of types":            {schemaOf(`{"type":["string","integer"]}`), "42", `42`},
		"enum":                    {schemaOf(`{"enum":["1",2]}`), "2", `2`},
		"enum of texts":           {schemaOf(`{"enum":["1",2]}`), "1", `"1"`},
		"const":                   {schemaOf(`{"const":7}`), "7", `7`},
		"anything":                {schemaOf(`{"minimum":3}`), "7", `7`},
		"true":                    {schemaOf(`true`), "7", `7`},
		"no JSON":                 {schemaOf(`{"type":"object"}`), "{days", `"{days"`},
		"option":                  {jig.Question{Options: values(`"red"`, `7`)}, "red", `"red"`},
		"option as JSON":          {jig.Question{Options: values(`"red"`, `7`)}, `"red"`, `"red"`},
		"number among options":    {jig.Question{Options: values(`"red"`, `7`)}, "7", `7`},
		"text among options":      {jig.Question{Options: values(`"7"`)}, "7", `"7"`},
		"object among options":    {jig.Question{Options: values(`{"a":1,"b":2}`)}, `{"b":2, "a":1.0}`, `{"b":2,"a":1.0}`},
		"none of the options":     {jig.Question{Options: values(`"red"`)}, "9", `"9"`},
		"options before a schema": {jig.Question{Options: values(`"9"`), Schema: json.RawMessage(`{}`)}, "9", `"9"`},
	} {
		e := askingEngine(tt.question)
		got := jigCLI(t, e, nil, "answer", "ses_1", "3.1", tt.given, "--note", "n")
		require.Equal(t, 0, got.code, "%s: %s", name, got.stderr)
		require.Equal(t, "3.1", e.replied.Call, name)
		require.Equal(t, "ana", e.replied.By, name)
		require.Equal(t, "n", e.replied.Note, name)
		sent, err := jsontext.Encode(e.replied.Value)
		require.NoError(t, err, name)
		require.Equal(t, tt.want, string(sent), name)
		require.Equal(t, "answered 3.1\n", got.stdout, name)
	}
}

func TestAnswer_TakesExactJSON(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "answer.json")
	require.NoError(t, os.WriteFile(file, []byte(" {\"days\": 3}\n"), 0o600))
	for value, want := range map[string]string{"@" + file: `{"days": 3}`, "42": "42", `"a"`: `"a"`, "@-": "[1]"} {
		e := &fake{} // nothing is looked up
		got := jigCLI(t, e, func(a *app) { a.stdin = strings.NewReader("[1]") }, "answer", "ses_1", "3.1/ask", "--value", value)
		require.Equal(t, 0, got.code, got.stderr)
		require.Equal(t, want, string(e.replied.Value))
		require.Equal(t, "3.1/ask", e.replied.Call)
	}
}

func TestAnswer_PrintsTheDecisionAsJSON(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, askingEngine(jig.Question{}), nil, "answer", "ses_1", "3.1", "yes", "--output", "json")
	require.Equal(t, 0, got.code, got.stderr)
	require.JSONEq(t, `{"session_id":"ses_1","decisions":[{"call":"3.1","outcome":"accepted","status":"succeeded"}]}`, got.stdout)

	e := askingEngine(jig.Question{})
	e.ruled = []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionRefused, Reason: "the answer does not fit the question"}}
	got = jigCLI(t, e, nil, "answer", "ses_1", "3.1", "yes")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, "refused: the answer does not fit the question")
}

func TestAnswer_Mistakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		code int
		why  string
	}{
		"no call":        {[]string{"ses_1"}, exitUsage, "expected SESSION CALL VALUE"},
		"several words":  {[]string{"ses_1", "3.1", "in", "Berlin"}, exitUsage, "VALUE of several words"},
		"bad call":       {[]string{"ses_1", "first", "x"}, exitUsage, "not a call id"},
		"nothing":        {[]string{"ses_1", "3.1"}, exitUsage, "the answer is missing"},
		"both":           {[]string{"ses_1", "3.1", "x", "--value", "1"}, exitUsage, "not both"},
		"no JSON":        {[]string{"ses_1", "3.1", "--value", "{"}, exitUsage, "not JSON"},
		"empty JSON":     {[]string{"ses_1", "3.1", "--value", ""}, exitUsage, "not JSON"},
		"nothing waits":  {[]string{"ses_1", "9.1", "x"}, exitFailed, "no call 9.1 is waiting"},
		"not a question": {[]string{"ses_1", "2.1", "x"}, exitUsage, "is not a question"},
	} {
		e := askingEngine(jig.Question{})
		got := jigCLI(t, e, nil, append([]string{"answer"}, tt.args...)...)
		require.Equal(t, tt.code, got.code, "%s: %s", name, got.stderr)
		require.Contains(t, got.stderr, tt.why, name)
		require.Empty(t, e.replied, name)
	}
}

func TestAnswer_PromptsOnATerminal(t *testing.T) {
	t.Parallel()
	colors := jig.Question{Text: "Which color?", Options: values(`"red"`, `"dark blue"`, `7`)}
	for name, tt := range map[string]struct {
		question    jig.Question
		typed, want string
		code        int
	}{
		"by number":    {colors, "2\n", `"dark blue"`, 0},
		"by its text":  {colors, "red\n", `"red"`, 0},
		"again":        {colors, "green\n8\n3\n", `7`, 0},
		"a text":       {jig.Question{Text: "Why?"}, "because\nof\n", `"because"`, 0},
		"a last line":  {jig.Question{Text: "Why?"}, "because", `"because"`, 0},
		"a number":     {schemaOf(`{"type":"integer"}`), "12\n", `12`, 0},
		"nothing":      {colors, "\n", "", exitUsage},
		"end of input": {colors, "", "", exitUsage},
		"endless":      {jig.Question{Text: "Why?"}, strings.Repeat("a", jig.InlineBytes+2), "", exitUsage},
	} {
		e := askingEngine(tt.question)
		got := jigCLI(t, e, func(a *app) { a.interactive, a.stdin = true, strings.NewReader(tt.typed) }, "answer", "ses_1", "3.1")
		require.Equal(t, tt.code, got.code, "%s: %s", name, got.stderr)
		require.Equal(t, tt.want, string(e.replied.Value), name)
		require.Contains(t, got.stderr, tt.question.Text, name)
	}
	got := jigCLI(t, askingEngine(colors), func(a *app) { a.interactive, a.stdin = true, strings.NewReader("1\n") }, "answer", "ses_1", "3.1")
	require.Contains(t, got.stderr, "Which color?\n    1. red\n    2. dark blue\n    3. 7\n")
	got = jigCLI(t, askingEngine(colors), func(a *app) { a.interactive = true }, "answer", "ses_1", "3.1", "--output", "json")
	require.Equal(t, exitUsage, got.code, "programs are not asked")
}

// silentPerson presses Ctrl-C instead of answering.
type silentPerson struct {
	interrupt context.CancelFunc
	gone      <-chan struct{}
}

func (p silentPerson) Read([]byte) (int, error) {
	p.interrupt()
	<-p.gone
	return 0, io.ErrClosedPipe
}

func TestAnswer_PromptIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	e := askingEngine(jig.Question{Text: "Why?"})
	change := func(a *app) { a.interactive, a.stdin = true, silentPerson{interrupt: cancel, gone: t.Context().Done()} }
	got := jigCLIWith(t, ctx, e, change, "answer", "ses_1", "3.1")
	require.Equal(t, exitInterrupted, got.code, got.stderr)
	require.Empty(t, e.replied)
}

func TestFollow_AsksQuestions(t *testing.T) {
	t.Parallel()
	newEngine := func() *fake {
		e := waitingEngine()
		p := waitingCall()
		p.Kind, p.Tool, p.Question = jig.PendingQuestion, "person.ask", &jig.Question{Text: "Which?", Options: values(`"a"`, `"b"`)}
		e.view.Pending = []jig.Pending{p}
		e.pages[1].Events[0].Type = jig.EventToolAsked
		return e
	}
	e := newEngine()
	got := jigCLI(t, e, func(a *app) { a.interactive, a.stdin = true, strings.NewReader("2\n") }, "run", "review", "--follow")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, jig.Reply{Call: "3.1", Value: json.RawMessage(`"b"`), By: "ana"}, e.replied)
	require.Contains(t, got.stderr, "answered 3.1 person.ask")

	e = newEngine()
	got = jigCLI(t, e, nil, "run", "review", "--yes", "--no-wait")
	require.Equal(t, exitWaiting, got.code, "--yes answers no question")
	require.Empty(t, e.replied)
	require.Empty(t, e.decided)
	require.Contains(t, got.stderr, "jig answer ses_1 3.1 'a|b' --as ana\n")
	require.Contains(t, got.stderr, `--name answer --input '{"call":"3.1","value":"…","by":"ana"}'`)
}
