package spec_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

const fullComposition = `
kind: composition
name: cms.createPageWithContent
description: Creates a page with its sections and publishes it.
permission: write
risk: high
approval: always_ask
required_permission: cms.edit
tags: [cms, pages]
icon: page
undo: cms.archivePage
labels: {reads: [private], sends: true}
input_schema:
  type: object
  required: [title]
  properties:
    title: {type: string}
    sections: {type: array, items: {type: string}}
    publish: {type: boolean}
output_schema:
  type: object
steps:
  - id: page
    tool: cms.createPage
    input: {title: "${input.title}"}
    timeout: 30s
    retry: {max_attempts: 3, backoff: 2s, max_backoff: 1m, when: error.code == "UNAVAILABLE"}
  - id: sections
    for_each: input.sections
    max_parallel: 5
    tool: cms.addPageSection
    input: {page_id: "${steps.page.data.id}", content: "${item}", at: "${index}"}
    on_error: continue
  - id: publish
    if: input.publish && steps.sections.all(s, s.success)
    tool: cms.publishPage
    input: {page_id: "${steps.page.data.id}"}
    undo: {tool: cms.archivePage, input: {page_id: "${steps.page.data.id}"}}
    on_error:
      as: failure
      when: failure.code != "DENIED"
      catch:
        - emit: {event: not_published, data: {why: "${failure.message}"}}
  - parallel:
      - id: digest
        prompt: {model: anthropic/claude-sonnet-4-5, prompt: "Sum up ${input.title}."}
      - id: facts
        task: {task: find_facts, entity: "${steps.page.data.id}", values: {n: 3}, wait: false}
      - id: audit
        composition: cms.auditPage
        input: {page: "${steps.page.data.id}"}
  - id: cool_down
    wait: 24h
  - wait_until: now
  - id: paid
    wait_for: {event: paid, when: event.data.page == steps.page.data.id, timeout: 48h}
    on_error: fail
  - switch:
      - when: input.publish
        steps:
          - set: {total: "${size(input.sections)}"}
      - else: true
        steps:
          - fail: {message: "nothing to do for ${input.title}", reason: idle}
  - id: block
    steps:
      - id: inner
        tool: cms.getPage
        input: {id: "${steps.page.data.id}"}
    output: "${steps.inner.data}"
output: {page: "${steps.page.data}", total: "${vars.total}"}
`

func TestLoadExecution_ReadsAComposition(t *testing.T) {
	t.Parallel()
	x, err := spec.LoadExecution("page.yaml", []byte(fullComposition))
	require.NoError(t, err)
	require.Equal(t, spec.KindComposition, x.Kind)
	require.Len(t, x.Version, 64)
	require.Len(t, x.Steps, 9)
	require.JSONEq(t, `{"page": "${steps.page.data}", "total": "${vars.total}"}`, string(x.Output))

	tool := x.Tool
	require.Equal(t, "cms.createPageWithContent", tool.Name)
	require.Equal(t, x.Version, tool.Version)
	require.Equal(t, []any{jig.PermissionWrite, jig.RiskHigh, jig.ApprovalAlwaysAsk}, []any{tool.Permission, tool.Risk, tool.Approval})
	require.True(t, tool.Idempotent)
	require.Equal(t, "composition", tool.Implementation)
	require.Equal(t, []any{"cms", "cms.edit", "page", "cms.archivePage"}, []any{tool.Category, tool.RequiredPermission, tool.Icon, tool.Undo})
	require.Equal(t, &jig.Labels{Reads: []string{jig.ReadsPrivate}, Sends: true}, tool.Labels)
	require.Equal(t, jig.DefaultToolTimeout, tool.Timeout)
	require.JSONEq(t, `{"type": "object"}`, string(tool.OutputSchema))

	page, sections, publish := x.Steps[0], x.Steps[1], x.Steps[2]
	require.Equal(t, 30*time.Second, time.Duration(page.Timeout))
	require.Equal(t, &spec.Retry{
		MaxAttempts: 3, Backoff: spec.Duration(2 * time.Second), MaxBackoff: spec.Duration(time.Minute), When: `error.code == "UNAVAILABLE"`,
	}, page.Retry)
	require.Equal(t, &spec.OnError{Continue: true}, sections.OnError)
	require.Equal(t, spec.Expression("input.sections"), sections.ForEach)
	require.Equal(t, 5, sections.MaxParallel)
	require.Equal(t, "cms.archivePage", publish.Undo.Tool)
	require.Equal(t, "failure", publish.OnError.As)
	require.Equal(t, "not_published", publish.OnError.Catch[0].Emit.Event)
	parallel := x.Steps[3].Parallel
	require.Equal(t, "anthropic/claude-sonnet-4-5", parallel[0].Prompt.Model)
	require.False(t, *parallel[1].Task.Wait)
	require.Equal(t, "cms.auditPage", parallel[2].Composition)
	require.Equal(t, &spec.OnError{}, x.Steps[6].OnError)
	require.True(t, x.Steps[7].Switch[1].Else)
	require.Equal(t, "idle", x.Steps[7].Switch[1].Steps[0].Fail.Reason)
	require.JSONEq(t, `"${steps.inner.data}"`, string(x.Steps[8].Output))
}

func TestLoadExecution_ReadsOtherKinds(t *testing.T) {
	t.Parallel()
	x, err := spec.LoadExecution("sum_up.yaml", []byte(`
kind: prompt
name: text.sumUp
model: openai/gpt-5
prompt: "Sum up: ${input.text}"
schema: {type: object, properties: {summary: {type: string}}}
`))
	require.NoError(t, err)
	require.Equal(t, spec.KindPrompt, x.Kind)
	require.Len(t, x.Steps, 1)
	require.Equal(t, "answer", x.Steps[0].ID)
	require.Equal(t, "Sum up: ${input.text}", x.Steps[0].Prompt.Prompt)
	require.JSONEq(t, `"${steps.answer.data}"`, string(x.Output))
	require.Equal(t, jig.PermissionDraft, x.Tool.Permission)
	require.JSONEq(t, `{"type": "object"}`, string(x.Tool.InputSchema))
	require.JSONEq(t, `{"type": "object", "properties": {"output": {"$id": "answer", "type": "object", "properties": {"summary": {"type": "string"}}}}}`,
		string(x.Tool.OutputSchema))

	x, err = spec.LoadExecution("facts.yaml", []byte("kind: task\nname: facts.find\ntask: find_facts\nentity: ${input.id}\nwait: false\n"))
	require.NoError(t, err)
	require.Equal(t, "find_facts", x.Steps[0].Task.Task)
	require.False(t, *x.Steps[0].Task.Wait)
	require.Equal(t, "task", x.Tool.Implementation)
}

// A JSON document means the same as a YAML one, even with tabs and with characters that JSON escapes as surrogate pairs.
func TestLoadExecution_ReadsJSON(t *testing.T) {
	t.Parallel()
	body := "{\n\t\"kind\": \"composition\",\n\t\"name\": \"a.b\",\n\t\"steps\": [\n\t\t{\"set\": {\"x\": \"\\ud83d\\ude00 \\\\ud83d \\/\"}}\n\t]\n}\n"
	require.True(t, json.Valid([]byte(body)))
	doc, problems := spec.Load("a.json", []byte(body))
	require.Empty(t, problems)
	require.Equal(t, spec.KindComposition, doc.Kind)
	require.Equal(t, "a.b", doc.Name)
	require.JSONEq(t, `{"x": "😀 \\ud83d /"}`, string(doc.Execution().Steps[0].Set))
	require.Equal(t, doc.Version, doc.Execution().Version)
}

// A document that is correct by itself may still be wrong about the results of its tools.
func TestCheckShapes_ReadsOfResultsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	shapes := func(tool string) (json.RawMessage, bool) {
		outputs := map[string]string{
			"cms.createPage": `{"type": "object", "properties": {"id": {"type": "string"}, "url": {"$ref": "#/$defs/url"}}, "$defs": {"url": {"type": "string"}}}`,
			"cms.listPages":  `{"type": "object", "properties": {"pages": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer"}}}}}}`,
		}
		output, ok := outputs[tool]
		return json.RawMessage(output), ok
	}
	doc, problems := spec.Load("pages.yaml", []byte(`
kind: composition
name: cms.copyPages
steps:
  - {id: list, tool: cms.listPages}
  - id: each
    for_each: steps.list.data.pages
    max_parallel: 2
    tool: cms.createPage
    input: {id: "${item.id}", title: "${item.title}", more: "${item.size + 1}"}
  - {id: wrong, for_each: steps.list.data.page, tool: cms.createPage}
  - if: steps.each.exists(s, s.data.ulr == "" || s.data.url == "" || s.data.id > 3)
    set: {first: "${steps.list.data.pages[0]}", n: "${steps.list.data.pages[0].size}"}
  - emit: {event: done, data: "${vars.first.size + vars.n} ${vars.first.name}"}
  - {id: other, tool: cms.unknown}
output: {ids: "${steps.each.map(s, s.data.idd)}", any: "${steps.other.data.x.y}"}
`))
	require.Empty(t, problems)
	type found struct {
		path string
		line int
	}
	var got []found
	for _, p := range spec.CheckShapes(doc, shapes) {
		require.Equal(t, spec.ProblemBadCEL, p.Code)
		require.Equal(t, "pages.yaml", p.Document)
		got = append(got, found{p.Path, p.Line})
	}
	require.Equal(t, []found{
		{"steps[1].input.title", 10}, {"steps[2].for_each", 11}, {"steps[3].if", 12}, {"steps[4].emit.data", 14}, {"output.ids", 16},
	}, got)

	require.Empty(t, spec.CheckShapes(doc, func(string) (json.RawMessage, bool) { return nil, false }))
	broken, problems := spec.Load("a.yaml", []byte("kind: composition\nname: a.b\nsteps: [{id: a}]\n"))
	require.NotEmpty(t, problems)
	require.Empty(t, spec.CheckShapes(broken, shapes))
}

func FuzzLoadExecution(f *testing.F) {
	for _, seed := range []string{
		fullComposition, "kind: prompt\nname: a\nmodel: openai/x\nprompt: ${input.x}", "kind: task\nname: a.b\ntask: t\nentity: e",
		compositionHead + "  - &s {id: a, steps: [*s]}", compositionHead + "  - {for_each: '[1]', id: a, steps: [{id: b, set: {x: '${item}'}}], output: '${steps.b}'}",
		compositionHead + "  - {id: a, tool: a.b, on_error: {as: e, catch: [{fail: {message: '${e.code}'}}]}, undo: {tool: a.b, input: '${steps.a.data}'}}",
		`{"kind": "composition", "name": "a", "steps": [{"wait": "\ud83d\ude00"}]}`, "kind: composition\nsteps: [{switch: [{else: true}]}]",
		fullThinTool, "kind: thin_tool\nname: a\nentities: [{name: a, id: '${entities.a.id}', type: b, optional: true}]\nrequires: [{check: 'entities.a == null', code: x}]",
		"kind: thin_tool\nname: a.b\ncreates: {type: a, fields: '${input}', relations: {a.b: ['${tenant}'], c: '${input.x}'}, workspaces: [x]}\nstarts: {}\nurl: '${entity.id}'",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, problems := spec.Load("fuzz.yaml", body)
		for _, p := range problems {
			require.NotEmpty(t, p.Message)
			require.NotEmpty(t, p.Code)
			require.NotEmpty(t, p.Document)
		}
		if problems.OrNil() != nil || doc.Execution() == nil {
			return
		}
		x := *doc.Execution()
		require.NotEmpty(t, x.Name)
		require.Equal(t, x.Kind == spec.KindThinTool, x.Thin() != nil)
		require.Equal(t, x.Thin() == nil, len(x.Steps) > 0)
		requirePlain(t, spec.Explain(x).Text())
		requireMermaid(t, spec.Explain(x).Mermaid())
		require.Equal(t, x.Version, x.Tool.Version)
		require.True(t, json.Valid(x.Tool.InputSchema))
		require.True(t, len(x.Output) == 0 || json.Valid(x.Output))
		for _, p := range spec.CheckShapes(doc, anyShape) {
			require.NotEmpty(t, p.Message)
		}
		for _, p := range spec.Check([]spec.Document{doc}, spec.Catalog{EntityTypes: anyType}) {
			require.NotEmpty(t, p.Message)
		}
	})
}

// anyType is an entity type with the fields that the seeds read.
var anyType = []entity.Type{{Name: "module", Fields: []entity.Field{{Name: "path", Type: entity.FieldText, Required: true, Task: "path"}}}}

// anyShape says for every tool that its output may have a member a.
func anyShape(string) (json.RawMessage, bool) {
	return json.RawMessage(`{"type": "object", "properties": {"a": {}}}`), true
}

// Checking arbitrary expressions in an otherwise correct document accepts each one or reports it at its path.
func FuzzCheckExpressions(f *testing.F) {
	f.Add("input.a == 1", "${steps.a.data}", "item", "a")
	f.Add("has(steps.b)", "x ${vars.v} $${", "steps['a'].success", "error")
	f.Add("error.code == ''", "${e.code}${index}", "[1, 2].map(steps, steps)", "e")
	f.Add("steps.each[0].success", "${input.list[0].n + 'x'}", "input.list", "each")
	f.Fuzz(func(t *testing.T, condition, template, list, id string) {
		type object = map[string]any
		body, err := json.Marshal(object{
			"kind": "composition", "name": "a.b", "input_schema": object{"type": "object", "properties": object{
				"a": object{"type": "integer"}, "list": object{"type": "array", "items": object{"type": "object", "properties": object{"n": object{"type": "number"}}}},
			}},
			"steps": []object{
				{"id": "a", "if": condition, "tool": "a.b", "input": object{"x": template}, "undo": object{"tool": "a.b", "input": object{"y": template}}},
				{"set": object{"v": template}},
				{"id": "each", "for_each": list, "steps": []object{{"id": "b", "if": condition, "tool": "a.b", "input": object{"x": []any{template}}}}, "output": template},
				{"id": id, "composition": "c", "on_error": object{"as": "e", "when": condition, "catch": []object{{"fail": object{"message": template}}}}},
			},
			"output": object{"x": template},
		})
		require.NoError(t, err)
		doc, problems := spec.Load("fuzz.json", body)
		for _, p := range problems {
			require.NotEmpty(t, p.Path, "%v", p)
			require.Positive(t, p.Line, "%v", p)
		}
		if problems.OrNil() == nil {
			for _, p := range spec.CheckShapes(doc, anyShape) {
				require.NotEmpty(t, p.Path, "%v", p)
			}
		}
	})
}
