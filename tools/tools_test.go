package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

type greetIn struct {
	Name  string   `json:"name" jsonschema:"who to greet" minLength:"1" pattern:"^[A-Z]"`
	Times int      `json:"times,omitempty" minimum:"1" maximum:"3" default:"2"`
	Tone  string   `json:"tone,omitempty" enum:"warm,cool" default:"warm"`
	Tags  []string `json:"tags,omitempty" enum:"a,b" maxItems:"2"`
	Inner *inner   `json:"inner,omitempty"`
}

type inner struct {
	Raw json.RawMessage `json:"raw,omitempty"`
	IDs []int           `json:"ids"`
}

type greetOut struct {
	Text  string           `json:"text"`
	Tags  []string         `json:"tags"`
	Inner *inner           `json:"inner,omitempty"`
	Map   map[string][]int `json:"map"`
	At    *time.Time       `json:"at,omitempty"`
	Cost  json.Number      `json:"cost,omitempty"`
}

func (o greetOut) Summary() string   { return "greeted " + o.Text }
func (o *greetOut) Markdown() string { return "**" + o.Text + "**" }

var spec = jig.Tool{Name: "test.greet", Description: "Greets."}

func greet(_ context.Context, _ jig.Invocation, in greetIn) (greetOut, error) {
	return greetOut{Text: strings.Repeat(in.Name, in.Times) + in.Tone, Inner: &inner{}, Map: map[string][]int{"x": nil}}, nil
}

func registry(tb testing.TB, list ...tools.Tool) *tools.Registry {
	tb.Helper()
	r, err := tools.NewRegistry(list...)
	require.NoError(tb, err)
	return r
}

func TestNew_DerivesSchemas(t *testing.T) {
	t.Parallel()
	contract := tools.New(spec, greet).Contract()
	require.JSONEq(t, `{
		"type": "object", "additionalProperties": false, "required": ["name"],
		"properties": {
			"name": {"type": "string", "description": "who to greet", "minLength": 1, "pattern": "^[A-Z]"},
			"times": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
			"tone": {"type": "string", "enum": ["warm", "cool"], "default": "warm"},
			"tags": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["a", "b"]}},
			"inner": {"type": "object", "additionalProperties": false, "required": ["ids"], "properties": {
				"raw": true, "ids": {"type": "array", "items": {"type": "integer"}}}}
		}}`, string(contract.InputSchema))
	require.JSONEq(t, `{
		"type": "object", "additionalProperties": false, "required": ["text", "tags", "map"],
		"properties": {
			"text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
			"inner": {"type": "object", "additionalProperties": false, "required": ["ids"], "properties": {
				"raw": true, "ids": {"type": "array", "items": {"type": "integer"}}}},
			"map": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
			"at": {"type": "string"}, "cost": {"type": "number"}
		}}`, string(contract.OutputSchema))
	require.Equal(t, contract, contract.WithDefaults(), "the contract is sealed")
}

func TestRun_TypedTools(t *testing.T) {
	t.Parallel()
	r := registry(t, tools.New(spec, greet))
	got := r.Run(t.Context(), "test.greet", []byte(`{"name":"Ana","times":1.0}`), jig.Invocation{})
	require.Nil(t, got.Error)
	require.True(t, got.Success)
	require.JSONEq(t, `{"text":"Anawarm","tags":[],"inner":{"ids":[]},"map":{"x":[]}}`, string(got.Data))
	require.Equal(t, "greeted Anawarm", got.Summary)
	require.Equal(t, "**Anawarm**", got.Markdown)

	got = r.Run(t.Context(), "test.greet", []byte(`{"name":"Ana"}`), jig.Invocation{})
	require.Contains(t, string(got.Data), "AnaAnawarm", "defaults are decoded")
}

func TestRun_RefusesInput(t *testing.T) {
	t.Parallel()
	r := registry(t, tools.New(spec, greet))
	tests := map[string]struct {
		name, input string
		code        jig.Code
		field       string
	}{
		"unknown tool": {"test.gret", `{}`, jig.CodeToolNotFound, ""},
		"missing":      {"test.greet", `{}`, jig.CodeMissingParam, "/name"},
		"empty":        {"test.greet", ``, jig.CodeMissingParam, "/name"},
		"wrong":        {"test.greet", `{"name":5}`, jig.CodeInvalidInput, "/name"},
		"not JSON":     {"test.greet", `{"name":`, jig.CodeInvalidInput, "/name"},
		"twice":        {"test.greet", `{"name":"A","name":"B"}`, jig.CodeInvalidInput, "/name"},
		"large":        {"test.greet", `{"name":"A","times":9007199254740993}`, jig.CodeInvalidInput, "/times"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.Run(t.Context(), tc.name, []byte(tc.input), jig.Invocation{})
			require.False(t, got.Success)
			require.Equal(t, tc.code, got.Error.Code)
			require.Equal(t, tc.field, got.Error.Field)
			require.True(t, got.Error.NotExecuted)
			require.NotEmpty(t, got.Summary)
			require.Equal(t, got.Error, jig.AsError(r.Validate(tc.name, []byte(tc.input))))
		})
	}
	require.Equal(t, "did you mean test.greet?", r.Run(t.Context(), "test.gret", nil, jig.Invocation{}).Error.Hint)
	require.NoError(t, r.Validate("test.greet", []byte(`{"name":"Ana"}`)))
}

// object is a schema that accepts any object.
const object = `{"type":"object"}`

func raw(name string, fn tools.Handler) tools.Tool {
	return tools.Raw(jig.Tool{
		Name: name, Description: "A test.", InputSchema: json.RawMessage(object), Timeout: time.Minute,
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}, fn)
}

func TestRun_HoldsHandlersToTheirContract(t *testing.T) {
	t.Parallel()
	failing := func(err error) tools.Handler {
		return func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return jig.Failure(err) }
	}
	giving := func(r jig.ToolResult) tools.Handler {
		return func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return r }
	}
	tests := map[string]struct {
		handler tools.Handler
		code    jig.Code
		summary string
	}{
		"fine":            {giving(jig.ToolResult{Success: true, Data: json.RawMessage(`{"n":1}`)}), "", "test.raw succeeded"},
		"contradiction":   {giving(jig.ToolResult{Success: true, Error: &jig.Error{}}), jig.CodeInvalidOutput, ""},
		"silent failure":  {giving(jig.ToolResult{}), jig.CodeInternal, "test.raw failed without an error message"},
		"unknown code":    {giving(jig.ToolResult{Error: &jig.Error{Code: "ODD", Message: "x"}}), jig.CodeInternal, "x"},
		"structured":      {failing(jig.Errorf(jig.CodeNotFound, "gone")), jig.CodeNotFound, "gone"},
		"plain":           {failing(errors.New("disk\n full")), jig.CodeInternal, "disk full"},
		"its own timeout": {failing(context.DeadlineExceeded), jig.CodeTimeout, ""},
		"panic":           {func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { panic("secret") }, jig.CodeInternal, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := registry(t, raw("test.raw", tc.handler)).Run(t.Context(), "test.raw", nil, jig.Invocation{})
			require.Equal(t, tc.code == "", got.Success)
			if tc.code != "" {
				require.Equal(t, tc.code, got.Error.Code)
				require.NotEmpty(t, got.Error.Message)
				require.NotContains(t, got.Error.Message, "secret")
				require.False(t, got.Error.NotExecuted)
			}
			if tc.summary != "" {
				require.Equal(t, tc.summary, got.Summary)
			}
			require.NotEmpty(t, got.Summary)
		})
	}
}

// A tool that a document defines runs on the same path as a registered one, under the contract of the document.
func TestRunDocument_RunsEachVersion(t *testing.T) {
	t.Parallel()
	r, err := tools.NewRegistry()
	require.NoError(t, err)
	contract := raw("test.raw", nil).Contract()
	contract.Version, contract.InputSchema = "that of the document", json.RawMessage(`{"type":"object","required":["a"]}`)
	ran := 0
	tool := tools.OfDocument(contract, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
		ran++
		return jig.ToolResult{Success: true, Data: json.RawMessage(`{"n":"1"}`)}
	})
	require.Equal(t, contract, tool.Contract())
	got := r.RunDocument(t.Context(), tool, nil, jig.Invocation{})
	require.Equal(t, []any{jig.CodeMissingParam, true, 0}, []any{got.Error.Code, got.Error.NotExecuted, ran})
	got = r.RunDocument(t.Context(), tool, []byte(`{"a":1}`), jig.Invocation{})
	require.True(t, got.Success)
	require.Contains(t, got.Summary, "with a warning")
	require.Equal(t, 1, ran)

	contract.OutputSchema = json.RawMessage(`{"type":"array"}`)
	got = r.RunDocument(t.Context(), tools.OfDocument(contract, nil), []byte(`{"a":1}`), jig.Invocation{})
	require.Equal(t, []any{jig.CodeInvalidInput, "output_schema", true}, []any{got.Error.Code, got.Error.Field, got.Error.NotExecuted})
	require.ErrorContains(t, r.Register(tool), "a document defines it")
	require.Empty(t, r.Tools())
}

// misfits are successful results whose data does not fit the output schema of the tool raw.
func misfits() map[string]jig.ToolResult {
	return map[string]jig.ToolResult{
		"wrong": {Success: true, Data: json.RawMessage(`{"n":"1"}`)}, "missing": {Success: true}, "not JSON": {Success: true, Data: json.RawMessage(`{"n"`)},
	}
}

func TestOutputMismatch_FailsARead(t *testing.T) {
	t.Parallel()
	for name, result := range misfits() {
		contract := raw("test.raw", nil).Contract()
		contract.Permission = jig.PermissionRead
		read := tools.Raw(contract, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return result })
		got := registry(t, read).Run(t.Context(), "test.raw", nil, jig.Invocation{})
		require.False(t, got.Success, name)
		require.Equal(t, jig.CodeInvalidOutput, got.Error.Code, name)
		require.Empty(t, got.Warnings, name)
	}
}

func TestOutputMismatch_LeavesAWriteSuccessfulWithAWarning(t *testing.T) {
	t.Parallel()
	for _, permission := range []jig.Permission{jig.PermissionWrite, jig.PermissionDestructive, jig.PermissionDraft, ""} {
		for name, result := range misfits() {
			contract := raw("test.raw", nil).Contract()
			contract.Permission = permission
			write := tools.Raw(contract, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return result })
			got := registry(t, write).Run(t.Context(), "test.raw", nil, jig.Invocation{})
			require.True(t, got.Success, "%s %s", permission, name)
			require.Nil(t, got.Error)
			require.Len(t, got.Warnings, 1)
			require.Contains(t, got.Warnings[0], "its output schema does not allow")
			require.Contains(t, got.Summary, "with a warning")
			_, err := json.Marshal(got)
			require.NoError(t, err, "the result can be stored, whatever the tool returned")
		}
	}
}

func TestInvalidJSONOutput_LeavesAWriteSuccessful(t *testing.T) {
	t.Parallel()
	type out struct {
		Number float64 `json:"number"`
	}
	infinite := func(context.Context, jig.Invocation, struct{}) (out, error) { return out{math.Inf(1)}, nil }
	got := registry(t, tools.New(spec, infinite)).Run(t.Context(), "test.greet", nil, jig.Invocation{})
	require.True(t, got.Success)
	require.Contains(t, got.Warnings[0], "cannot be written as JSON")
	read := spec
	read.Permission = jig.PermissionRead
	got = registry(t, tools.New(read, infinite)).Run(t.Context(), "test.greet", nil, jig.Invocation{})
	require.Equal(t, jig.CodeInvalidOutput, got.Error.Code)
	require.Contains(t, got.Error.Message, "cannot be written as JSON")
}

func TestRun_TypedErrors(t *testing.T) {
	t.Parallel()
	give := func(err error) tools.Tool {
		return tools.New(spec, func(context.Context, jig.Invocation, struct{}) (struct{}, error) { return struct{}{}, err })
	}
	coded := &jig.Error{Code: jig.CodeConflict, Message: "taken", Reason: "lock", NotExecuted: true}
	require.Equal(t, coded, registry(t, give(coded)).Run(t.Context(), "test.greet", nil, jig.Invocation{}).Error)
	require.Equal(t, jig.CodeInternal, registry(t, give(errors.New("x"))).Run(t.Context(), "test.greet", nil, jig.Invocation{}).Error.Code)
	var none *jig.Error
	require.True(t, registry(t, give(none)).Run(t.Context(), "test.greet", nil, jig.Invocation{}).Success)
}

func TestRun_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRunEndsWithItsContext)
}

// Time advances only while everything waits, so that no timeout expires before its tool has begun.
func testRunEndsWithItsContext(t *testing.T) {
	t.Helper()
	wait := func(ctx context.Context, _ jig.Invocation, _ json.RawMessage) jig.ToolResult {
		<-ctx.Done()
		return jig.Failure(ctx.Err())
	}
	slow := tools.Raw(jig.Tool{
		Name: "test.slow", Description: "Waits.", InputSchema: json.RawMessage(object), OutputSchema: json.RawMessage(object),
		Timeout: time.Millisecond,
	}, wait)
	r := registry(t, slow, raw("test.raw", wait), raw("test.late", func(ctx context.Context, _ jig.Invocation, _ json.RawMessage) jig.ToolResult {
		<-ctx.Done()
		return jig.ToolResult{Success: true, Data: json.RawMessage(`{"n":1}`)}
	}))
	got := r.Run(t.Context(), "test.slow", nil, jig.Invocation{})
	require.Equal(t, jig.CodeTimeout, got.Error.Code)
	require.False(t, got.Error.NotExecuted)

	started := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	close(started)
	got = r.Run(ctx, "test.raw", nil, jig.Invocation{})
	require.Equal(t, jig.CodeCanceled, got.Error.Code)

	got = r.Run(ctx, "test.raw", nil, jig.Invocation{})
	require.Equal(t, jig.CodeCanceled, got.Error.Code)
	require.True(t, got.Error.NotExecuted, "the context had already ended")

	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.True(t, r.Run(ctx, "test.late", nil, jig.Invocation{}).Success, "a tool that finished late still succeeded")
}

func TestRun_LogsPanicsWithTheirStack(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := registry(t, raw("test.raw", func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { panic("boom") }))
	r.Run(t.Context(), "test.raw", nil, jig.Invocation{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.Contains(t, log.String(), "boom")
	require.Contains(t, log.String(), "tools_test.go")
}

func TestRun_CutsSummaries(t *testing.T) {
	t.Parallel()
	r := registry(t, raw("test.raw", func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
		return jig.ToolResult{Success: true, Data: json.RawMessage(`{"n":1}`), Summary: "\xff\n" + strings.Repeat("é", 300), Markdown: "a\xff"}
	}))
	got := r.Run(t.Context(), "test.raw", nil, jig.Invocation{})
	require.LessOrEqual(t, len(got.Summary), tools.MaxSummaryBytes)
	require.Greater(t, len(got.Summary), tools.MaxSummaryBytes-4)
	require.True(t, strings.HasSuffix(got.Summary, "é…"))
	require.NotContains(t, got.Summary, "\n")
	require.Equal(t, "a\uFFFD", got.Markdown)
}

func TestRegister_Refuses(t *testing.T) {
	t.Parallel()
	ok := raw("test.ok", func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return jig.ToolResult{} }).Contract()
	change := func(f func(*jig.Tool)) tools.Tool {
		c := ok
		f(&c)
		return tools.Raw(c, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return jig.ToolResult{} })
	}
	tests := map[string]struct {
		tool  tools.Tool
		field string
	}{
		"name":             {change(func(c *jig.Tool) { c.Name = "Test" }), "name"},
		"description":      {change(func(c *jig.Tool) { c.Description = " " }), "description"},
		"permission":       {change(func(c *jig.Tool) { c.Permission = "all" }), "permission"},
		"risk":             {change(func(c *jig.Tool) { c.Risk = "none" }), "risk"},
		"approval":         {change(func(c *jig.Tool) { c.Approval = "never" }), "approval"},
		"execution":        {change(func(c *jig.Tool) { c.Execution = "cloud" }), "execution"},
		"local write":      {change(func(c *jig.Tool) { c.Execution = jig.ExecutionLocal }), "execution"},
		"no output schema": {change(func(c *jig.Tool) { c.OutputSchema = nil }), "output_schema"},
		"no input schema":  {change(func(c *jig.Tool) { c.InputSchema = nil }), "input_schema"},
		"not an object":    {change(func(c *jig.Tool) { c.InputSchema = json.RawMessage(`{"type":"array"}`) }), "input_schema"},
		"no type":          {change(func(c *jig.Tool) { c.OutputSchema = json.RawMessage(`{}`) }), "output_schema"},
		"bad schema":       {change(func(c *jig.Tool) { c.InputSchema = json.RawMessage(`{"type":"objekt"}`) }), "input_schema/type"},
		"remote schema":    {change(func(c *jig.Tool) { c.InputSchema = json.RawMessage(`{"type":"object","$ref":"http://x/y"}`) }), "input_schema"},
		"schema text":      {change(func(c *jig.Tool) { c.InputSchema = json.RawMessage(`{`) }), "input_schema"},
		"labels":           {change(func(c *jig.Tool) { c.Labels = &jig.Labels{Reads: []string{"secret"}} }), "labels.reads"},
		"destination":      {change(func(c *jig.Tool) { c.InputSchema = json.RawMessage(`{"type":"object","x-destination":"yes"}`) }), "input_schema/x-destination"},
		"no handler":       {tools.Raw(ok, nil), "implementation"},
		"timeout":          {change(func(c *jig.Tool) { c.Timeout = -1 }), "timeout"},
		"attempts":         {change(func(c *jig.Tool) { c.MaxAttempts = -1 }), "max_attempts"},
		"retry for":        {change(func(c *jig.Tool) { c.RetryFor = -1 }), "retry_for"},
		"sections":         {change(func(c *jig.Tool) { c.OutputSections = json.RawMessage(`{`) }), "output_sections"},
		"list of inputs": {tools.New(spec, func(context.Context, jig.Invocation, []int) (struct{}, error) {
			return struct{}{}, nil
		}), ""},
		"bad tag": {tools.New(spec, func(context.Context, jig.Invocation, struct {
			N int `minimum:"low"`
		},
		) (struct{}, error) {
			return struct{}{}, nil
		}), ""},
		"bad default": {tools.New(spec, func(context.Context, jig.Invocation, struct {
			N int `default:"1.5"`
		},
		) (struct{}, error) {
			return struct{}{}, nil
		}), ""},
		"pointer out": {tools.New(spec, func(context.Context, jig.Invocation, struct{}) (struct {
			N *int `json:"n"`
		}, error,
		) {
			panic("not called")
		}), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tools.NewRegistry(tc.tool)
			require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
			require.Equal(t, tc.field, jig.AsError(err).Field, err)
		})
	}
	r := registry(t, change(func(*jig.Tool) {}))
	require.ErrorIs(t, r.Register(change(func(c *jig.Tool) { c.Name = "test.new" }), change(func(*jig.Tool) {})), &jig.Error{Code: jig.CodeConflict})
	require.Len(t, r.Tools(), 1, "all or none")
}

func TestRegistry_ListsItsTools(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return jig.ToolResult{} }
	r := registry(t, raw("file.write", nothing), raw("deps.list", nothing), raw("file.read", nothing), raw("filex.read", nothing))
	var names []string
	for _, c := range r.Tools() {
		names = append(names, c.Name)
	}
	require.Equal(t, []string{"deps.list", "file.read", "file.write", "filex.read"}, names)
	_, ok := r.Tool("nothing.here")
	require.False(t, ok)
	c, ok := r.Tool("deps.list")
	require.True(t, ok)
	require.NotEmpty(t, c.Version)
}

func TestNew_AdjustsSchemas(t *testing.T) {
	t.Parallel()
	tool := tools.New(spec, greet,
		tools.AdjustInput(func(s *jsonschema.Schema) { s.Properties["name"].Title = "Name" }),
		tools.AdjustOutput(func(s *jsonschema.Schema) { s.Title = "Greeting" }))
	require.Contains(t, string(tool.Contract().InputSchema), `"title":"Name"`)
	require.Contains(t, string(tool.Contract().OutputSchema), `"title":"Greeting"`)
}

func FuzzRunInput(f *testing.F) {
	r := registry(f, tools.New(spec, greet))
	f.Add([]byte(`{"name":"Ana","inner":{"raw":[1],"ids":[1]}}`))
	f.Add([]byte(`{"name":"A","times":1e0}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		got := r.Run(t.Context(), "test.greet", input, jig.Invocation{})
		require.Equal(t, r.Validate("test.greet", input) == nil, got.Success)
	})
}

// The schema accepts numbers that do not fit into a Go integer.
func TestRun_NamesTheValueThatIsTooLarge(t *testing.T) {
	t.Parallel()
	type counted struct {
		N int64 `json:"n"`
	}
	ran := false
	r := registry(t, tools.New(jig.Tool{Name: "test.count", Description: "Counts to a number that is given.", Permission: jig.PermissionRead},
		func(context.Context, jig.Invocation, counted) (counted, error) {
			ran = true
			return counted{}, nil
		}))
	got := r.Run(t.Context(), "test.count", []byte(`{"n":1e20}`), jig.Invocation{})
	require.False(t, ran)
	require.Equal(t, jig.CodeInvalidInput, got.Error.Code)
	require.Equal(t, "/n", got.Error.Field)
	require.True(t, got.Error.NotExecuted)
	require.Contains(t, got.Error.Message, "/n does not take number 1e20")
	require.NotEmpty(t, got.Error.Hint)
}
