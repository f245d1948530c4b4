package spec_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

var update = flag.Bool("update", false, "write the published schemas anew")

func TestPublishedSchemasAreCurrent(t *testing.T) {
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
	_, err := spec.SchemaOf("agnet")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeNotFound})
	require.Contains(t, err.Error(), `"agent"`)
}

// What the reader takes, the published schema takes; what it refuses by shape, the schema refuses.
func TestPublishedSchemaAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	raw, err := spec.SchemaOf(spec.KindAgent)
	require.NoError(t, err)
	var doc any
	require.NoError(t, json.Unmarshal(raw, &doc))
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("agent.json", doc))
	schema, err := compiler.Compile("agent.json")
	require.NoError(t, err)

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
		var value any
		require.NoError(t, yaml.Load([]byte(matter), &value))
		b, err := json.Marshal(value)
		require.NoError(t, err)
		value, err = jsonschema.UnmarshalJSON(bytes.NewReader(b))
		require.NoError(t, err)
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

func TestKindOf(t *testing.T) {
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
	} {
		require.Equal(t, c.want, spec.KindOf(c.file, []byte(c.body)), c.file)
	}
}

func TestLoadFS(t *testing.T) {
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
	require.Equal(t, docs[0].Agent.Version, docs[0].Version)
	line, column := docs[0].Position("model")
	require.Equal(t, []int{3, 8}, []int{line, column})
	line, _ = docs[0].Position("tools[0]")
	require.Zero(t, line)

	files["c/agent.md"] = &fstest.MapFile{Data: good}
	files["d/x.yaml"] = &fstest.MapFile{Data: []byte("kind: agnt\n")}
	_, problems = spec.LoadFS(files, ".")
	require.Len(t, problems, 2)
	require.Contains(t, problems[0].Message, "agent one is in a/agent.md already")
	require.Equal(t, `did you mean "agent"?`, problems[1].Hint)

	_, problems = spec.LoadFS(files, "missing")
	require.Equal(t, spec.ProblemUnreadable, problems[0].Code)

	_, problems = spec.Load("x.txt", []byte("hello"))
	require.Equal(t, spec.ProblemUnknownKind, problems[0].Code)
}

func TestNearestNames(t *testing.T) {
	t.Parallel()
	tools := []string{"file.read", "file.write", "file.list", "todo.write", "deps.list"}
	for name, want := range map[string][]string{
		"file.raed":  {"file.read"},
		"File.Read":  {"file.read"},
		"file.lst":   {"file.list"},
		"flie.write": {"file.write"},
		"x":          {},
		"":           {},
	} {
		require.Equal(t, want, spec.NearestNames(name, tools), name)
	}
	require.Len(t, spec.NearestNames("aab", []string{"aaa", "aab", "aac", "aad"}), 3)
	require.Equal(t, "aab", spec.NearestNames("aab", []string{"aaa", "aab"})[0])
	require.Equal(t, `did you mean "file.read"?`, spec.Suggest("file.reed", tools))
	require.Equal(t, "known are a, b", spec.Suggest("completely.else", []string{"b", "a"}))
	require.Empty(t, spec.Suggest("x", nil))
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "48h": 48 * time.Hour, "3d": 72 * time.Hour, "1d12h": 36 * time.Hour, "1.5h": 90 * time.Minute, "0s": 0,
	} {
		got, err := spec.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, time.Duration(got), text)
	}
	for _, text := range []string{"", "3", "d", "3w", "-1h", "1h2d", "1 h", "999999999999h", "99999d9999999h"} {
		_, err := spec.ParseDuration(text)
		require.Error(t, err, text)
	}
	require.Equal(t, "2d", spec.Duration(48*time.Hour).String())
	require.Equal(t, "1m30s", spec.Duration(90*time.Second).String())
}
