package spec_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig/spec"
)

var update = flag.Bool("update", false, "rewrite the published schemas")

func TestSchema_PublishedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	for _, kind := range spec.Kinds() {
		made, err := spec.SchemaOf(kind)
		require.NoError(t, err)
		file := filepath.Join("schema", string(kind)+".schema.json")
		if *update {
			require.NoError(t, os.WriteFile(file, made, 0o644))
		}
		published, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, bytes.Equal(published, made), "%s is not current: run go test ./spec -update", file)
	}
}

// The published schema accepts every document that the reader accepts, and refuses those that the reader refuses because of their shape.
func TestSchema_OfAgentsAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	schema := compiled(t, spec.KindAgent)
	for matter, ok := range map[string]bool{
		"{name: a, model: script/a, script: {rules: [{when: true, answer: x}]}, deadline: 3d}": true,
		"{name: a, model: openai/x, tools: [file.read, 'web.*', '*'], max_passes: 3}":          true,
		"{name: a, model: openai/x, input_schema: {type: object}}":                             true,
		"{name: a}":                                 false,
		"{name: A, model: openai/x}":                false,
		"{name: a, model: x}":                       false,
		"{name: a, model: openai/x, tool: [x]}":     false,
		"{name: a, model: openai/x, tools: null}":   false,
		"{name: a, model: openai/x, tools: [file]}": false,
		"{name: a, model: openai/x, max_passes: 0}": false,
		"{name: a, model: openai/x, deadline: 3w}":  false,
		"{name: a, model: openai/x, script: {rules: [{let: [{name: a}], answer: x}]}}": false,
	} {
		value := valueOf(t, matter)
		_, parseErr := spec.ParseAgent("a.md", []byte("---\n"+matter+"\n---\nx"))
		if ok {
			require.NoError(t, parseErr, matter)
			require.NoError(t, schema.Validate(value), matter)
		} else {
			require.Error(t, parseErr, matter)
			require.Error(t, schema.Validate(value), matter)
		}
	}
}

// compiled returns the published schema of a kind, ready to validate.
func compiled(t *testing.T, kind spec.Kind) *jsonschema.Schema {
	t.Helper()
	raw, err := spec.SchemaOf(kind)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", doc))
	schema, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	return schema
}

// valueOf converts a YAML text to the values that a schema validator takes.
func valueOf(t *testing.T, text string) any {
	t.Helper()
	var value any
	require.NoError(t, yaml.Load([]byte(text), &value), text)
	b, err := json.Marshal(value)
	require.NoError(t, err)
	value, err = jsonschema.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	return value
}

// The same holds for execution specs and skills. The schema checks only shapes, and every key has a description for editors.
func TestSchema_OfExecutionsAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	step := func(step string) string { return "{kind: composition, name: a.b, steps: [" + step + "]}" }
	for kind, texts := range map[spec.Kind]map[string]bool{
		spec.KindComposition: {
			fullComposition: true,
			step("{id: a, tool: file.read, input: '${input}', on_error: fail, timeout: 1d}"):                            true,
			step("{id: a, for_each: input.list, steps: [{id: b, if: true, composition: c, input: {x: 1}}], output: 3}"): true,
			step("{}"):                false,
			step("{tool: file.read}"): false,
			step("{id: a, tool: file.read, set: {a: 1}}"):                     false,
			step("{id: a, tool: read}"):                                       false,
			step("{id: a, tool: file.read, inputs: {}}"):                      false,
			step("{id: a, tool: file.read, input: 3}"):                        false,
			step("{id: A, tool: file.read}"):                                  false,
			step("{id: a, tool: file.read, on_error: ignore}"):                false,
			step("{id: a, tool: file.read, on_error: {catch: []}}"):           false,
			step("{id: a, tool: file.read, on_error: {catch: [{sett: {}}]}}"): false,
			step("{id: a, tool: file.read, max_parallel: 2}"):                 false,
			step("{id: a, tool: file.read, retry: {}}"):                       false,
			step("{id: a, tool: file.read, timeout: 3 days}"):                 false,
			step("{set: {}}"):                false,
			step("{set: {a-b: 1}}"):          false,
			step("{switch: [{when: true}]}"): false,
			step("{parallel: [{steps: [{switch: [{else: true, steps: [1]}]}]}]}"):     false,
			"{kind: composition, name: a.b}":                                          false,
			"{kind: prompt, name: a.b, steps: [{set: {a: 1}}]}":                       false,
			"{kind: composition, name: a b, steps: [{set: {a: 1}}]}":                  false,
			"{kind: composition, name: a.b, risk: none, steps: [{set: {a: 1}}]}":      false,
			"{kind: composition, name: a.b, input_schema: 3, steps: [{set: {a: 1}}]}": false,
		},
		spec.KindPrompt: {
			"{kind: prompt, name: a, model: openai/x, prompt: hi, tags: [a]}":           true,
			"{kind: prompt, name: a, mode: agent, agent: b, agent_input: {a: 1}}":       true,
			"{kind: prompt, name: a, model: openai/x, prompt: hi, schema: true}":        false,
			"{kind: prompt, name: a, mode: chat, model: openai/x, prompt: hi}":          false,
			"{kind: prompt, name: a, model: openai/x, prompt: hi, max_tokens: 0}":       false,
			"{kind: prompt, name: a, model: openai/x, prompt: hi, steps: [{wait: 1h}]}": false,
		},
		spec.KindTask: {
			"{kind: task, name: a, task: b, entity: x, concurrency_key: input.id}":   true,
			"{kind: task, name: a, task: b, entity: x, values: {a: 1}, wait: false}": true,
			"{kind: task, name: a, task: B, entity: x}":                              false,
			"{kind: task, name: a, entity: x}":                                       false,
			"{kind: task, name: a, task: b}":                                         false,
			"{kind: task, name: a, task: b, entity: x, wait: 1h}":                    false,
		},
		spec.KindThinTool: {
			fullThinTool: true,
			"{kind: thin_tool, name: a.b, creates: {type: c}, starts: {}}":                                            true,
			"{kind: thin_tool, name: a, requires: [{check: true, code: a_b}]}":                                        true,
			"{kind: thin_tool, name: a, entities: [{name: c, id: d, type: e, connected: {}}]}":                        true,
			"{kind: thin_tool, name: a, creates: {type: c, relations: {a.b: ['x'], c: '${input.list}'}, fields: {}}}": true,
			"{kind: thin_tool, name: a, creates: {type: c, workspaces: '${input.list}', fields: '${input}'}}":         true,
			"{kind: thin_tool, name: a, requires: [{check: true, code: A}]}":                                          false,
			"{kind: thin_tool, name: a, requires: [{code: a}]}":                                                       false,
			"{kind: thin_tool, name: a, requires: [{check: [true], code: a}]}":                                        false,
			"{kind: thin_tool, name: a, starts: {}, requires: [{check: true, code: a}]}":                              false,
			"{kind: thin_tool, name: a, entities: [{name: c, id: d}]}":                                                false,
			"{kind: thin_tool, name: a, entities: [{name: C, id: d, type: e}]}":                                       false,
			"{kind: thin_tool, name: a, entities: [{name: c, id: '', type: e}]}":                                      false,
			"{kind: thin_tool, name: a, entities: [{name: c, id: d, type: e, connected: {depth: 0}}]}":                false,
			"{kind: thin_tool, name: a, entities: [{name: c, id: d, type: e, connected: {at_least: -1}}]}":            false,
			"{kind: thin_tool, name: a, bundle: A, creates: {type: c}}":                                               false,
			"{kind: thin_tool, name: a, creates: {}}":                                                                 false,
			"{kind: thin_tool, name: a, creates: {type: c, relations: {a: 3}}}":                                       false,
			"{kind: thin_tool, name: a, creates: {type: c, relations: {a: [3]}}}":                                     false,
			"{kind: thin_tool, name: a, creates: {type: c, relations: {A: ['x']}}}":                                   false,
			"{kind: thin_tool, name: a, creates: {type: c, workspaces: {}}}":                                          false,
			"{kind: thin_tool, name: a, creates: {type: c, workspaces: [3]}}":                                         false,
			"{kind: thin_tool, name: a, creates: {type: c}, starts: {fields: []}}":                                    false,
			"{kind: thin_tool, name: a, creates: {type: c}, steps: [{set: {a: 1}}]}":                                  false,
		},
	} {
		schema := compiled(t, kind)
		for text, ok := range texts {
			_, err := spec.LoadExecution("a.yaml", []byte(text))
			if ok {
				require.NoError(t, err, text)
				require.NoError(t, schema.Validate(valueOf(t, text)), text)
			} else {
				require.Error(t, schema.Validate(valueOf(t, text)), text)
				if kind == spec.KindComposition == strings.Contains(text, "composition") {
					require.Error(t, err, text)
				}
			}
		}
	}
	// The schema may accept documents whose problems are not in their shape, but never those with unknown keys.
	schema := compiled(t, spec.KindComposition)
	deep := []spec.ProblemCode{spec.ProblemUnknownStep, spec.ProblemStepOrder, spec.ProblemOutOfScope, spec.ProblemUnknownVar, spec.ProblemUnreachable}
	seen := 0
	for _, c := range slices.Concat(slices.Collect(maps.Values(problemCases(t)))...) {
		if spec.KindOf("a.yaml", []byte(c.text())) != spec.KindComposition || c.File != "" {
			continue
		}
		shallow, unknown := false, false
		for _, p := range c.Problems {
			shallow = shallow || !slices.Contains(deep, p.Code)
			unknown = unknown || p.Code == spec.ProblemUnknownKey
		}
		if !shallow {
			require.NoError(t, schema.Validate(valueOf(t, c.text())), c.Name)
			seen++
		}
		if unknown {
			require.Error(t, schema.Validate(valueOf(t, c.text())), c.Name)
			seen++
		}
	}
	require.Greater(t, seen, 20)
	require.NoError(t, compiled(t, spec.KindSkill).Validate(valueOf(t, "{name: a, description: b, metadata: {x: 1}}")))
	require.Error(t, compiled(t, spec.KindSkill).Validate(valueOf(t, "{name: a}")))
}

// The same holds for manifests of bundles.
func TestSchema_OfBundlesAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	schema := compiled(t, spec.KindBundle)
	for text, ok := range map[string]bool{
		manifest: true,
		"{kind: bundle, name: a, version: 0.0.1}":                              true,
		"{kind: bundle, name: a.b-c_d, version: 10.20.30-rc.1, requires: [b]}": true,
		"{kind: bundle, name: a, version: 1.0}":                                false,
		"{kind: bundle, name: a, version: '1.0'}":                              false,
		"{kind: bundle, name: a, version: 01.0.0}":                             false,
		"{kind: bundle, name: a, version: 1.0.0+build}":                        false,
		"{kind: bundle, name: A, version: 1.0.0}":                              false,
		"{kind: bundle, name: a}":                                              false,
		"{kind: bundle, version: 1.0.0}":                                       false,
		"{kind: bundle, name: a, version: 1.0.0, requires: [A]}":               false,
		"{kind: bundle, name: a, version: 1.0.0, documents: []}":               false,
	} {
		doc, problems := spec.Load("bundle.yaml", []byte(text))
		require.Equal(t, ok, len(problems.Errors()) == 0, "%s: %v", text, problems)
		require.Equal(t, ok, schema.Validate(valueOf(t, text)) == nil, text)
		if ok {
			require.NoError(t, doc.Bundle().Check(), text)
			require.Equal(t, doc.Name, doc.Bundle().Name)
		}
	}
}

func TestSchema_DescribesEveryKey(t *testing.T) {
	t.Parallel()
	for _, kind := range spec.Kinds() {
		raw, err := spec.SchemaOf(kind)
		require.NoError(t, err)
		var schema map[string]any
		require.NoError(t, json.Unmarshal(raw, &schema))
		described(t, string(kind), schema)
	}
}

// described walks a schema and checks that every property has a description.
func described(t *testing.T, path string, schema any) {
	t.Helper()
	switch s := schema.(type) {
	case []any:
		for _, one := range s {
			described(t, path, one)
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any) //nolint:errcheck // a schema without properties has none to describe
		for name, property := range properties {
			description, _ := property.(map[string]any)["description"].(string) //nolint:errcheck // a missing one fails below
			require.NotEmpty(t, description, "%s.%s", path, name)
		}
		for key, inner := range s {
			described(t, path+"."+key, inner)
		}
	}
}

func TestKindOf_ReadsTheKindKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, body string
		want       spec.Kind
	}{
		{"agent.md", "---\nname: a\n---\n", spec.KindAgent},
		{"x.MD", "---\nkind: agent # yes\n---\n", spec.KindAgent},
		{"x.md", "---\nname: a\n---\nkind: policy\n", spec.KindAgent},
		{"README.md", "# Hello\n", ""},
		{"x.yaml", "kind: composition\n", "composition"},
		{"x.yaml", "a: 1\n", ""},
		{"x.yaml", "kind: 'task' # one\r\n", "task"},
		{"x.yaml", "{kind: prompt, name: a}", "prompt"},
		{"x.json", `{"name": "a", "steps": [{"kind": "agent"}], "kind": "composition"}`, "composition"},
		{"x.json", `{"steps": [{"kind": "agent"}]}`, ""},
		{"x.json", `{"kind": "composition", "steps": [`, "composition"},
		{"x.json", `{"kind": 3}`, ""},
		{"a/SKILL.md", "# Hello", spec.KindSkill},
		{"a/skill.md", "# Hello", ""},
	} {
		require.Equal(t, c.want, spec.KindOf(c.file, []byte(c.body)), c.file)
	}
}

func TestLoadFS_ReadsDocumentsInOrder(t *testing.T) {
	t.Parallel()
	good := []byte("---\nname: one\nmodel: openai/x\n---\nDo it.")
	files := fstest.MapFS{
		"a/agent.md":  {Data: good},
		"a/README.md": {Data: []byte("# Read me")},
		"a/data.csv":  {Data: []byte("1,2")},
		"b/agent.md":  {Data: []byte("---\nname: two\nmodel: openai/x\n---\nDo it.")},
	}
	docs, problems := spec.LoadFS(files, ".")
	require.Empty(t, problems)
	require.Len(t, docs, 2)
	require.Equal(t, "one", docs[0].Name)
	require.Equal(t, "a/agent.md", docs[0].Path)
	require.Equal(t, docs[0].Agent().Version, docs[0].Version)
	line, column := docs[0].Position("model")
	require.Equal(t, []int{3, 8}, []int{line, column})
	line, _ = docs[0].Position("tools[0]")
	require.Zero(t, line)

	files["c/agent.md"] = &fstest.MapFile{Data: good}
	files["d/x.yaml"] = &fstest.MapFile{Data: []byte("kind: agnt\n")}
	_, problems = spec.LoadFS(files, ".")
	require.Len(t, problems, 2)
	require.Contains(t, problems[0].Message, "agent one is already in a/agent.md")
	require.Equal(t, `did you mean "agent"?`, problems[1].Hint)

	_, problems = spec.LoadFS(files, "missing")
	require.Equal(t, spec.ProblemUnreadable, problems[0].Code)

	_, problems = spec.Load("x.txt", []byte("hello"))
	require.Equal(t, spec.ProblemUnknownKind, problems[0].Code)
}

func TestDuration_IsWrittenAsDocumentsDo(t *testing.T) {
	t.Parallel()
	require.Equal(t, "2d", spec.Duration(48*time.Hour).String())
	require.Equal(t, "1m30s", spec.Duration(90*time.Second).String())
}
