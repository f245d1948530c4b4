package spec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

const fullAgent = `---
kind: agent
name: reviewer
description: Reviews things.
model: script/reviewer
tools: [file.read, "deps.*"]
agents: [helper, editor.de]
models: [openai/small]
input_schema:
  type: object
  properties: {path: {type: string, default: go.mod}, big: {type: integer, maximum: 9007199254740993}}
script:
  rules:
    - when: pass == 1
      let: [{name: files, value: "[1, 2]"}]
      say: Looking.
      for_each: vars.files
      calls:
        - tool: file.read
          input: {path: "${item}", limit: 10, deep: [true, null, 1.5]}
    - when: pass == 2
      calls: [{tool: deps.list}, {tool: file.read, for_each: last, input: {path: "${item.summary}"}}]
    - when: true
      answer: "done: <${last.size()}>"
max_passes: 7
max_parallel_calls: 3
passes_per_run: 2
token_budget: 5000
max_tokens: 100
max_total_tokens: 100000
deadline: 48h
approval_expires: 1d12h
---

# You review

Look at everything.
`

func TestParseAgent_ReadsEveryKey(t *testing.T) {
	t.Parallel()
	agent, err := spec.ParseAgent("reviewer.md", []byte(fullAgent))
	require.NoError(t, err)
	require.Equal(t, "reviewer", agent.Name)
	require.Len(t, agent.Version, 64)
	require.Equal(t, "# You review\n\nLook at everything.", agent.Instructions)
	require.Equal(t, []string{"file.read", "deps.*"}, agent.Tools)
	require.Equal(t, []string{"helper", "editor.de"}, agent.Agents)
	require.Equal(t, []string{"openai/small"}, agent.Models)
	require.Equal(t, jig.Limits{
		MaxPasses: 7, MaxParallelCalls: 3, PassesPerRun: 2, TokenBudget: 5000, MaxTokens: 100, MaxTotalTokens: 100000,
		Deadline: 48 * time.Hour, ApprovalExpires: 36 * time.Hour,
	}, agent.Limits)
	require.Contains(t, string(agent.InputSchema), `"maximum":9007199254740993`, "numbers keep their digits")
	require.JSONEq(t, `{"rules": [
		{"when": "pass == 1", "let": [{"name": "files", "value": "[1, 2]"}], "say": "Looking.", "for_each": "vars.files",
		 "calls": [{"tool": "file.read", "input": {"path": "${item}", "limit": 10, "deep": [true, null, 1.5]}}]},
		{"when": "pass == 2", "calls": [{"tool": "deps.list"}, {"tool": "file.read", "for_each": "last", "input": {"path": "${item.summary}"}}]},
		{"when": "true", "answer": "done: <${last.size()}>"}
	]}`, string(agent.Script))
}

func TestParseAgent_VersionIsTheHash(t *testing.T) {
	t.Parallel()
	first, err := spec.ParseAgent("a.md", []byte(fullAgent))
	require.NoError(t, err)
	same, err := spec.ParseAgent("b.md", []byte(fullAgent))
	require.NoError(t, err)
	other, err := spec.ParseAgent("a.md", []byte(fullAgent+"."))
	require.NoError(t, err)
	require.Equal(t, first.Version, same.Version)
	require.NotEqual(t, first.Version, other.Version)
}

func TestParseAgent_ReadsEveryForm(t *testing.T) {
	t.Parallel()
	minimal := "---\nname: a\nmodel: openai/x\n---\nDo it."
	for name, body := range map[string]string{
		"minimal":        minimal,
		"byte order":     "\xef\xbb\xbf" + minimal,
		"windows lines":  strings.ReplaceAll(minimal, "\n", "\r\n"),
		"json":           "---\n{\"name\": \"a\", \"model\": \"openai/x\"}\n---\nDo it.",
		"alias":          "---\nname: &n a\nmodel: openai/x\ndescription: *n\n---\nDo it.",
		"rule in body":   minimal + "\n---\nmore",
		"spaces at rule": "--- \nname: a\nmodel: openai/x\n---\t\nDo it.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, err := spec.ParseAgent("a.md", []byte(body))
			require.NoError(t, err)
			require.Equal(t, "a", agent.Name)
			require.True(t, strings.HasPrefix(agent.Instructions, "Do it."), agent.Instructions)
		})
	}
}

// head makes a document with this front matter. It adds a name and a model unless the front matter has its own.
func head(lines string) string {
	if !strings.Contains(lines, "name:") || strings.Contains(lines, "- name:") || strings.Contains(lines, "{name:") {
		lines = "name: a\n" + lines
	}
	if !strings.Contains(lines, "model:") {
		lines = "model: openai/x\n" + lines
	}
	return "---\n" + lines + "\n---\nDo it.\n"
}

func TestParseAgent_ReportsProblems(t *testing.T) {
	t.Parallel()
	type want struct {
		code spec.ProblemCode
		path string
		line int
		text string // part of the message or the hint
	}
	for name, c := range map[string]struct {
		body string
		want []want
	}{
		"no front matter": {"# Hello", []want{{spec.ProblemSyntax, "", 1, "no front matter"}}},
		"empty file":      {"", []want{{spec.ProblemSyntax, "", 1, "no front matter"}}},
		"not closed":      {"---\nname: a\n", []want{{spec.ProblemSyntax, "", 1, "not closed"}}},
		"empty matter":    {"---\n---\nx", []want{{spec.ProblemWrongType, "", 0, "a mapping"}}},
		"a list":          {"---\n- a\n---\nx", []want{{spec.ProblemWrongType, "", 2, "a mapping, not a list"}}},
		"broken yaml":     {"---\nname: [a\nmodel: x\n---\n", []want{{spec.ProblemSyntax, "", 0, "not YAML"}}},
		"tab":             {"---\nname: a\n\tmodel: x\n---\n", []want{{spec.ProblemSyntax, "", 3, "not YAML"}}},
		"not utf-8":       {"---\nname: \xff\n---\n", []want{{spec.ProblemSyntax, "", 0, "UTF-8"}}},
		"too large":       {"---\n" + strings.Repeat("#", spec.MaxDocumentBytes), []want{{spec.ProblemTooLarge, "", 0, "262144"}}},
		"missing keys": {"---\ntools: []\n---\nx", []want{
			{spec.ProblemMissingKey, "name", 2, "name"}, {spec.ProblemMissingKey, "model", 2, "model"},
		}},
		"several at once": {"---\nnam: a\nmodel: gpt\ntools: file.read\nmax_passes: many\n---\nx", []want{
			{spec.ProblemUnknownKey, "nam", 2, `did you mean "name"?`},
			{spec.ProblemMissingKey, "name", 2, "missing"},
			{spec.ProblemBadValue, "model", 3, "provider/model"},
			{spec.ProblemWrongType, "tools", 4, "write [file.read]"},
			{spec.ProblemWrongType, "max_passes", 5, "a whole number, not text"},
		}},
		"duplicate key":           {head("name: a\nname: b"), []want{{spec.ProblemDuplicateKey, "name", 4, "line 3"}}},
		"merge key":               {head("input_schema: {type: object, <<: {a: b}}"), []want{{spec.ProblemSyntax, "input_schema", 4, "merge keys"}}},
		"own tag":                 {head("description: !env HOME"), []want{{spec.ProblemSyntax, "description", 4, "tag"}}},
		"name a number":           {head("name: 7"), []want{{spec.ProblemWrongType, "name", 3, `quote it: "7"`}}},
		"bad name":                {head("name: My Agent"), []want{{spec.ProblemBadName, "name", 3, "lower-case"}}},
		"long name":               {head("name: " + strings.Repeat("a", 200)), []want{{spec.ProblemOutOfRange, "name", 3, "at most 128"}}},
		"no value":                {head("description:"), []want{{spec.ProblemWrongType, "description", 4, "remove the key"}}},
		"reserved name":           {head("name: call"), []want{{spec.ProblemBadName, "name", 3, "single calls"}}},
		"unknown provider":        {head("model: antropic/x"), []want{{spec.ProblemBadValue, "model", 3, "anthropic/"}}},
		"bad tool":                {head("tools: [file.read, File]"), []want{{spec.ProblemBadName, "tools[1]", 4, "file.*"}}},
		"bare category":           {head("tools: [file]"), []want{{spec.ProblemBadName, "tools[0]", 4, "file.*"}}},
		"zero passes":             {head("max_passes: 0"), []want{{spec.ProblemOutOfRange, "max_passes", 4, "1 to 100000"}}},
		"negative":                {head("max_tokens: -1"), []want{{spec.ProblemOutOfRange, "max_tokens", 4, "-1"}}},
		"fraction":                {head("max_tokens: 1.5"), []want{{spec.ProblemWrongType, "max_tokens", 4, "whole"}}},
		"beyond 64 bits":          {head("max_total_tokens: 99999999999999999999"), []want{{spec.ProblemWrongType, "max_total_tokens", 4, "whole"}}},
		"infinite":                {head("max_tokens: .inf"), []want{{spec.ProblemBadValue, "max_tokens", 4, "JSON"}}},
		"duration a number":       {head("deadline: 48"), []want{{spec.ProblemWrongType, "deadline", 4, `"48h"`}}},
		"duration in words":       {head("deadline: two days"), []want{{spec.ProblemBadValue, "deadline", 4, `"3d"`}}},
		"duration too long":       {head("approval_expires: 999d"), []want{{spec.ProblemOutOfRange, "approval_expires", 4, "365d"}}},
		"duration overflow":       {head("deadline: 99999999999999h"), []want{{spec.ProblemBadValue, "deadline", 4, ""}}},
		"kind":                    {head("kind: policy"), []want{{spec.ProblemUnknownKind, "kind", 4, "policy"}}},
		"no instructions":         {"---\nname: a\nmodel: openai/x\n---\n \n", []want{{spec.ProblemMissingKey, "", 1, "instructions"}}},
		"schema is not an object": {head("input_schema: {type: string}"), []want{{spec.ProblemBadSchema, "input_schema.type", 4, "object"}}},
		"schema a text":           {head("input_schema: object"), []want{{spec.ProblemBadSchema, "input_schema", 4, "mapping"}}},
		"schema bad type":         {head("input_schema:\n  type: object\n  properties:\n    path: {type: sting}"), []want{{spec.ProblemBadSchema, "input_schema.properties.path.type", 7, "schema"}}},
		"schema bad form":         {head(`input_schema: {type: object, properties: {a: {pattern: "("}}}`), []want{{spec.ProblemBadSchema, "input_schema.properties.a.pattern", 4, ""}}},
		"schema remote":           {head(`input_schema: {type: object, $ref: "https://example.com/s.json"}`), []want{{spec.ProblemBadSchema, "input_schema", 4, "not followed"}}},
		"schema file":             {head(`input_schema: {type: object, $ref: "file:///etc/passwd"}`), []want{{spec.ProblemBadSchema, "input_schema", 4, "not followed"}}},
		"script missing":          {head("model: script/a"), []want{{spec.ProblemMissingKey, "script", 2, "rules"}}},
		"script no rules":         {head("script: {rules: []}"), []want{{spec.ProblemOutOfRange, "script.rules", 4, "1 to 256"}}},
		"script empty":            {head("script: {}"), []want{{spec.ProblemMissingKey, "script.rules", 4, "rule"}}},
		"rule says nothing":       {head("script: {rules: [{when: true}]}"), []want{{spec.ProblemBadShape, "script.rules[0]", 4, "nothing"}}},
		"rule key":                {head("script:\n  rules:\n    - wen: true\n      answer: x"), []want{{spec.ProblemUnknownKey, "script.rules[0].wen", 6, `"when"`}}},
		"calls and answer": {head("tools: [file.read]\nscript:\n  rules:\n    - calls: [{tool: file.read}]\n      answer: x"), []want{
			{spec.ProblemBadShape, "script.rules[0].answer", 8, "say"},
		}},
		"for_each alone": {head("script: {rules: [{for_each: last, answer: x}]}"), []want{{spec.ProblemBadShape, "script.rules[0].for_each", 4, "calls"}}},
		"for_each twice": {head("tools: [a.b]\nscript: {rules: [{for_each: last, calls: [{tool: a.b, for_each: last}]}]}"), []want{
			{spec.ProblemBadShape, "script.rules[0].calls[0].for_each", 5, "remove one of the two"},
		}},
		"for_each of a call": {head("tools: [a.b]\nscript: {rules: [{calls: [{tool: a.b, for_each: pas}]}]}"), []want{
			{spec.ProblemBadCEL, "script.rules[0].calls[0].for_each", 5, "pass"},
		}},
		"tool not listed":   {head("tools: [\"deps.*\"]\nscript: {rules: [{calls: [{tool: file.write}]}]}"), []want{{spec.ProblemBadValue, "script.rules[0].calls[0].tool", 5, "add it to tools"}}},
		"agent not listed":  {head("tools: [agent.run]\nscript: {rules: [{calls: [{tool: agent.run, input: {agent: b}}]}]}"), []want{{spec.ProblemBadValue, "script.rules[0].calls[0].input.agent", 5, "add it to agents"}}},
		"bad agent":         {head("agents: [\"*\"]"), []want{{spec.ProblemBadName, "agents[0]", 4, "lower-case"}}},
		"bad choice":        {head("models: [gpt]"), []want{{spec.ProblemBadValue, "models[0]", 4, "provider/model"}}},
		"tool not a name":   {head("tools: [\"*\"]\nscript: {rules: [{calls: [{tool: write}]}]}"), []want{{spec.ProblemBadName, "script.rules[0].calls[0].tool", 5, "category"}}},
		"input a text":      {head("tools: [\"*\"]\nscript: {rules: [{calls: [{tool: file.read, input: x}]}]}"), []want{{spec.ProblemWrongType, "script.rules[0].calls[0].input", 5, "mapping"}}},
		"let not a name":    {head("script: {rules: [{let: [{name: a-b, value: 1}], answer: x}]}"), []want{{spec.ProblemBadName, "script.rules[0].let[0].name", 4, "letters"}}},
		"when a list":       {head("script: {rules: [{when: [a], answer: x}]}"), []want{{spec.ProblemWrongType, "script.rules[0].when", 4, "expression"}}},
		"when no cel":       {head("script: {rules: [{when: pas == 1, answer: x}]}"), []want{{spec.ProblemBadCEL, "script.rules[0].when", 4, "column 1"}}},
		"when a number":     {head("script: {rules: [{when: pass + 1, answer: x}]}"), []want{{spec.ProblemBadCEL, "script.rules[0].when", 4, ""}}},
		"answer not closed": {head("script: {rules: [{answer: '${pass'}]}"), []want{{spec.ProblemBadCEL, "script.rules[0].answer", 4, ""}}},
		"input no cel":      {head("tools: [\"*\"]\nscript:\n  rules:\n    - calls:\n      - tool: file.read\n        input:\n          path: ${input.path +}"), []want{{spec.ProblemBadCEL, "script.rules[0].calls[0].input.path", 10, ""}}},
		"when too long":     {head("script: {rules: [{when: \"" + strings.Repeat("a", 16385) + "\", answer: x}]}"), []want{{spec.ProblemOutOfRange, "script.rules[0].when", 4, "16384"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, err := spec.ParseAgent("a.md", []byte(c.body))
			require.Error(t, err)
			require.Zero(t, agent)
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			require.Len(t, problems, len(c.want), "%v", problems)
			for i, w := range c.want {
				p := problems[i]
				require.Equal(t, w.code, p.Code, "%v", p)
				require.Equal(t, w.path, p.Path, "%v", p)
				require.Equal(t, "a.md", p.Document)
				require.Equal(t, spec.SeverityError, p.Severity)
				require.Contains(t, p.Message+" "+p.Hint, w.text)
				if w.line > 0 {
					require.Equal(t, w.line, p.Line, "%v", p)
				}
			}
		})
	}
}

func TestParseAgent_IsCheapForHostileDocuments(t *testing.T) { //nolint:paralleltest // the allocations of other tests would count
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	for name, c := range map[string]struct { //nolint:paralleltest // cheap rows
		matter string
		code   spec.ProblemCode
	}{
		"billion laughs":  {bomb, spec.ProblemTooMany},
		"long text often": {"a: &a " + strings.Repeat("x", 200_000) + "\nb: [" + strings.Repeat("*a, ", 10_000) + "x]", spec.ProblemTooMany},
		"itself":          {"a: &a [*a, *a, *a, *a]", spec.ProblemTooDeep},
		"deep flow":       {"a: " + strings.Repeat("[", 30_000), spec.ProblemTooDeep},
		"deep mappings":   {"a: " + strings.Repeat("{a: ", 70) + "x" + strings.Repeat("}", 70), spec.ProblemTooDeep},
		"many values":     {"tools: [" + strings.Repeat("x,", 60_000) + "]", spec.ProblemTooMany},
		"deep schema":     {"input_schema: " + strings.Repeat("{not: ", 65) + "{}" + strings.Repeat("}", 65), spec.ProblemTooDeep},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			cheap(t, func() { _, err = spec.ParseAgent("a.md", []byte(head(c.matter))) })
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			require.Equal(t, c.code, problems[len(problems)-1].Code, "%v", problems)
			require.Less(t, len(err.Error()), 4096)
		})
	}
}

func TestProblems_AsJSON(t *testing.T) {
	t.Parallel()
	_, problems := spec.CheckAgent("a.md", []byte(head("tool: [x]")))
	b, err := json.Marshal(problems)
	require.NoError(t, err)
	require.JSONEq(t, `[{"document": "a.md", "path": "tool", "line": 4, "column": 1, "code": "UNKNOWN_KEY", "severity": "error",
		"message": "unknown key \"tool\"", "hint": "did you mean \"tools\"?"}]`, string(b))
	require.Equal(t, `a.md:4:1: tool: unknown key "tool" (did you mean "tools"?)`, problems.Error())
	require.Len(t, jig.AsError(problems).Violations, 1)
}

func FuzzParseAgent(f *testing.F) {
	for _, seed := range []string{fullAgent, "---\n---\n", head("<<: *a"), head("a: &a [*a]"), head("deadline: 1d2h3m"), "---\nname: \"\\u0000\"\n---"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		agent, problems := spec.CheckAgent("fuzz.md", body)
		for _, p := range problems {
			require.NotEmpty(t, p.Message)
			require.NotEmpty(t, p.Code)
		}
		if problems.OrNil() != nil {
			return
		}
		require.Regexp(t, `^[a-z][a-z0-9._-]*$`, agent.Name)
		require.NotEmpty(t, agent.Model)
		for _, raw := range []json.RawMessage{agent.Script, agent.InputSchema} {
			require.True(t, len(raw) == 0 || json.Valid(raw), "%s", raw)
		}
	})
}

func TestAgent_PassesPerRun(t *testing.T) {
	t.Parallel()
	agent := func(passes string) (jig.Agent, error) {
		return spec.ParseAgent("a.md", []byte("---\nname: a\nmodel: openai/small\npasses_per_run: "+passes+"\n---\nGo.\n"))
	}
	for text, want := range map[string]int{"1": 1, "100": 100, "auto": jig.PassesAuto} {
		got, err := agent(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.Limits.PassesPerRun, text)
		require.Equal(t, want, got.Limits.WithDefaults().PassesPerRun, text)
	}
	for _, text := range []string{"0", "-1", "101", "often", "1.5", "[1]"} {
		_, err := agent(text)
		require.ErrorContains(t, err, "passes_per_run", text)
	}
}
