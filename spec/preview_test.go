package spec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

const publishing = `kind: composition
name: page.publish
description: Publishes a page, so that everybody can read it.
permission: write
input_schema: {type: object, required: [id], properties: {id: {type: string}, lines: {type: array, items: {type: string}}}}
preview:
  read: {tool: page.get, input: {id: "${input.id}"}}
  title: "Publishes ${input.id}"
  changes: ["${read.data.title}"]
  markdown: "For ${principal.id} of ${tenant}."
steps:
  - {id: now, tool: page.put, input: {id: "${input.id}"}}
`

func pageTools() []jig.Tool {
	schema := json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"}},"additionalProperties":false}`)
	titled := json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}},"additionalProperties":false}`)
	list := []jig.Tool{
		{Name: "page.get", Permission: jig.PermissionRead, InputSchema: schema, OutputSchema: titled},
		{Name: "page.put", Permission: jig.PermissionWrite, InputSchema: schema, OutputSchema: titled},
		{Name: "page.fetch", Permission: jig.PermissionRead, InputSchema: schema, OutputSchema: titled, Labels: &jig.Labels{Sends: true}},
	}
	for i := range list {
		list[i] = list[i].WithDefaults()
	}
	return list
}

func TestPreview_IsPartOfTheContract(t *testing.T) {
	t.Parallel()
	x, err := spec.LoadExecution("publish.yaml", []byte(publishing))
	require.NoError(t, err)
	require.True(t, x.Tool.Previews)
	require.Equal(t, "page.get", x.Preview.Read.Tool)
	require.Contains(t, spec.Explain(x).Text(), "people who approve it see: Publishes ${input.id}")
	without, _, _ := strings.Cut(publishing, "preview:")
	x, err = spec.LoadExecution("publish.yaml", []byte(without+"steps:\n  - set: {a: 1}\n"))
	require.NoError(t, err)
	require.False(t, x.Tool.Previews)
	for body, previews := range map[string]bool{
		"{kind: thin_tool, name: a.b, creates: {type: c}}":                          true,
		"{kind: thin_tool, name: a.b, requires: [{check: 'input == {}', code: c}]}": false,
	} {
		x, err := spec.LoadExecution("a.yaml", []byte(body))
		require.NoError(t, err)
		require.Equal(t, previews, x.Tool.Previews, body)
	}
}

func TestPreview_Problems(t *testing.T) {
	t.Parallel()
	catalog := spec.Catalog{Tools: pageTools(), Specs: []spec.Execution{}, EntityTypes: []entity.Type{}}
	docs := load(t, map[string]string{"publish.yaml": publishing})
	require.Empty(t, spec.Check(docs, catalog))
	for name, row := range map[string]struct{ old, replacement, path, problem string }{
		"no title":              {`  title: "Publishes ${input.id}"` + "\n", "", "preview.title", "title"},
		"a number":              {`"Publishes ${input.id}"`, `"${1 + 1}"`, "preview.title", "a text is needed"},
		"an unknown member":     {"read.data.title", "read.data.titel", "preview.changes[0]", "titel"},
		"the time":              {"For ${principal.id}", "At ${string(now)}", "preview.markdown", "now"},
		"a read in its input":   {`read: {tool: page.get, input: {id: "${input.id}"}}`, `read: {tool: page.get, input: {id: "${read.data.id}"}}`, "preview.read.input.id", "data"},
		"a text for changes":    {`["${read.data.title}"]`, "much", "preview.changes", "must be a list"},
		"a list of numbers":     {`["${read.data.title}"]`, "[1]", "preview.changes[0]", ""},
		"an expression":         {`["${read.data.title}"]`, `"${input.id}"`, "preview.changes", "a list is needed"},
		"an unknown key":        {"  markdown:", "  markup:", "preview.markup", "markup"},
		"an unknown tool":       {"tool: page.get", "tool: page.got", "preview.read.tool", "page.got"},
		"a tool that writes":    {"tool: page.get", "tool: page.put", "preview.read.tool", "only reads"},
		"a tool that sends":     {"tool: page.get", "tool: page.fetch", "preview.read.tool", "only reads"},
		"a document":            {"tool: page.get", "tool: page.publish", "preview.read.tool", "is a document"},
		"input that cannot fit": {`input: {id: "${input.id}"}}` + "\n  title", `input: {it: x}}` + "\n  title", "preview.read.input", "wants"},
	} {
		doc, problems := spec.Load("publish.yaml", []byte(strings.Replace(publishing, row.old, row.replacement, 1)))
		problems = append(problems, spec.Check([]spec.Document{doc}, catalog)...)
		require.NotEmpty(t, problems, name)
		require.Contains(t, problems[0].Path, row.path, "%s: %v", name, problems)
		require.Contains(t, problems[0].Message+problems[0].Path, row.problem, "%s: %v", name, problems)
	}
	many := strings.Replace(publishing, `["${read.data.title}"]`, "["+strings.Repeat("x, ", 101)+"x]", 1)
	_, problems := spec.Load("publish.yaml", []byte(many))
	require.Equal(t, spec.ProblemTooMany, problems[0].Code)
	one := strings.Replace(publishing, `["${read.data.title}"]`, `"${input.lines}"`, 1)
	require.Empty(t, spec.Check(load(t, map[string]string{"publish.yaml": one}), catalog), "an expression that gives a list")
}
