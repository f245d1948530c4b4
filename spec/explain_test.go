package spec_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run go test ./spec -update")
}

func TestExplain_Golden(t *testing.T) {
	t.Parallel()
	tools := sharedCatalog(t).Tools
	files, err := filepath.Glob("testdata/explain/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		x, err := spec.LoadExecution(file, body)
		require.NoError(t, err)
		base := strings.TrimSuffix(file, ".yaml")
		e := spec.Explain(x, tools...)
		golden(t, base+".txt", e.Text())
		golden(t, base+".mmd", e.Mermaid())
		requireMermaid(t, e.Mermaid())
		requirePlain(t, e.Text())

		unknown := spec.Explain(x)
		require.NotContains(t, unknown.Text(), "no such tool")
		require.Equal(t, strings.Count(e.Mermaid(), "-->"), strings.Count(unknown.Mermaid(), "-->"))
	}
}

func TestExplainAgent_Golden(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/explain/agent.md")
	require.NoError(t, err)
	agent, err := spec.ParseAgent("agent.md", body)
	require.NoError(t, err)
	golden(t, "testdata/explain/agent.txt", spec.ExplainAgent(agent, sharedCatalog(t).Tools...))

	alone := spec.ExplainAgent(jig.Agent{Name: "a", Model: "openai/x", Tools: []string{"file.*", "todo.write"}})
	require.Contains(t, alone, "   file.*\n   todo.write\n")
	require.Contains(t, spec.ExplainAgent(jig.Agent{Name: "a", Model: "openai/x"}), "It has no tools.")
}

// requirePlain checks that a text contains nothing that moves a terminal's cursor.
func requirePlain(t *testing.T, text string) {
	t.Helper()
	require.NotRegexp(t, `[\x00-\x09\x0b-\x1f\x7f\x{80}-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`, text)
	for line := range strings.SplitSeq(text, "\n") {
		require.Less(t, len(line), 1200)
	}
}

// The lines of a flowchart as the package writes them. A label has no character with a meaning in Mermaid or HTML; brackets are safe in
// quotes.
var (
	mermaidLabel    = `"(?:[^"#&<>` + "`" + `%\\:$|*;\x00-\x1f]|#(?:quot|lt|gt|amp|\d+);|<br/>)+"`
	mermaidNode     = regexp.MustCompile(`^ *(n\d+)(?:\[L\]|\{L\}|\(\[L\]\)|\(\(L\)\)|\[/L/\]|\{\{L\}\})$`)
	mermaidFrame    = regexp.MustCompile(`^ *subgraph (g\d+) \[L\]$`)
	mermaidEdge     = regexp.MustCompile(`^  ([ng]\d+) (?:-->|-\.->)(?:\|L\|)? ([ng]\d+)$`)
	mermaidAllLabel = regexp.MustCompile(mermaidLabel)
)

// requireMermaid parses a flowchart: nodes in balanced frames, then edges between existing nodes and frames. Every node except the first
// must be reachable.
func requireMermaid(t *testing.T, chart string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(chart, "\n"), "\n")
	require.Equal(t, "flowchart TD", lines[0])
	known, reached := map[string]bool{}, map[string]bool{"n1": true}
	depth, edges := 0, false
	for _, line := range lines[1:] {
		for _, text := range regexp.MustCompile(`"[^"]*"`).FindAllString(line, -1) {
			require.Regexp(t, "^"+mermaidLabel+"$", text)
			for part := range strings.SplitSeq(strings.Trim(text, `"`), "<br/>") {
				require.NotRegexp(t, `^(?:\d+[.)]|[-+])`, part, "Markdown takes it for a list")
			}
		}
		bare := mermaidAllLabel.ReplaceAllString(line, "L")
		switch {
		case mermaidNode.MatchString(bare):
			require.False(t, edges, line)
			known[mermaidNode.FindStringSubmatch(bare)[1]] = true
		case mermaidFrame.MatchString(bare):
			require.False(t, edges, line)
			known[mermaidFrame.FindStringSubmatch(bare)[1]] = true
			depth++
		case strings.TrimSpace(bare) == "end":
			depth--
			require.GreaterOrEqual(t, depth, 0)
		default:
			m := mermaidEdge.FindStringSubmatch(bare)
			require.NotNil(t, m, "not a line of a flowchart: %s", line)
			edges = true
			require.True(t, known[m[1]], line)
			require.True(t, known[m[2]], line)
			reached[m[2]] = true
		}
	}
	require.Zero(t, depth)
	for id := range known {
		require.True(t, reached[id] || id[0] == 'g', "nothing leads to %s in\n%s", id, chart)
	}
}

// The drawing of an arbitrary document is well-formed.
func FuzzExplain(f *testing.F) {
	for _, text := range []string{"end", `"]`, "1. x", "- x", "#quot;", "%%{init}%%", "a\nb", "`*x*`", "<br/>", "\x1b[0m", "\u202e", "::: ", "@{", "x --> y"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		step := spec.Step{ID: text, If: spec.Expression(text), ForEach: spec.Expression(text), Tool: text, Undo: &spec.Undo{Tool: text}}
		step.OnError = &spec.OnError{When: spec.Expression(text), As: text, Catch: []spec.Step{{Fail: &spec.Fail{Message: text, Reason: text}}}}
		x := spec.Execution{Kind: spec.KindComposition, Name: text, Description: text, Version: text, Steps: []spec.Step{
			step,
			{ID: text, Wait: text},
			{Switch: []spec.Case{{When: spec.Expression(text), Steps: []spec.Step{step}}}},
			{ID: text, Parallel: []spec.Step{step, {}}},
			{ID: text, ForEach: "x", Steps: []spec.Step{{Emit: &spec.Emit{Event: text}}}},
			{Set: []byte(text)},
		}, Output: []byte(text)}
		e := spec.Explain(x, jig.Tool{Name: text, Permission: jig.PermissionWrite})
		requireMermaid(t, e.Mermaid())
		requirePlain(t, e.Text())
		requirePlain(t, spec.ExplainAgent(jig.Agent{Name: text, Description: text, Model: text, Tools: []string{text, text + "*"}}))
	})
}

// The reader refuses an empty list of steps; the drawing does not.
func TestExplain_EmptyDocuments(t *testing.T) {
	t.Parallel()
	e := spec.Explain(spec.Execution{Kind: spec.KindComposition, Name: "a", Steps: []spec.Step{{}}})
	require.Contains(t, e.Text(), "1. nothing")
	requireMermaid(t, e.Mermaid())
	requireMermaid(t, spec.Explain(spec.Execution{}).Mermaid())
}

// Every construct that has a test run can be drawn, and Check finds nothing wrong with it without a catalog.
func TestExplain_DrawsEveryConstruct(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/runs/*.yaml")
	require.NoError(t, err)
	count := 0
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []struct {
			Name     string
			Document string
		}
		require.NoError(t, yaml.Load(body, &cases), file)
		for _, c := range cases {
			doc, problems := spec.Load(c.Name+".yaml", []byte(c.Document))
			if len(problems.Errors()) > 0 || doc.Execution() == nil {
				continue
			}
			count++
			require.Empty(t, spec.Check([]spec.Document{doc}, spec.Catalog{}), c.Name)
			e := spec.Explain(*doc.Execution())
			requireMermaid(t, e.Mermaid())
			requirePlain(t, e.Text())
			require.NotRegexp(t, `(?m)(\. |: )nothing$`, e.Text(), c.Name)
		}
	}
	require.GreaterOrEqual(t, count, 40)
}

// explained returns the text that describes a document by itself.
func explained(doc spec.Document) string {
	text, _ := spec.ExplainDocument(doc, nil)
	return text
}
