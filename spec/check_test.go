package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// checkCatalog is a catalog as the test data writes it.
type checkCatalog struct {
	Tools  []jig.Tool        `json:"tools"`
	Agents []string          `json:"agents"`
	Skills []string          `json:"skills"`
	Specs  map[string]string `json:"specs"`
	// EntityTypes are documents. Without any, no entity type is known.
	EntityTypes []string `json:"entity_types"`
	// TypeNames are entity types of which only the names are known.
	TypeNames  []string            `json:"type_names"`
	Whitelists map[string][]string `json:"whitelists"`
}

func (c checkCatalog) build(t *testing.T) spec.Catalog {
	t.Helper()
	catalog := spec.Catalog{Tools: c.Tools, Agents: c.Agents, Skills: c.Skills, Whitelists: c.Whitelists}
	if c.Specs != nil {
		catalog.Specs = []spec.Execution{}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Specs)) {
		x, err := spec.LoadExecution(name, []byte(c.Specs[name]))
		require.NoError(t, err)
		catalog.Specs = append(catalog.Specs, x)
	}
	for _, text := range c.EntityTypes {
		entityType, err := spec.LoadEntityType("catalog.yaml", []byte(text))
		require.NoError(t, err)
		catalog.EntityTypes = append(catalog.EntityTypes, entityType)
	}
	for _, name := range c.TypeNames {
		catalog.EntityTypes = append(catalog.EntityTypes, entity.Type{Name: name})
	}
	return catalog
}

// checkCase is one case of testdata/check: documents by file name, and the complete list of problems that they have together.
type checkCase struct {
	Name      string            `json:"name"`
	Documents map[string]string `json:"documents"`
	// Catalog replaces catalog.json if the case needs another catalog.
	Catalog *checkCatalog `json:"catalog"`
	// Advise asks for advice instead of problems.
	Advise   bool `json:"advise"`
	Problems []struct {
		Document string `json:"document"`
		Path     string `json:"path"`
		Code     string `json:"code"`
		// Severity is error if left out. Line, Message and Hint are compared if given; the last two may be parts of the text.
		Severity string `json:"severity"`
		Line     int    `json:"line"`
		Message  string `json:"message"`
		Hint     string `json:"hint"`
	} `json:"problems"`
}

func readCheckCases(t *testing.T) map[string][]checkCase {
	t.Helper()
	files, err := filepath.Glob("testdata/check/*.yaml")
	require.NoError(t, err)
	cases := map[string][]checkCase{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		for text := range bytes.SplitSeq(body, []byte("\n---\n")) {
			var value any
			require.NoError(t, yaml.Load(text, &value), file)
			raw, err := json.Marshal(value)
			require.NoError(t, err)
			var c checkCase
			dec := json.NewDecoder(bytes.NewReader(raw))
			dec.DisallowUnknownFields()
			require.NoError(t, dec.Decode(&c), "%s: %s", file, text)
			cases[filepath.Base(file)] = append(cases[filepath.Base(file)], c)
		}
	}
	return cases
}

// load reads documents and checks that reading them finds no problems.
func load(t *testing.T, files map[string]string) []spec.Document {
	t.Helper()
	var docs []spec.Document
	for _, file := range slices.Sorted(maps.Keys(files)) {
		doc, problems := spec.Load(file, []byte(files[file]))
		require.Empty(t, problems.Errors())
		docs = append(docs, doc)
	}
	return docs
}

func sharedCatalog(t *testing.T) checkCatalog {
	t.Helper()
	raw, err := os.ReadFile("testdata/check/catalog.json")
	require.NoError(t, err)
	var c checkCatalog
	require.NoError(t, json.Unmarshal(raw, &c))
	c.Specs = map[string]string{}
	return c
}

func TestCheck_Cases(t *testing.T) {
	t.Parallel()
	shared := sharedCatalog(t)
	count := 0
	for file, cases := range readCheckCases(t) {
		for _, c := range cases {
			count++
			t.Run(strings.TrimSuffix(file, ".yaml")+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				catalog := shared
				if c.Catalog != nil {
					catalog = *c.Catalog
				}
				docs := load(t, c.Documents)
				problems := spec.Check(docs, catalog.build(t))
				if c.Advise {
					problems = spec.Advise(docs, catalog.build(t))
				}
				require.True(t, slices.IsSortedFunc(problems, func(a, b spec.Problem) int { return strings.Compare(a.Document, b.Document) }))
				var want, got []string
				for _, p := range c.Problems {
					severity := p.Severity
					if severity == "" {
						severity = "error"
					}
					if p.Document == "" && len(docs) == 1 {
						p.Document = docs[0].Path
					}
					want = append(want, fmt.Sprint(p.Document, " ", p.Path, " ", p.Code, " ", severity))
				}
				for _, p := range problems {
					got = append(got, fmt.Sprint(p.Document, " ", p.Path, " ", p.Code, " ", p.Severity))
				}
				require.ElementsMatch(t, want, got, "%v", problems)
				for _, w := range c.Problems {
					i := slices.IndexFunc(problems, func(p spec.Problem) bool {
						return p.Path == w.Path && string(p.Code) == w.Code && (w.Document == "" || w.Document == p.Document) && strings.Contains(p.Message, w.Message)
					})
					require.GreaterOrEqual(t, i, 0, "%q is in no message of %v", w.Message, problems)
					require.Contains(t, problems[i].Hint, w.Hint)
					require.NotZero(t, problems[i].Line, "%v", problems[i])
					if w.Line > 0 {
						require.Equal(t, w.Line, problems[i].Line, "%v", problems[i])
					}
				}
			})
		}
	}
	require.GreaterOrEqual(t, count, 60)
}

// many makes n compositions, each with the calls that calls returns for it.
func many(t *testing.T, n int, calls func(i int) []int) []spec.Document {
	t.Helper()
	docs := make([]spec.Document, n)
	for i := range docs {
		name := fmt.Sprintf("loop.step%04d", i)
		x := &spec.Execution{Kind: spec.KindComposition, Name: name, Tool: jig.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}}
		for _, to := range calls(i) {
			x.Steps = append(x.Steps, spec.Step{Tool: fmt.Sprintf("loop.step%04d", to), Input: json.RawMessage(`{"a":"${input.a}"}`)})
		}
		docs[i] = spec.Document{Kind: spec.KindComposition, Name: name, Path: name + ".yaml", Value: x}
	}
	return docs
}

func strict() spec.Catalog {
	return spec.Catalog{Tools: []jig.Tool{}, Agents: []string{}, Skills: []string{}, Specs: []spec.Execution{}, EntityTypes: []entity.Type{}}
}

func TestCheck_FindsLongCycles(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 1000} {
		docs := many(t, n, func(i int) []int { return []int{(i + 1) % n} })
		problems := spec.Check(docs, strict())
		require.Len(t, problems, 1, "a cycle of %d", n)
		require.Equal(t, spec.ProblemCycle, problems[0].Code)
		require.Equal(t, "loop.step0000.yaml", problems[0].Document)
		require.Equal(t, "steps[0].tool", problems[0].Path)
		require.Equal(t, n, strings.Count(problems[0].Message, " -> "), "the whole path")
		require.Empty(t, spec.Check(docs[:n-1], spec.Catalog{}), "without its last document it is a chain")
	}
}

// Documents that all call each other have more cycles than can ever be listed. Check reports some of them without a long search.
func TestCheck_OfAThousandDocumentsIsCheap(t *testing.T) { //nolint:paralleltest // the allocations of other tests would count
	const n = 1000
	for name, calls := range map[string]func(i int) []int{
		"everybody calls a hundred": func(i int) []int {
			all := make([]int, 100)
			for j := range all {
				all[j] = (i + j*j) % n
			}
			return all
		},
		"ladder": func(i int) []int { // 2^500 ways from the first to the last and back
			return []int{(i + 1) % n, (i + 2) % n}
		},
		"neighbours": func(i int) []int { return []int{(i + n - 1) % n, (i + 1) % n} },
	} {
		docs := many(t, n, calls)
		var problems spec.Problems
		_, objects := allocated(func() { problems = spec.Check(docs, strict()) }) // following every path would take forever
		require.Less(t, objects, uint64(slack*500_000), name)
		require.Len(t, problems, 21, name)
		require.Contains(t, problems[20].Message, "there are more than 20 cycles")
	}
	docs := many(t, n, func(i int) []int {
		var before []int
		for to := max(0, i-20); to < i; to++ {
			before = append(before, to)
		}
		return before
	})
	var problems spec.Problems
	_, objects := allocated(func() { problems = spec.Check(docs, strict()) })
	require.Empty(t, problems)
	require.Less(t, objects, uint64(slack*500_000))
	docs = many(t, n, func(i int) []int { return []int{i + 5000, i + 6000, i + 7000} })
	_, objects = allocated(func() { problems = spec.Check(docs, strict()) })
	require.Len(t, problems, 3*n)
	require.Less(t, objects, uint64(slack*500_000))
}

// Schemas that refer to themselves or branch without end are abandoned, not followed.
func TestCheck_OfHostileSchemasIsCheap(t *testing.T) { //nolint:paralleltest // the allocations of other tests would count
	branching := `true`
	for range 40 {
		branching = `{"anyOf":[{"$ref":"#/x"},{"allOf":[{"$ref":"#/x"},{"$ref":"#/x"}]}]}`
	}
	for name, schema := range map[string]string{
		"itself":     `{"$ref":"#"}`,
		"each other": `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"branching":  `{"x":` + branching + `,"$ref":"#/x"}`,
		"no schema":  `[1,2`,
		"nowhere":    `{"$ref":"#/$defs/gone/1/2"}`,
		"elsewhere":  `{"$ref":"https://example.com/schema"}`,
		"old":        `{"$schema":"http://json-schema.org/draft-04/schema#","type":"string"}`,
	} {
		docs := many(t, 1, func(int) []int { return nil })
		docs[0].Execution().Steps = []spec.Step{{Tool: "a.b", Input: json.RawMessage(`{"a":[1,{"b":"c"}]}`)}}
		c := spec.Catalog{Tools: []jig.Tool{{Name: "a.b", InputSchema: json.RawMessage(schema)}}}
		cheap(t, func() { require.Empty(t, spec.Check(docs, c), name) })
	}
}

// A name is reported as unknown only if the catalog lists names of its kind.
func TestCheck_WithAPartOfTheCatalog(t *testing.T) {
	t.Parallel()
	docs := load(t, map[string]string{
		"a.yaml": `{kind: composition, name: a, steps: [{id: x, tool: b.c}, {id: y, composition: d}, {id: z, prompt: {mode: agent, agent: e}},
		  {id: t, task: {task: f, entity: e}}, {id: s, prompt: {mode: skill, skill: g, model: openai/x, prompt: hi}}]}`,
		"b.md": "---\nname: b\nmodel: openai/x\ntools: [no.such]\n---\nDo it.",
	})
	require.Empty(t, spec.Check(docs, spec.Catalog{}))
	require.Len(t, spec.Check(docs, strict()), 6)
	require.Len(t, spec.Check(docs, spec.Catalog{Tools: []jig.Tool{}}), 2)
}
