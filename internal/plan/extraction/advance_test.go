package extraction_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
)

func compute(id, source string, deps ...string) entity.Task {
	return entity.Task{ID: id, Kind: entity.TaskCompute, Compute: source, DependsOn: deps}
}

func tool(id, input string, deps ...string) entity.Task {
	return entity.Task{ID: id, Kind: entity.TaskTool, Use: "look.up", Input: json.RawMessage(input), DependsOn: deps}
}

// Expressions can read the documented parts of the entity, other tasks and the situation.
func TestExpressions_Variables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, want string }{
		"id":              {`entity.id`, `"ent_1"`},
		"type":            {`entity.type`, `"module"`},
		"title":           {`entity.title`, `"Toml"`},
		"content":         {`entity.content.path`, `"a/b"`},
		"index":           {`entity["content"]["path"]`, `"a/b"`},
		"optional":        {`entity.?content.?nothing.orValue(1)`, `1`},
		"has":             {`has(entity.content.path) && !has(entity.content.nothing)`, `true`},
		"in":              {`["path" in entity.content, "nothing" in entity.content]`, `[true,false]`},
		"whole content":   {`entity.content.map(k, k)`, `["base","path"]`},
		"value":           {`tasks.base.n`, `4`},
		"value by index":  {`tasks["base"].n`, `4`},
		"optional value":  {`tasks.?base.?n.orValue(0)`, `4`},
		"value in":        {`"base" in tasks`, `true`},
		"all values":      {`tasks.map(k, tasks[k].n)`, `[4]`},
		"filled field":    {`entity.content.base.n`, `4`},
		"input":           {`input.level + 1`, `3`},
		"input by index":  {`input["level"]`, `2`},
		"input whole":     {`size(input)`, `2`},
		"tenant":          {`tenant`, `"acme"`},
		"now":             {`string(now)`, `"2026-01-31T09:00:00Z"`},
		"in a macro":      {`[1, 2].map(x, x + tasks.base.n)`, `[5,6]`},
		"name in a text":  {`"tasks.nothing // entity" + 'it"s' + r'\' + string(input.level)`, `"tasks.nothing // entityit\"s\\2"`},
		"name of a field": {`{"a": {"tasks": 1}}.a.tasks`, `1`},
		"after a comment": {"// tasks.nothing\ninput.level", `2`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := kindOf(compute("other", "1"), compute("base", "{'n': 4}"), compute("x", c.source, "base"))
			w := worldOf(compile(t, kind), extraction.Input{
				Entity: extraction.Target{Title: "Toml", Content: json.RawMessage(`{"path":"a/b","x":"stale","other":"stale"}`)},
				Input:  json.RawMessage(`{"level":2,"more":true}`),
			}, echo)
			result := w.run(t)
			require.Nil(t, result.Tasks["x"].Error)
			require.JSONEq(t, c.want, string(result.Values["x"]))
		})
	}
}

// Each kind of task makes the expected call.
func TestAdvance_CallsTheToolsOfTasks(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object"}`)
	for name, c := range map[string]struct {
		task        entity.Task
		tool, input string
		// data is the answer, and want the value that the task gets from it.
		data, want string
	}{
		"tool": {
			entity.Task{Kind: entity.TaskTool, Use: "look.up", Input: json.RawMessage(`{"id":"${entity.id}","n":1}`)},
			"look.up", `{"id":"ent_1","n":1}`, `{"a":1}`, `{"a":1}`,
		},
		"tool without input": {entity.Task{Kind: entity.TaskTool, Use: "look.up", Value: "result.a"}, "look.up", `{}`, `{"a":1}`, `1`},
		"composition":        {entity.Task{Kind: entity.TaskComposition, Use: "find-all"}, "find-all", `{}`, `[1]`, `[1]`},
		"prompt": {
			entity.Task{Kind: entity.TaskPrompt, Input: json.RawMessage(`{"prompt":"Say ${tenant}"}`)},
			"prompt.direct", `{"prompt":"Say acme"}`, `{"text":"acme","usage":{"input":1,"output":2}}`, `"acme"`,
		},
		"prompt with a schema": {
			entity.Task{Kind: entity.TaskPrompt, Input: json.RawMessage(`{"prompt":"p"}`), OutputSchema: schema},
			"prompt.direct", `{"prompt":"p","schema":{"type":"object"}}`, `{"output":{"a":1}}`, `{"a":1}`,
		},
		"prompt with part of the result as value": {
			entity.Task{Kind: entity.TaskPrompt, Input: json.RawMessage(`{"prompt":"p"}`), OutputSchema: schema, Value: "{'a': result.text}"},
			"prompt.direct", `{"prompt":"p"}`, `{"text":"t"}`, `{"a":"t"}`,
		},
		"named prompt": {
			entity.Task{Kind: entity.TaskPrompt, Use: "sum-up", Input: json.RawMessage(`{"of":"x"}`), OutputSchema: schema},
			"sum-up", `{"of":"x"}`, `{"output":{"a":1}}`, `{"a":1}`,
		},
		"agent with its input": {
			entity.Task{Kind: entity.TaskAgent, Use: "writer", Input: json.RawMessage(`{"of":"x"}`)},
			"agent.run", `{"agent":"writer","input":{"of":"x"}}`, `{"session_id":"s","answer":"done"}`, `"done"`,
		},
		"agent with a task": {
			entity.Task{Kind: entity.TaskAgent, Use: "writer", Input: json.RawMessage(`{"task":"write","input":{"a":1}}`), OutputSchema: schema},
			"agent.run", `{"agent":"writer","input":{"a":1},"task":"write\n\nYour final answer is to be JSON alone, without any other text, ` +
				`that fits this JSON Schema:\n{\"type\":\"object\"}"}`,
			"{\"answer\":\"```json\\n{\\\"a\\\":1}\\n```\"}", `{"a":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.task.ID = "x"
			w := worldOf(compile(t, kindOf(c.task)), extraction.Input{}, answers(map[string]string{"x": c.data}))
			result := w.run(t)
			require.Nil(t, result.Tasks["x"].Error)
			require.Equal(t, c.tool, w.rows["x"].tool)
			require.JSONEq(t, c.input, string(w.rows["x"].input))
			require.JSONEq(t, c.want, string(result.Values["x"]))
		})
	}
}

func TestAdvance_FailedTasksDoNotStopOthers(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	for name, c := range map[string]struct {
		task entity.Task
		data string
		code jig.Code
		says string
	}{
		"compute":               {compute("x", "[1][3]"), "", jig.CodeInvalidInput, "tasks.x.compute"},
		"condition":             {entity.Task{Kind: entity.TaskCompute, Compute: "1", When: "[true][3]"}, "", jig.CodeInvalidInput, "tasks.x.when"},
		"input":                 {tool("x", `{"a":"${[1][3]}"}`), "", jig.CodeInvalidInput, "tasks.x.input"},
		"value":                 {entity.Task{Kind: entity.TaskTool, Use: "look.up", Value: "result.b"}, `{"a":1}`, jig.CodeInvalidInput, "tasks.x.value"},
		"sources":               {entity.Task{Kind: entity.TaskTool, Use: "look.up", Sources: "[1]"}, `1`, jig.CodeInvalidInput, "sources are ids"},
		"field":                 {entity.Task{Kind: entity.TaskTool, Use: "look.up"}, `"unfit"`, jig.CodeInvalidOutput, "the field x: this does not fit"},
		"schema":                {entity.Task{Kind: entity.TaskTool, Use: "look.up", OutputSchema: json.RawMessage(`{}`)}, `"shapeless"`, jig.CodeInvalidOutput, "output schema"},
		"no canonical form":     {entity.Task{Kind: entity.TaskTool, Use: "look.up"}, `1e999`, jig.CodeInvalidOutput, "canonical"},
		"large":                 {entity.Task{Kind: entity.TaskTool, Use: "look.up"}, big, jig.CodeInvalidOutput, "1024 KiB"},
		"call":                  {entity.Task{Kind: entity.TaskTool, Use: "look.up"}, "", jig.CodeNotFound, "did not work"},
		"agent without JSON":    {entity.Task{Kind: entity.TaskAgent, Use: "a", OutputSchema: json.RawMessage(`{}`)}, `{"answer":"well"}`, jig.CodeInvalidOutput, "not the requested JSON"},
		"large input of a call": {tool("x", `{"a":"${input.big}"}`), "", jig.CodeInvalidInput, "at most 256 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.task.ID = "x"
			of := map[string]string{}
			if c.data != "" {
				of["x"] = c.data
			}
			input := extraction.Input{Input: json.RawMessage(`{"big":"` + strings.Repeat("x", 300<<10) + `"}`)}
			w := worldOf(compile(t, kindOf(c.task, compute("after", "tasks.x", "x"), compute("beside", "1"))), input, answers(of))
			result := w.run(t)
			got := result.Tasks["x"]
			require.Equal(t, extraction.TaskFailed, got.Status)
			require.Equal(t, c.code, got.Error.Code)
			require.Contains(t, got.Error.Message, c.says)
			require.Equal(t, extraction.TaskResult{Status: extraction.TaskSkipped, Because: "x", Fields: []string{"after"}}, result.Tasks["after"])
			require.JSONEq(t, "1", string(result.Values["beside"]))
			require.NotContains(t, result.Values, "x")
			require.True(t, w.result.Success)
			require.Equal(t, "3 tasks: 1 completed, 1 failed, 1 skipped", w.result.Summary)
		})
	}
}

// A prompt whose answer does not fit is asked once more and told what was wrong. A second answer that does not fit fails the task.
func TestRepair_AsksAModelOnceMore(t *testing.T) {
	t.Parallel()
	prompt := entity.Task{ID: "x", Kind: entity.TaskPrompt, Input: json.RawMessage(`{"prompt":"Sum up."}`)}
	bad, good := `{"text":"unfit words","model":"m1","usage":{"input":10,"output":5}}`, `{"text":"good","model":"m2","usage":{"input":20,"output":6}}`

	w := worldOf(compile(t, kindOf(prompt)), extraction.Input{}, answers(map[string]string{"x": bad, "x~2": good}))
	result := w.run(t)
	require.JSONEq(t, `"good"`, string(result.Values["x"]))
	p := result.Provenance["x"]
	require.Equal(t, entity.Provenance{Task: "x", Model: "m2", Tokens: 41, Attempt: 2, Call: "x~2", InputHash: p.InputHash, At: start}, p)
	var asked struct {
		Prompt string `json:"prompt"`
	}
	require.NoError(t, json.Unmarshal(w.rows["x~2"].input, &asked))
	require.Equal(t, "Sum up.\n\nYour answer before was:\n\"unfit words\"\n\nIt was not accepted: the value does not fit the field x: this does not fit\n"+
		"Answer again, and correct this.", asked.Prompt)

	w = worldOf(compile(t, kindOf(prompt)), extraction.Input{}, answers(map[string]string{"x": bad, "x~2": bad}))
	failed := w.run(t).Tasks["x"]
	require.Equal(t, 2, failed.Attempts)
	require.Contains(t, failed.Error.Message, "does not fit the field x")

	w = worldOf(compile(t, kindOf(prompt)), extraction.Input{}, answers(map[string]string{"x": bad}))
	failed = w.run(t).Tasks["x"]
	require.Contains(t, failed.Error.Message, "does not fit the field x: this does not fit; the answer could not be corrected: it did not work")

	prompt.Use = "sum-up"
	w = worldOf(compile(t, kindOf(prompt)), extraction.Input{}, answers(map[string]string{"x": bad, "x~2": good}))
	w.run(t)
	require.JSONEq(t, `{"prompt":"Sum up.","repair":{"answer":"\"unfit words\"","problem":"the value does not fit the field x: this does not fit"}}`,
		string(w.rows["x~2"].input))

	calling := entity.Task{ID: "x", Kind: entity.TaskTool, Use: "look.up"}
	w = worldOf(compile(t, kindOf(calling)), extraction.Input{}, answers(map[string]string{"x": `"unfit"`}))
	w.run(t)
	require.Equal(t, []string{"x"}, w.asked, "a tool would give the same answer again")
}

// The result, the entity and what is kept for later extractions name a call by the same id.
func TestProvenance_NamesTheCallOfTheSession(t *testing.T) {
	t.Parallel()
	w := worldOf(compile(t, kindOf(entity.Task{ID: "x", Kind: entity.TaskTool, Use: "look.up"})), extraction.Input{}, answers(map[string]string{"x": `"good"`}))
	w.at.Call = "ses_1/1.1"
	var stored []string
	w.watch = func(_ *testing.T, _ *world, move plan.Move) {
		if move.Entity != nil {
			stored = append(stored, move.Entity.Provenance["x"].Call)
		}
	}
	require.Equal(t, "ses_1/1.1/x", w.run(t).Provenance["x"].Call)
	require.Contains(t, stored, "ses_1/1.1/x")
}

// An agent whose answer must be JSON is also asked once more. An agent that answers in words is not.
func TestRepair_AsksAnAgentOnceMore(t *testing.T) {
	t.Parallel()
	agent := entity.Task{
		ID: "x", Kind: entity.TaskAgent, Use: "writer", Input: json.RawMessage(`{"task":"Write.","input":{"of":"y"}}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
	}
	good := `{"answer":"{\"a\":1}"}`
	for name, bad := range map[string]string{
		"no JSON": `{"answer":"It is done."}`, "unfit for the field": `{"answer":"\"unfit\""}`, "unfit for the schema": `{"answer":"\"shapeless\""}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOf(compile(t, kindOf(agent)), extraction.Input{}, answers(map[string]string{"x": bad, "x~2": good}))
			result := w.run(t)
			require.JSONEq(t, `{"a":1}`, string(result.Values["x"]))
			require.Equal(t, 2, result.Provenance["x"].Attempt)
			var first, second struct {
				Agent, Task string
				Input       json.RawMessage
			}
			require.NoError(t, json.Unmarshal(w.rows["x"].input, &first))
			require.NoError(t, json.Unmarshal(w.rows["x~2"].input, &second))
			require.Equal(t, "writer", second.Agent)
			require.JSONEq(t, `{"of":"y"}`, string(second.Input))
			require.True(t, strings.HasPrefix(second.Task, first.Task+"\n\nYour answer before was:\n"), second.Task)
			require.Contains(t, second.Task, "It was not accepted: ")

			w = worldOf(compile(t, kindOf(agent)), extraction.Input{}, answers(map[string]string{"x": bad, "x~2": bad, "x~3": good}))
			failed := w.run(t).Tasks["x"]
			require.Equal(t, extraction.TaskFailed, failed.Status)
			require.Equal(t, []string{"x", "x~2"}, w.asked, "once")
		})
	}
	wordy := agent
	wordy.OutputSchema = nil
	w := worldOf(compile(t, kindOf(wordy)), extraction.Input{}, answers(map[string]string{"x": `{"answer":"unfit words"}`}))
	w.run(t)
	require.Equal(t, []string{"x"}, w.asked)
}

func TestAttempts_BackOffUpToTheLimit(t *testing.T) {
	t.Parallel()
	task := tool("x", `{"now":"${now}"}`)
	task.Attempts, task.Backoff = 4, 10*time.Second
	w := worldOf(compile(t, kindOf(task)), extraction.Input{}, func(r *row) (jig.ToolResult, bool) {
		return jig.Failure(&jig.Error{Code: jig.CodeRateLimited, Message: "slowly", RetryAfter: 25 * time.Second}), true
	})
	var wakes []time.Duration
	w.watch = func(_ *testing.T, w *world, move plan.Move) {
		if !move.Wake.IsZero() {
			wakes = append(wakes, move.Wake.Sub(w.at.Now))
			require.Equal(t, []string{"x"}, move.Steps)
			require.Empty(t, move.Open)
		}
	}
	got := w.run(t).Tasks["x"]
	require.Equal(t, []string{"x", "x~2", "x~3", "x~4"}, w.asked)
	require.Equal(t, []time.Duration{25 * time.Second, 25 * time.Second, 40 * time.Second}, wakes)
	require.Equal(t, jig.CodeRateLimited, got.Error.Code)
	require.Equal(t, 4, got.Attempts)
	require.Equal(t, w.rows["x"].input, w.rows["x~4"].input, "now is when the task began")

	w = worldOf(compile(t, kindOf(task)), extraction.Input{}, func(*row) (jig.ToolResult, bool) { return failing(jig.CodeDenied), true })
	w.run(t)
	require.Equal(t, []string{"x"}, w.asked, "nobody asks a person again")
}

func TestCancel_EndsOpenTasks(t *testing.T) {
	t.Parallel()
	slow := tool("slow", `{}`)
	waits := tool("waits", `{}`)
	waits.Attempts = 2
	kind := kindOf(slow, waits, tool("later", `{}`, "slow"), compute("done", "1"))
	w := worldOf(compile(t, kind), extraction.Input{}, func(r *row) (jig.ToolResult, bool) {
		return failing(jig.CodeUnavailable), r.path == "waits"
	})
	w.cancelAfter = 1
	result := w.run(t)
	require.Equal(t, extraction.Counts{Total: 4, Completed: 1, Canceled: 2, Failed: 1}, result.Counts)
	require.Equal(t, extraction.TaskCanceled, result.Tasks["slow"].Status)
	require.Equal(t, extraction.TaskFailed, result.Tasks["waits"].Status, "it is not retried")
	require.Equal(t, jig.CodeCanceled, w.result.Error.Code)
	require.False(t, w.result.Success)
	require.JSONEq(t, "1", string(result.Values["done"]))
}

// Once the extraction is canceled, no model is asked again.
func TestCancel_PreventsARepair(t *testing.T) {
	t.Parallel()
	kind := kindOf(entity.Task{ID: "x", Kind: entity.TaskPrompt}, tool("y", `{}`))
	w := worldOf(compile(t, kind), extraction.Input{}, answers(map[string]string{"x": `{"text":"unfit"}`, "y": "1"}))
	w.move(t)
	w.finish(w.rows["x"], succeed(`{"text":"unfit"}`))
	w.at.Canceled = true
	result := w.run(t)
	require.Equal(t, []string{"x", "y"}, w.asked)
	require.Equal(t, extraction.TaskFailed, result.Tasks["x"].Status)
}

// At most max_parallel tasks run at once, in the order of the document. Skipped and computed tasks do not take a slot.
func TestMaxParallel_BoundsOpenTasks(t *testing.T) {
	t.Parallel()
	never := tool("never", `{}`)
	never.When = "false"
	kind := kindOf(tool("c", `{}`), tool("a", `{}`), tool("b", `{}`), never, compute("sum", "1"), compute("more", "tasks.sum", "sum"))
	kind.MaxParallel = 2
	w := worldOf(compile(t, kind), extraction.Input{}, echo)
	move := w.move(t)
	require.Equal(t, []string{"c", "a"}, w.asked)
	require.Equal(t, []string{"c", "a"}, move.Steps)
	require.Contains(t, w.values, "more")
	require.Equal(t, jig.EventTaskSkipped, w.log[2].Type, "%v", w.log)
	w.run(t)
	require.Equal(t, []string{"c", "a", "b"}, w.asked)
}

func TestFields_LimitTheTasks(t *testing.T) {
	t.Parallel()
	kind := kindOf(compute("a", "1"), compute("b", "tasks.a", "a"), compute("c", "3"))
	kind.Fields = append(kind.Fields, entity.Field{Name: "by_hand", Type: entity.FieldText})
	plan := compile(t, kind)
	result := worldOf(plan, extraction.Input{Fields: []string{"b"}}, echo).run(t)
	require.Equal(t, extraction.Counts{Total: 2, Completed: 2}, result.Counts)
	require.NotContains(t, result.Tasks, "c")
	for field, says := range map[string]string{"z": `no field "z"`, "by_hand": "no task fills"} {
		w := worldOf(plan, extraction.Input{Fields: []string{field}}, echo)
		w.run(t)
		require.Equal(t, jig.CodeInvalidInput, w.result.Error.Code)
		require.Contains(t, w.result.Error.Message, says)
	}
}

// A refresh runs a task again only if something changed that its input hash covers.
func TestRefresh_RunsTheTaskWhoseInputChanged(t *testing.T) {
	t.Parallel()
	task := tool("x", `{"of":"${entity.content.path} ${input.level} ${entity.content.base} ${tenant} ${now}"}`, "base")
	task.Sources, task.When = "['doc_1', 'doc_2', 'doc_1']", "entity.content.wanted"
	kind := kindOf(compute("base", "entity.content.number % 2"), task)
	known := map[string]extraction.Source{"doc_1": {Hash: "1"}, "doc_3": {Hash: "3"}}
	before := extraction.Input{
		Entity: extraction.Target{Content: json.RawMessage(`{"path":"a","wanted":true,"number":4,"free":1}`)},
		Input:  json.RawMessage(`{"level":{"a":1.0,"b":2}}`),
	}
	first := worldOf(compile(t, kind), before, echo).knowing(known).run(t)
	require.Equal(t, 2, first.Counts.Completed)
	require.Equal(t, []string{"doc_1", "doc_2"}, first.Provenance["x"].Sources)
	for name, c := range map[string]struct {
		change  func(*extraction.Input, *entity.Type)
		want    extraction.TaskStatus
		sources map[string]extraction.Source
	}{
		"nothing": {func(*extraction.Input, *entity.Type) {}, extraction.TaskKept, known},
		"a field that it reads": {func(in *extraction.Input, _ *entity.Type) {
			in.Entity.Content = json.RawMessage(`{"path":"b","wanted":true,"number":4,"free":1}`)
		}, extraction.TaskCompleted, known},
		"a field that it does not read": {func(in *extraction.Input, _ *entity.Type) {
			in.Entity.Content = json.RawMessage(`{"path":"a","wanted":true,"number":4,"free":2,"x":"filled","base":0}`)
		}, extraction.TaskKept, known},
		"its condition": {func(in *extraction.Input, _ *entity.Type) {
			in.Entity.Content = json.RawMessage(`{"path":"a","wanted":false,"number":4}`)
		}, extraction.TaskSkipped, known},
		"equivalent input": {func(in *extraction.Input, _ *entity.Type) {
			in.Entity.Content = json.RawMessage(`{"path":"a","wanted":true,"number":6}`)
			in.Input = json.RawMessage(`{"level":{"b":2.0,"a":1}}`)
		}, extraction.TaskKept, known},
		"the value of a task": {func(in *extraction.Input, _ *entity.Type) {
			in.Entity.Content = json.RawMessage(`{"path":"a","wanted":true,"number":5}`)
		}, extraction.TaskCompleted, known},
		"the input":          {func(in *extraction.Input, _ *entity.Type) { in.Input = json.RawMessage(`{"level":{"a":1}}`) }, extraction.TaskCompleted, known},
		"a source":           {func(*extraction.Input, *entity.Type) {}, extraction.TaskCompleted, map[string]extraction.Source{"doc_1": {Hash: "2"}}},
		"a source that came": {func(*extraction.Input, *entity.Type) {}, extraction.TaskCompleted, map[string]extraction.Source{"doc_1": {Hash: "1"}, "doc_2": {Hash: "2"}}},
		"unknown source":     {func(*extraction.Input, *entity.Type) {}, extraction.TaskKept, map[string]extraction.Source{"doc_1": {Hash: "1"}}},
		"the definition":     {func(_ *extraction.Input, k *entity.Type) { k.Tasks[1].Use = "look.down" }, extraction.TaskCompleted, known},
		"how often it is tried": {func(_ *extraction.Input, k *entity.Type) {
			k.Tasks[1].Attempts, k.Tasks[1].Backoff, k.MaxParallel = 3, time.Minute, 1
		}, extraction.TaskKept, known},
		"a value that no longer fits": {func(in *extraction.Input, _ *entity.Type) {
			e := in.Earlier["x"]
			e.Value = json.RawMessage(`"unfit"`)
			in.Earlier["x"] = e
		}, extraction.TaskCompleted, known},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, k := before, kindOf(kind.Tasks[0], kind.Tasks[1])
			in.Mode, in.Earlier = extraction.ModeRefresh, first.Earlier()
			c.change(&in, &k)
			w := worldOf(compile(t, k), in, echo).knowing(c.sources)
			w.at.Now = start.Add(time.Hour)
			require.Equal(t, c.want, w.run(t).Tasks["x"].Status)
		})
	}
}

// A refresh leaves a failed task as it is, and the tasks that depend on it skipped, until its inputs or sources change.
func TestRefresh_KeepsFailuresWithTheSameInput(t *testing.T) {
	t.Parallel()
	task := tool("x", `{"of":"${input.n}"}`)
	task.Sources = "['doc_1']"
	plan := compile(t, kindOf(task, compute("after", "tasks.x", "x")))
	known := map[string]extraction.Source{"doc_1": {Hash: "1"}}
	in := extraction.Input{Input: json.RawMessage(`{"n":1}`)}
	first := worldOf(plan, in, answers(nil)).knowing(known).run(t)
	in.Mode, in.Earlier = extraction.ModeRefresh, first.Earlier()
	w := worldOf(plan, in, echo).knowing(known)
	second := w.run(t)
	require.Empty(t, w.asked)
	require.Equal(t, first.Tasks, second.Tasks)
	in.Earlier = second.Earlier()
	other := in
	other.Input = json.RawMessage(`{"n":2}`)
	require.Equal(t, 2, worldOf(plan, other, echo).knowing(known).run(t).Counts.Completed)
	changed := map[string]extraction.Source{"doc_1": {Hash: "2"}}
	require.Equal(t, 2, worldOf(plan, in, echo).knowing(changed).run(t).Counts.Completed)
}

// A move is bounded. It leaves the remaining work to another move that is due at once.
func TestAdvance_BoundsMoves(t *testing.T) {
	t.Parallel()
	var tasks []entity.Task
	for i := range 1000 {
		tasks = append(tasks, compute(fmt.Sprintf("t%d", i), "1 + 1"))
	}
	w := worldOf(compile(t, kindOf(tasks...)), extraction.Input{}, echo)
	most := 0
	w.watch = func(_ *testing.T, _ *world, move plan.Move) { most = max(most, len(move.Events)) }
	require.Equal(t, 1000, w.run(t).Counts.Completed)
	require.Equal(t, 600, most, "200 tasks: started, completed, entity updated")
	require.Equal(t, 5, w.moves)
	require.Less(t, w.biggest, 2000)

	tasks = nil
	for i := range 10 {
		tasks = append(tasks, compute(fmt.Sprintf("t%d", i), "input.big"))
	}
	w = worldOf(compile(t, kindOf(tasks...)), extraction.Input{Input: json.RawMessage(`{"big":"` + strings.Repeat("x", 1_000_000) + `"}`)}, echo)
	require.Equal(t, 10, w.run(t).Counts.Completed)
	require.Equal(t, 2, w.moves, "4 MiB, then the rest")
}

func TestAdvance_RefusesBadInputsAndStates(t *testing.T) {
	t.Parallel()
	plan := compile(t, kindOf(tool("x", `{}`)))
	for input, says := range map[string]string{
		`[]`:                                 "cannot be read",
		`{"mode":"fast"}`:                    "not a mode",
		`{"entity":{"content":[1]}}`:         "not an object",
		`{"entity":{"content":{"a":1e999}}}`: "canonical form",
		`{"input":{"a":1e999}}`:              "canonical form",
		`{"input":{"a":"\ud800"}}`:           "canonical form",
	} {
		w := worldOf(plan, extraction.Input{}, echo)
		w.at.Input = json.RawMessage(input)
		w.run(t)
		require.Equal(t, jig.CodeInvalidInput, w.result.Error.Code, input)
		require.Contains(t, w.result.Error.Message, says, input)
	}
	w := worldOf(plan, extraction.Input{}, echo)
	w.move(t)
	good := string(w.state)
	require.Contains(t, good, `"marks":"o"`)
	for _, state := range []string{
		`{`, `{"v":2}`, strings.Replace(good, `"v1"`, `"v2"`, 1), strings.Replace(good, `"o"`, `"oo"`, 1), strings.Replace(good, `"o"`, `"z"`, 1),
		strings.Replace(good, `"o"`, `"d"`, 1), strings.Replace(good, `"t":0`, `"t":1`, 1), strings.Replace(good, `"t":0`, `"t":-1`, 1),
		strings.Replace(good, `"c":1`, `"c":0`, 1), strings.Replace(good, `{`, `{"more":1,`, 1), `{"v":1,"plan":"v1","marks":"o"}`,
	} {
		_, err := plan.Advance(t.Context(), json.RawMessage(state), w, w.at)
		require.Equal(t, jig.CodeInternal, jig.CodeOf(err), state)
	}
	clear(w.rows)
	_, err := plan.Advance(t.Context(), w.state, w, w.at)
	require.ErrorContains(t, err, "gone")
}

// A call says which of its texts a template of the entity type made, and of which values.
func TestTask_SaysWhatItsTemplatesMade(t *testing.T) {
	t.Parallel()
	agent := entity.Task{ID: "x", Kind: entity.TaskAgent, Use: "writer", Input: json.RawMessage(`{"task":"Write out/${input.name}.txt"}`)}
	w := worldOf(compile(t, kindOf(agent)), extraction.Input{Input: json.RawMessage(`{"name":"bo"}`)}, answers(map[string]string{"x": `{"answer":"done"}`}))
	w.run(t)
	require.Equal(t, map[string][]string{"Write out/bo.txt": {"bo"}}, w.rows["x"].rendered)
}
