package spec_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
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

func TestLoadExecution(t *testing.T) {
	t.Parallel()
	x, err := spec.Parser{}.ParseExecution("page.yaml", []byte(fullComposition))
	require.NoError(t, err)
	require.Equal(t, spec.KindComposition, x.Kind)
	require.Len(t, x.Version, 16)
	require.Len(t, x.Steps, 9)
	require.JSONEq(t, `{"page": "${steps.page.data}", "total": "${vars.total}"}`, string(x.Output))

	tool := x.Tool
	require.Equal(t, "cms.createPageWithContent", tool.Name)
	require.Equal(t, x.Version, tool.Version)
	require.Equal(t, []any{jig.PermissionWrite, jig.RiskHigh, jig.ApprovalAlwaysAsk}, []any{tool.Permission, tool.Risk, tool.Approval})
	require.True(t, tool.Idempotent)
	require.Equal(t, "composition", tool.Implementation)
	require.Equal(t, []any{"cms", "cms.edit", "page", "cms.archivePage"}, []any{tool.Category, tool.RequiredPermission, tool.Icon, tool.Undo})
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

func TestLoadExecutionOfOtherKinds(t *testing.T) {
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

// A document in JSON says the same as one in YAML, also with tabs and with characters that JSON escapes as two halves.
func TestLoadExecutionJSON(t *testing.T) {
	t.Parallel()
	body := "{\n\t\"kind\": \"composition\",\n\t\"name\": \"a.b\",\n\t\"steps\": [\n\t\t{\"set\": {\"x\": \"\\ud83d\\ude00 \\\\ud83d \\/\"}}\n\t]\n}\n"
	require.True(t, json.Valid([]byte(body)))
	doc, problems := spec.Load("a.json", []byte(body))
	require.Empty(t, problems)
	require.Equal(t, spec.KindComposition, doc.Kind)
	require.Equal(t, "a.b", doc.Name)
	require.JSONEq(t, `{"x": "😀 \\ud83d /"}`, string(doc.Execution.Steps[0].Set))
	require.Equal(t, doc.Version, doc.Execution.Version)
}
