package spec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

const moduleType = "testdata/entity/module.yaml"

func TestEntityType_ReadsEveryKey(t *testing.T) {
	t.Parallel()
	got := entityTypeOf(t, moduleType)
	body, err := os.ReadFile(moduleType)
	require.NoError(t, err)
	require.Equal(t, "module", got.Name)
	require.Equal(t, "Module", got.Title)
	require.Equal(t, 5, got.MaxParallel)
	require.Len(t, got.Version, 64)
	one, high := 1, 20
	require.Equal(t, entity.Field{
		Name: "licences", Type: entity.FieldArray, Task: "licence", Items: &entity.Field{Type: entity.FieldText}, MaxLength: &high,
	}, got.Fields[3])
	require.Equal(t, entity.Field{Name: "direct", Type: entity.FieldBoolean, Default: json.RawMessage("true")}, got.Fields[6])
	require.Equal(t, entity.Field{
		Name: "source_entity_ids", Type: entity.FieldRelation, Target: "module", Many: true, Required: true, MinLength: &one,
	}, got.Fields[8].Items.Fields[1])
	require.Equal(t, []entity.Task{
		{
			ID: "licence", Kind: entity.TaskTool, Use: "deps.license", Attempts: 3, Backoff: 2 * time.Second,
			Input: json.RawMessage(`{"module":"${entity.content.path}","version":"${entity.content.version}"}`),
			Value: "result.licenses.map(l, l.spdx)", Sources: "[entity.id]",
		},
		{ID: "risk", Kind: entity.TaskCompute, DependsOn: []string{"licence"}, Compute: "size(tasks.licence) == 0 ? 'unknown' : 'low'", Attempts: 1},
		{
			ID: "text", Kind: entity.TaskAgent, Use: "module-writer", DependsOn: []string{"licence", "risk"}, When: "tasks.risk != 'unknown'", Attempts: 1,
			Input:        json.RawMessage(`{"licences":"${tasks.licence}","risk":"${tasks.risk}"}`),
			OutputSchema: json.RawMessage(`{"type":"object","required":["summary","claims"],"properties":{"summary":{"type":"string"},"claims":{"type":"array"}}}`),
		},
		{ID: "summary", Kind: entity.TaskCompute, DependsOn: []string{"text"}, Compute: "tasks.text.summary", Attempts: 1},
		{ID: "claims", Kind: entity.TaskCompute, DependsOn: []string{"text"}, Compute: "tasks.text.claims", Attempts: 1},
		{ID: "check", Kind: entity.TaskCitations, DependsOn: []string{"claims"}, Claims: "claims", Among: "input.modules", Attempts: 1},
	}, got.Tasks)

	var value any
	require.NoError(t, yaml.Load(body, &value))
	asJSON, err := json.Marshal(value)
	require.NoError(t, err)
	for file, text := range map[string][]byte{"module.yaml": body, "module.json": asJSON} {
		doc, problems := spec.Load(file, text)
		require.Empty(t, problems)
		require.Equal(t, spec.KindEntityType, doc.Kind)
		require.Equal(t, "module", doc.Name)
		same := *doc.EntityType()
		same.Version = got.Version
		want, err := json.Marshal(got)
		require.NoError(t, err)
		read, err := json.Marshal(same)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(read))
		line, _ := doc.Position("tasks[2].when")
		require.Positive(t, line)
		require.Empty(t, spec.Check([]spec.Document{doc}, spec.Catalog{Tools: []jig.Tool{{Name: "deps.license", Permission: jig.PermissionRead}}}))
	}
}

func TestEntityType_HasDefaults(t *testing.T) {
	t.Parallel()
	got, err := spec.LoadEntityType("a.yaml", []byte("{kind: entity_type, name: a, fields: [{name: a, type: text, task: a}], tasks: [{id: a, tool: a.b, attempts: 2}]}"))
	require.NoError(t, err)
	require.Equal(t, spec.DefaultMaxParallel, got.MaxParallel)
	require.Equal(t, spec.DefaultBackoff, got.Tasks[0].Backoff)
	_, err = spec.LoadEntityType("a.yaml", []byte("{kind: tenant, name: a, fields: [{name: a, type: text}]}"))
	require.ErrorContains(t, err, "kind: entity_type")
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}

func TestSchema_OfEntityTypesAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	schema := compiled(t, spec.KindEntityType)
	body, err := os.ReadFile(moduleType)
	require.NoError(t, err)
	field := func(rest string) string { return "{kind: entity_type, name: a, fields: [{name: a, " + rest + "}]}" }
	task := func(rest string) string {
		return "{kind: entity_type, name: a, fields: [{name: a, type: number, task: a}], tasks: [{id: a, " + rest + "}]}"
	}
	for text, ok := range map[string]bool{
		string(body):                               true,
		"{kind: entity_type, name: a}":             false,
		"{kind: entity_type, name: a, fields: []}": false,
		"{kind: entity_type, name: a.b, fields: [{name: a, type: x}]}":   false,
		"{kind: entity_types, name: a, fields: [{name: a, type: text}]}": false,
		field("type: text"):                                                       true,
		field("type: text, label: A, display: code"):                              true,
		field("type: text, display: toggle"):                                      false,
		field("type: texts"):                                                      false,
		field("label: A"):                                                         false,
		field("type: text, options: [a]"):                                         false,
		field("type: text, min_length: 1.5"):                                      false,
		field("type: text, min_length: -1"):                                       false,
		field("type: text, default: x"):                                           true,
		field("type: number, minimum: 1, maximum: 2.5"):                           true,
		field("type: number, minimum: low"):                                       false,
		field("type: number, integer: true, default: 1"):                          true,
		field("type: number, pattern: a"):                                         false,
		field("type: enum"):                                                       false,
		field("type: enum, options: [a, b]"):                                      true,
		field("type: enum, options: []"):                                          false,
		field("type: enum, options: [1]"):                                         false,
		field("type: date, time: true"):                                           true,
		field("type: email, time: true"):                                          false,
		field("type: relation"):                                                   false,
		field("type: relation, target: b, many: true"):                            true,
		field("type: relation, target: B"):                                        false,
		field("type: object"):                                                     false,
		field("type: object, fields: [{name: b, type: url, required: true}]"):     true,
		field("type: object, fields: [{type: url}]"):                              false,
		field("type: array"):                                                      false,
		field("type: array, items: {type: media, display: image}, max_length: 3"): true,
		field("type: array, items: {type: array, items: {type: phone}}"):          true,
		field("type: array, items: {type: text, name: b}"):                        false,
		field("type: array, items: {type: text, required: true}"):                 false,
		field("type: array, items: [{type: text}]"):                               false,
		task("compute: 1"):                                                        true,
		task("compute: [1]"):                                                      false,
		task("compute: 1, tool: a.b"):                                             false,
		task("when: true"):                                                        false,
		task("compute: 1, input: {}"):                                             false,
		task("compute: 1, sources: '[]'"):                                         true,
		task("tool: a.b, input: {a: 1}, value: result.x, sources: '[result.y]'"):  true,
		task("tool: a.b, input: '${input}'"):                                      true,
		task("tool: a.b, input: 3"):                                               false,
		task("tool: read"):                                                        false,
		task("prompt: summarise, attempts: 2, backoff: 3s"):                       true,
		task("prompt: summarise, backoff: 3s"):                                    false,
		task("prompt: summarise, attempts: 0"):                                    false,
		task("composition: a.b, output_schema: {type: array}"):                    true,
		task("composition: a.b, output_schema: true"):                             true,
		task("composition: a.b, output_schema: text"):                             false,
		task("agent: writer, among: '[]'"):                                        false,
		task("compute: 1, among: '[]'"):                                           false,
		task("agent: writer, depends_on: a"):                                      false,
		task("agent: writer, retry: {}"):                                          false,
	} {
		_, err := spec.LoadEntityType("a.yaml", []byte(text))
		if ok {
			require.NoError(t, err, text)
			require.NoError(t, schema.Validate(valueOf(t, text)), text)
		} else {
			require.Error(t, err, text)
			require.Error(t, schema.Validate(valueOf(t, text)), text)
		}
	}
}

func TestExplainEntityType_Golden(t *testing.T) {
	t.Parallel()
	doc := entityTypeOf(t, moduleType)
	doc.Version = "VERSION"
	e := spec.ExplainEntityType(doc, jig.Tool{Name: "deps.license", Approval: jig.ApprovalAlwaysAsk}.WithDefaults())
	golden(t, "testdata/entity/module.txt", e.Text())
	golden(t, "testdata/entity/module.mmd", e.Mermaid())
	requireMermaid(t, e.Mermaid())
	requirePlain(t, e.Text())
	require.Contains(t, e.Text(), "licence: call deps.license; asks")
	require.NotContains(t, spec.ExplainEntityType(doc).Text(), "asks a person")
	bare := spec.ExplainEntityType(entity.Type{Name: "a\x1b[2J", Fields: []entity.Field{{Name: "a", Type: entity.FieldText}}})
	requirePlain(t, bare.Text())
	require.NotContains(t, bare.Text(), "tasks")
	requireMermaid(t, bare.Mermaid())
	loop := spec.ExplainEntityType(entity.Type{Tasks: []entity.Task{{ID: "a", DependsOn: []string{"b"}}, {ID: "b", DependsOn: []string{"a"}}}})
	require.Contains(t, loop.Text(), "after a")
}

func TestExplainEntityType_NamesEveryTypeAndTask(t *testing.T) {
	t.Parallel()
	text := spec.ExplainEntityType(entity.Type{
		Name: "a", Fields: []entity.Field{
			{Name: "a", Type: entity.FieldEnum, Options: strings.Split("a,b,c,d,e,f,g,h,i,j,k,l", ",")},
			{Name: "b", Type: entity.FieldRelation, Target: "x"},
			{Name: "c", Type: entity.FieldNumber, Integer: true},
			{Name: "d", Type: entity.FieldDate, Time: true},
		},
		Tasks: []entity.Task{{ID: "p", Kind: entity.TaskPrompt, Use: "why"}, {ID: "q", Kind: entity.TaskComposition, Use: "do"}},
	}).Text()
	for _, part := range []string{"a: a | b", "and 2 more", "b: relation to x", "c: whole number", "d: date and time", "p: ask why", "q: run do"} {
		require.Contains(t, text, part)
	}
}

// The result of an expression must have the type that its field stores, as far as CEL has such a type.
func TestEntityType_ExpressionsFitTheirFields(t *testing.T) {
	t.Parallel()
	for field, gives := range map[string]string{
		"type: text": "'a'", "type: number": "1", "type: boolean": "true", "type: date": "'2026-01-01'", "type: enum, options: [a]": "'a'",
		"type: url": "'https://a'", "type: email": "'a@b'", "type: phone": "'+49'", "type: media": "'art_'", "type: relation, target: a": "'a'",
		"type: relation, target: a, many: true": "['a']", "type: object, fields: [{name: a, type: text}]": "{'a': 'b'}", "type: array, items: {type: text}": "['a']",
	} {
		document := func(source string) []byte {
			return []byte("kind: entity_type\nname: a\nfields: [{name: a, task: t, " + field + "}]\ntasks: [{id: t, compute: \"" + source + "\"}]\n")
		}
		_, err := spec.LoadEntityType("a.yaml", document(gives))
		require.NoError(t, err, field)
		_, err = spec.LoadEntityType("a.yaml", document("input.x"))
		require.NoError(t, err, field)
		for _, other := range []string{"'a'", "true", "['a']", "{'a': 'b'}"} {
			_, err := spec.LoadEntityType("a.yaml", document(other))
			loose := strings.HasPrefix(field, "type: number") || strings.HasPrefix(field, "type: date")
			require.Equal(t, loose || other[:1] == gives[:1], err == nil, "%s: %s: %v", field, other, err)
		}
	}
}

// randomTasks makes a random graph of tasks, in which each task may depend only on those before it. It returns the dependencies of each
// task: the direct ones, and all of them.
func randomTasks(d fieldDice, n int) (tasks [][]int, all []map[int]bool) {
	for i := range n {
		needs, reach := map[int]bool{}, map[int]bool{}
		for range d.IntN(4) {
			if i > 0 {
				needs[i-1-d.IntN(min(i, 20))] = true
			}
		}
		tasks = append(tasks, nil)
		for j := range i {
			if !needs[j] {
				continue
			}
			tasks[i] = append(tasks[i], j)
			reach[j] = true
			for k := range all[j] {
				reach[k] = true
			}
		}
		all = append(all, reach)
	}
	return tasks, all
}

// writeTasks writes the entity type with its tasks in random order. reads says which other task a task reads in addition.
func writeTasks(d fieldDice, needs [][]int, reads map[int]int) string {
	var b strings.Builder
	b.WriteString("kind: entity_type\nname: a\nfields: [{name: a, type: text}]\ntasks:\n")
	for _, i := range d.Perm(len(needs)) {
		names := make([]string, 0, len(needs[i]))
		for _, j := range needs[i] {
			names = append(names, fmt.Sprintf("t%d", j))
		}
		source := fmt.Sprint(i)
		if j, ok := reads[i]; ok {
			source = fmt.Sprintf("tasks.t%d", j)
		}
		fmt.Fprintf(&b, "  - {id: t%d, depends_on: [%s], compute: %s}\n", i, strings.Join(names, ", "), source)
	}
	return b.String()
}

func errorsOf(problems spec.Problems) []string {
	var all []string
	for _, p := range problems.Errors() {
		all = append(all, string(p.Code))
	}
	return all
}

// Any graph of tasks without a cycle is accepted, in any order of the tasks. A task may read only the tasks that it depends on, and
// an edge from a task back to one that depends on it makes a cycle.
func TestEntityType_RandomGraphsOfTasks(t *testing.T) {
	t.Parallel()
	cycles, strangers := 0, 0
	for seed := range uint64(60) {
		d := fieldDice{rand.New(rand.NewPCG(seed, 3))}
		n := pick(d, 2, 5, 20, 60)
		needs, all := randomTasks(d, n)
		reads := map[int]int{}
		for i := range n {
			for j := range all[i] {
				reads[i] = j
			}
		}
		_, problems := spec.Load("a.yaml", []byte(writeTasks(d, needs, reads)))
		require.Empty(t, errorsOf(problems), "seed %d: %s", seed, problems)

		reader, other := d.IntN(n), d.IntN(n)
		if !all[reader][other] {
			strangers++
			reads[reader] = other
			_, problems = spec.Load("a.yaml", []byte(writeTasks(d, needs, reads)))
			require.Equal(t, []string{"STEP_ORDER"}, errorsOf(problems), "seed %d", seed)
			delete(reads, reader)
		}
		tried := 0
		for i := range n {
			for j := range all[i] {
				needs[j] = append(needs[j], i)
				_, problems = spec.Load("a.yaml", []byte(writeTasks(d, needs, nil)))
				require.Equal(t, []string{"CYCLE"}, errorsOf(problems), "seed %d", seed)
				require.Contains(t, problems.Errors().Error(), " -> ")
				needs[j] = needs[j][:len(needs[j])-1]
				cycles, tried = cycles+1, tried+1
				break
			}
			if tried == 3 {
				break
			}
		}
	}
	require.Greater(t, cycles, 50)
	require.Greater(t, strangers, 20)
}

// chainOf returns an entity type whose tasks form a chain of length n.
func chainOf(n int) string {
	var b strings.Builder
	b.WriteString("kind: entity_type\nname: a\nfields: [{name: a, type: number, task: t0}]\ntasks:\n")
	for i := range n {
		if i < n-1 {
			fmt.Fprintf(&b, "  - {id: t%d, depends_on: [t%d], compute: tasks.t%d}\n", i, i+1, i+1)
			continue
		}
		fmt.Fprintf(&b, "  - {id: t%d, compute: 1}\n", i)
	}
	return b.String()
}

func TestEntityType_Limits(t *testing.T) {
	t.Parallel()
	codes := func(text string) []string {
		_, problems := spec.Load("a.yaml", []byte(text))
		return errorsOf(problems)
	}
	require.Empty(t, codes(chainOf(spec.MaxTaskDepth)))
	require.Equal(t, []string{"TOO_DEEP"}, codes(chainOf(spec.MaxTaskDepth+1)))

	wide := func(n int) string {
		return writeTasks(fieldDice{rand.New(rand.NewPCG(1, 1))}, make([][]int, n), nil)
	}
	require.Empty(t, codes(wide(spec.MaxTasks)))
	require.Equal(t, []string{"OUT_OF_RANGE"}, codes(wide(spec.MaxTasks+1)))

	fields := func(n int) string {
		var b strings.Builder
		b.WriteString("kind: entity_type\nname: a\nfields:\n  - {name: o, type: array, items: {type: object, fields: [")
		for i := range n - 2 {
			fmt.Fprintf(&b, "{name: f%d, type: text},", i)
		}
		return b.String() + "]}}\n"
	}
	require.Empty(t, codes(fields(spec.MaxFields)))
	require.Equal(t, []string{"TOO_MANY_VALUES"}, codes(fields(spec.MaxFields+1)))
}

// Reading a large entity type, and refusing a hostile one, takes a limited amount of work.
func TestLargeEntityTypes_WorkIsBounded(t *testing.T) { //nolint:paralleltest // the allocations of other tests would count
	d := fieldDice{rand.New(rand.NewPCG(5, 5))}
	needs, all := randomTasks(d, 900)
	reads := map[int]int{}
	for i := range needs {
		for j := range all[i] {
			reads[i] = j
		}
	}
	head := "kind: entity_type\nname: a\nfields: [{name: a, type: text, task: t}]\ntasks:\n"
	for name, text := range map[string]string{
		"900 tasks":               writeTasks(d, needs, reads),
		"expressions in loops":    head + strings.Repeat("  - {id: t, compute: \""+strings.Repeat("[1].map(x,", 30)+"x"+strings.Repeat(")", 30)+"\"}\n", 200),
		"1,000 wrong expressions": head + strings.Repeat("  - {id: t, compute: tasks.tt}\n", 1_000),
		"long dependencies":       head + "  - {id: t, depends_on: [" + strings.Repeat("t,", 900) + "], compute: '1'}\n",
		"an item that is itself":  "kind: entity_type\nname: a\nfields:\n  - {name: a, type: array, items: &i {type: array, items: *i}}\n",
		"fields by alias":         "kind: entity_type\nname: a\nfields: &f\n  - {name: a, type: object, fields: *f}\n  - {name: b, type: object, fields: *f}\n",
	} {
		var problems spec.Problems
		bytes, objects := allocated(func() { _, problems = spec.Load("a.yaml", []byte(text)) })
		require.Equal(t, name == "900 tasks", problems.OrNil() == nil, "%s: %s", name, problems)
		require.Less(t, bytes, uint64(slack*256<<20), name)
		require.Less(t, objects, uint64(slack*1_000_000), name)
	}
}

// The page's table of types has each type's keys and displays, in order, and nothing else in these columns.
func TestReference_TableOfFieldTypesIsRight(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n| type | a value is |")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n\n")
	rows := strings.Split(section, "\n")[2:]
	require.Len(t, rows, len(entity.FieldTypes()))
	word := regexp.MustCompile("`([a-z_]+)`")
	words := func(cell string) []string {
		var all []string
		for _, m := range word.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
		return all
	}
	for i, kind := range entity.FieldTypes() {
		cells := strings.Split(rows[i], "|")
		require.Equal(t, []string{string(kind)}, words(cells[1]))
		require.Equal(t, spec.Displays(kind), words(cells[4]), "%s", kind)
		for _, key := range words(cells[3]) {
			_, err := spec.LoadEntityType("a.yaml", []byte(fmt.Sprintf("{kind: entity_type, name: a, fields: [{name: a, type: %s, %s: {}}]}", kind, key)))
			require.NotContains(t, err.Error(), "has no "+key, "the page says that %s has %s", kind, key)
		}
	}
}
