package spec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/costtest"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// mostOfDocument limits the bytes that processing one document may allocate in total.
const mostOfDocument = 256 << 20

// allOf runs everything on a document that validating, explaining and registering run on it.
func allOf(body string) spec.Problems {
	doc, problems := spec.Load("fuzz.yaml", []byte(body))
	if problems.OrNil() != nil {
		return problems
	}
	problems = append(problems, spec.Check([]spec.Document{doc}, spec.Catalog{EntityTypes: anyType})...)
	switch {
	case doc.Execution() != nil:
		problems = append(problems, spec.CheckShapes(doc, anyShape)...)
		e := spec.Explain(*doc.Execution())
		_, _ = e.Text(), e.Mermaid()
	case doc.EntityType() != nil:
		e := spec.ExplainEntityType(*doc.EntityType())
		_, _ = e.Text(), e.Mermaid()
		entity.FilterFields(*doc.EntityType())
		spec.ContentSchema(*doc.EntityType())
	}
	return problems
}

func repeated(n int, item func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(item(i))
	}
	return b.String()
}

// heavyDocuments returns documents that would take unlimited time or memory if the code repeated, compared or compiled their parts without
// a limit.
func heavyDocuments() map[string]string {
	input := func(schema string) string {
		return "kind: composition\nname: a.b\ninput_schema: {type: object, " + schema + "}\nsteps: [{set: {a: 1}}]\n"
	}
	long := strings.Repeat("k", 100_000)
	return map[string]string{
		"a long key over many":         compositionHead + "  - set: {" + long + ": {" + repeated(5_000, func(i int) string { return fmt.Sprintf("a%d: 1,", i) }) + "}}\n",
		"a long property over many":    input("properties: {" + long + ": {type: object, properties: {" + repeated(3_000, func(i int) string { return fmt.Sprintf("a%d: {},", i) }) + "}}}"),
		"a large pattern":              input("properties: {a: {pattern: '" + strings.Repeat("x{1000}", 30_000) + "'}}"),
		"a large pattern of 900 bytes": input("properties: {a: {pattern: '" + strings.Repeat("x{1000}", 120) + "'}}"),
		"patterns without case":        input("properties: {" + repeated(200, func(i int) string { return fmt.Sprintf("a%d: {pattern: '(?i)[b-𞥂]'},", i) }) + "}"),
		"many large patterns":          input("properties: {" + repeated(2_000, func(i int) string { return fmt.Sprintf("a%d: {pattern: '(x{400}){6}'},", i) }) + "}"),
		"a field with a large pattern": "{kind: entity_type, name: a, fields: [{name: a, type: text, pattern: '" + strings.Repeat("x{1000}", 100) + "'}]}",
		"fields with large patterns":   "{kind: entity_type, name: a, fields: [" + repeated(400, func(i int) string { return fmt.Sprintf("{name: a%d, type: text, pattern: '(x{400}){6}'},", i) }) + "]}",
		"long names, nearly the same": compositionHead + repeated(60, func(i int) string {
			return fmt.Sprintf("  - {id: %s%d, set: {a: '${steps.%s%d.data}'}}\n", strings.Repeat("a", 1_500), i, strings.Repeat("a", 1_500), 100+i)
		}),
	}
}

// Not parallel, because the cost of each document is measured.
func TestLoad_IsBoundedUnderAttack(t *testing.T) { //nolint:paralleltest // see above
	for name, body := range heavyDocuments() { //nolint:paralleltest // see above
		t.Run(name, func(t *testing.T) {
			costtest.AtMost(t, 64<<20, func() {
				problems := allOf(body)
				require.NotEmpty(t, problems.Errors())
				require.Less(t, len(problems.Error()), 64<<10)
			})
		})
	}
}

// nestedCalls returns a composition with the given input schema, and another one that calls it with the given input.
func nestedCalls(schema, input string) []spec.Document {
	var docs []spec.Document
	for _, body := range []string{
		`{"kind":"composition","name":"a.callee","input_schema":{"type":"object",` + schema + `},"steps":[{"set":{"a":1}}]}`,
		`{"kind":"composition","name":"a.caller","steps":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a","composition":"a.callee","input":`+input+`},`, 1), ",") + `]}`,
	} {
		doc, problems := spec.Load("a.json", []byte(body))
		if problems.OrNil() != nil {
			panic(problems)
		}
		docs = append(docs, doc)
	}
	return docs
}

// The work of comparing literal inputs with schemas is bounded: choices, patterns and reported problems are limited.
func TestCheck_ComparisonsWithSchemasAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	many := strings.TrimSuffix(strings.Repeat(`"aaaaaaaaaa",`, 400), ",")
	for name, c := range map[string][2]string{ //nolint:paralleltest // cheap rows
		"choices that double": {`"properties":{"p":{"$ref":"#/$defs/d0"}},"$defs":{` + doubling.String() + `"d40":{"type":"string"}}`, `{"p":1}`},
		"a large enum":        {`"properties":{"p":{"items":{"enum":[` + many + `]}}}`, `{"p":[` + strings.ReplaceAll(many, "a", "b") + `]}`},
		"large values shown":  {`"properties":{"p":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"const":1},`, 400), ",") + `]}}`, `{"p":[` + many + `]}`},
		"a slow pattern":      {`"properties":{"p":{"items":{"pattern":"(a?){500}z"}}}`, `{"p":[` + many + `]}`},
		"unknown keys":        {`"additionalProperties":false,"properties":{` + strings.TrimSuffix(repeated(500, func(i int) string { return fmt.Sprintf(`"aaaaaaaaaaaaaaaa%d":{},`, i) }), ",") + `}`, `{` + strings.TrimSuffix(repeated(400, func(i int) string { return fmt.Sprintf(`"aaaaaaaaaaaaaaab%d":1,`, i) }), ",") + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			docs := nestedCalls(c[0], c[1])
			costtest.AtMost(t, 64<<20, func() {
				problems := spec.Check(docs, spec.Catalog{})
				require.Less(t, len(problems), 3_000)
			})
		})
	}
}

// A pattern is compiled once for all texts that it is matched with, and matching that takes too many steps is stopped.
func TestCheckContent_PatternsAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	kind := entity.Type{Name: "a", Fields: []entity.Field{{Name: "a", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldText, Pattern: "^a*(a?){500}z?$"}}}}
	texts := func(n, length int) json.RawMessage {
		item := `"` + strings.Repeat("a", length) + `",`
		return json.RawMessage(`{"a":[` + strings.TrimSuffix(strings.Repeat(item, n), ",") + `]}`)
	}
	costtest.AtMost(t, slack*32<<20, func() {
		require.NoError(t, spec.CheckContent(kind, texts(5_000, 5), false))
		require.ErrorContains(t, spec.CheckContent(kind, texts(1, 100_000), false), "matching takes more than")
		require.ErrorContains(t, spec.CheckContent(kind, texts(500, 1_000), false), "matching takes more than")
		kind.Fields[0].Items.Pattern = strings.Repeat("(a?){1000}", 90)
		require.ErrorContains(t, spec.CheckContent(kind, texts(100, 1), false), "at most 2500 are allowed")
	})
}

// The work of reading, checking, explaining and drawing an arbitrary document is limited.
func FuzzDocument(f *testing.F) {
	for _, body := range heavyDocuments() {
		f.Add(body)
	}
	for _, c := range hostileSpecs() {
		f.Add(c.body)
	}
	f.Add(fullComposition)
	f.Add(fullThinTool)
	f.Fuzz(func(t *testing.T, body string) {
		costtest.AtMost(t, mostOfDocument, func() {
			for _, p := range allOf(body) {
				require.NotEmpty(t, p.Message)
			}
		})
	})
}
