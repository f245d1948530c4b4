package spec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/spec"
)

// fieldCase is an entry of testdata/fields.yaml.
type fieldCase struct {
	name      string
	field     entity.Field
	good, bad []string
}

func fieldCases(t *testing.T) []fieldCase {
	t.Helper()
	body, err := os.ReadFile("testdata/fields.yaml")
	require.NoError(t, err)
	var read []struct {
		Name  string
		Field map[string]any
		Good  []string
		Bad   []string
	}
	require.NoError(t, yaml.Load(body, &read))
	cases := make([]fieldCase, 0, len(read))
	for _, r := range read {
		raw, err := json.Marshal(r.Field)
		require.NoError(t, err)
		c := fieldCase{name: r.Name, good: r.Good, bad: r.Bad}
		require.NoError(t, json.Unmarshal(raw, &c.field))
		cases = append(cases, c)
	}
	return cases
}

// schemaOf returns the schema of a field's values.
func schemaOf(t *testing.T, f entity.Field) json.RawMessage {
	t.Helper()
	f.Name = "x"
	var of struct{ Properties map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(spec.ContentSchema(entity.Type{Fields: []entity.Field{f}}), &of))
	return of.Properties["x"]
}

// judges returns the ways to check whether a value fits a field: with the field, and with its schema (formats asserted or not).
func judges(t *testing.T, f entity.Field) map[string]func(value string) error {
	t.Helper()
	raw := schemaOf(t, f)
	notes, err := schema.NewCompiler(schema.Options{}).Compile(raw)
	require.NoError(t, err, "%s", raw)
	formats, err := schema.NewCompiler(schema.Options{AssertFormats: true}).Compile(raw)
	require.NoError(t, err)
	return map[string]func(value string) error{
		"the field":               func(v string) error { return spec.CheckField(f, json.RawMessage(v)) },
		"the schema":              func(v string) error { return notes.Validate([]byte(v)) },
		"the schema with formats": func(v string) error { return formats.Validate([]byte(v)) },
	}
}

// hasNUL reports whether a value contains U+0000, which JSON allows but PostgreSQL cannot store. This is the only rule that the schema does
// not express.
func hasNUL(value string) bool { return strings.Contains(value, `"\u0000"`) }

func TestCheckField_AcceptsWhatTheSchemaAccepts(t *testing.T) {
	t.Parallel()
	values, types := 0, map[entity.FieldType]int{}
	for _, c := range fieldCases(t) {
		ask := judges(t, c.field)
		values += len(c.good) + len(c.bad)
		types[c.field.Type] += len(c.bad)
		require.NotEmpty(t, c.good, c.name)
		for _, v := range c.good {
			for who, judge := range ask {
				require.NoError(t, judge(v), "%s: %s refuses %s", c.name, who, v)
			}
		}
		for _, v := range c.bad {
			for who, judge := range ask {
				err := judge(v)
				if hasNUL(v) && strings.HasPrefix(who, "the schema") {
					continue
				}
				require.Error(t, err, "%s: %s accepts %s", c.name, who, v)
				require.True(t, jig.CodeOf(err) == jig.CodeInvalidInput || strings.HasPrefix(who, "the schema"), "%v", err)
			}
		}
	}
	require.GreaterOrEqual(t, values, 200)
	for _, kind := range entity.FieldTypes() {
		require.GreaterOrEqual(t, types[kind], 8, "%s has few bad values", kind)
	}
}

func TestCheckField_SaysWhere(t *testing.T) {
	t.Parallel()
	f := entity.Field{Name: "offices", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldObject, Fields: []entity.Field{
		{Name: "city", Type: entity.FieldText, Required: true}, {Name: "mail", Type: entity.FieldEmail},
	}}}
	err := spec.CheckField(f, json.RawMessage(`[{"city": "a"}, {"mail": "x", "a/b": 1}, 3]`))
	e := jig.AsError(err)
	require.Equal(t, jig.CodeInvalidInput, e.Code)
	require.Equal(t, "/offices/1/mail", e.Field)
	var pointers []string
	for _, v := range e.Violations {
		pointers = append(pointers, v.Pointer)
	}
	require.Equal(t, []string{"/offices/1/mail", "/offices/1/a~1b", "/offices/1/city", "/offices/2"}, pointers)
	require.ErrorContains(t, err, "and 3 more problems")

	for value, message := range map[string]string{
		`null`: "not null; leave out the key", `"hig"`: `did you mean "high"?`, `7`: "this must be text, not a number", `"x`: "not JSON",
	} {
		err := spec.CheckField(entity.Field{Name: "risk", Type: entity.FieldEnum, Options: []string{"high", "low"}}, json.RawMessage(value))
		require.ErrorContains(t, err, message)
		require.Equal(t, "/risk", jig.AsError(err).Field)
	}
	options := strings.Split("ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm", ",")
	for n, message := range map[int]string{3: "known are ab, bc, cd", 12: "known are", 1: "known are ab"} {
		err := spec.CheckField(entity.Field{Type: entity.FieldEnum, Options: options[:n]}, json.RawMessage(`"something else"`))
		require.ErrorContains(t, err, message)
	}
	for range 20 {
		options = append(options, fmt.Sprintf("an option, number %d", len(options)))
	}
	require.ErrorContains(t, spec.CheckField(entity.Field{Type: entity.FieldEnum, Options: options}, json.RawMessage(`"zzzzzzzzzz"`)), "jk and 22 more")
	require.ErrorContains(t, spec.CheckField(entity.Field{Type: "colour"}, json.RawMessage(`1`)), `"colour"`)
	require.ErrorContains(t, spec.CheckField(entity.Field{Type: entity.FieldText, Pattern: "("}, json.RawMessage(`"a"`)), "cannot be used")

	many := spec.CheckField(entity.Field{Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldText}}, json.RawMessage("["+strings.Repeat("1,", 10_000)+"1]"))
	require.Len(t, jig.AsError(many).Violations, 50)
}

func TestCheckContent_AgreesWithTheSchema(t *testing.T) {
	t.Parallel()
	doc := entityTypeOf(t, "testdata/entity/module.yaml")
	validator, err := schema.NewCompiler(schema.Options{AssertFormats: true}).Compile(spec.ContentSchema(doc))
	require.NoError(t, err)
	for content, want := range map[string]struct {
		whole, partial string
	}{
		`{"path": "a", "version": "v1"}`: {},
		`{"path": "a", "version": "v1", "risk": "low", "claims": [], "released": "2026-01-01"}`: {},
		`{}`:                              {whole: "/path"},
		`{"path": "a"}`:                   {whole: "/version"},
		`{"path": null, "version": "v1"}`: {whole: "/path", partial: "/path"},
		`{"path": "a", "version": "v1", "name": "x"}`:          {whole: "/name", partial: "/name"},
		`{"path": "a", "version": "v1", "risk": "none"}`:       {whole: "/risk", partial: "/risk"},
		`{"claims": [{"text": "a", "source_entity_ids": []}]}`: {whole: "/claims/0/source_entity_ids", partial: "/claims/0/source_entity_ids"},
		`{"claims": [{"text": "a"}], "path": "a", "version": "v1"}`: {
			whole: "/claims/0/source_entity_ids", partial: "/claims/0/source_entity_ids",
		},
		`[]`: {whole: "-", partial: "-"},
	} {
		for partial, pointer := range map[bool]string{false: want.whole, true: want.partial} {
			err := spec.CheckContent(doc, json.RawMessage(content), partial)
			if pointer == "" {
				require.NoError(t, err, content)
				continue
			}
			require.Error(t, err, content)
			require.Equal(t, strings.TrimPrefix(pointer, "-"), jig.AsError(err).Field, content)
		}
		require.Equal(t, want.whole == "", validator.Validate([]byte(content)) == nil, content)
	}
	require.ErrorContains(t, spec.CheckContent(doc, json.RawMessage(`{"path": "a", "path": "b"}`), true), "twice")
	require.ErrorContains(t, spec.CheckContent(doc, json.RawMessage(strings.Repeat("[", 20_000)), true), "cannot be read")
}

func TestContentSchema_KeepsWhatIsNotAboutValues(t *testing.T) {
	t.Parallel()
	raw := schemaOf(t, entity.Field{
		Type: entity.FieldRelation, Label: "Owner", Description: "D", Target: "person", Task: "find", Display: "card", Default: json.RawMessage(`"a"`),
	})
	var kept map[string]any
	require.NoError(t, json.Unmarshal(raw, &kept))
	require.Equal(t, []any{"Owner", "D", "a"}, []any{kept["title"], kept["description"], kept["default"]})
	require.Equal(t, map[string]any{"display": "card", "target": "person", "task": "find"}, kept["x-field"])
}

func TestDisplays_AreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	all := 0
	for _, kind := range entity.FieldTypes() {
		require.NotEmpty(t, spec.Displays(kind))
		all += len(spec.Displays(kind))
	}
	require.GreaterOrEqual(t, all, 24)
	require.Empty(t, spec.Displays("colour"))
}

func TestFilterFields_AreThoseThatCanBeCompared(t *testing.T) {
	t.Parallel()
	var head strings.Builder
	head.WriteString("kind: entity_type\nname: a\nfields:\n")
	for _, line := range []string{
		"{name: name, type: text}", "{name: first_name, type: text, label: Given name}",
		"{name: few, type: enum, options: [a, b, c, d, e, f]}", "{name: lots, type: enum, options: [a, b, c, d, e, f, g]}",
		"{name: size, type: number}", "{name: score, type: number, minimum: 0, maximum: 5}", "{name: least, type: number, minimum: 0}",
		"{name: done, type: boolean}", "{name: born, type: date}", "{name: at, type: date, time: true}",
		"{name: site, type: url}", "{name: mail, type: email}", "{name: call, type: phone}", "{name: logo, type: media}",
		"{name: owner, type: relation, target: a}", "{name: parts, type: relation, target: a, many: true}",
		"{name: tags, type: array, items: {type: text}}", "{name: kinds, type: array, items: {type: enum, options: [x]}}",
		"{name: sizes, type: array, items: {type: number}}",
		"{name: home, type: object, fields: [{name: city, type: text}, {name: geo, type: object, fields: [{name: lat, type: number}]}]}",
		"{name: rows, type: array, items: {type: object, fields: [{name: a, type: text}]}}",
		"{name: grid, type: array, items: {type: array, items: {type: number}}}",
	} {
		head.WriteString("  - " + line + "\n")
	}
	doc, err := spec.LoadEntityType("a.yaml", []byte(head.String()))
	require.NoError(t, err)
	var got []string
	for _, f := range entity.FilterFields(doc) {
		got = append(got, fmt.Sprintf("%s|%s|%s|%t|%s|%v", f.Field, f.Label, f.Type, f.List, f.Control, f.Operators))
	}
	const texts, ordered, some = "[eq neq in contains]", "[eq neq gt lt gte lte in]", "[eq neq in]"
	require.Equal(t, []string{
		"name|Name|text|false|text|" + texts, "first_name|Given name|text|false|text|" + texts,
		"few|Few|enum|false|select|" + some, "lots|Lots|enum|false|multi_select|" + some,
		"size|Size|number|false|number|" + ordered, "score|Score|number|false|range|" + ordered, "least|Least|number|false|number|" + ordered,
		"done|Done|boolean|false|toggle|[eq neq]", "born|Born|date|false|date|" + ordered, "at|At|date|false|date|" + ordered,
		"site|Site|url|false|text|" + texts, "mail|Mail|email|false|text|" + texts, "call|Call|phone|false|text|" + texts,
		"logo|Logo|media|false|text|" + texts,
		"owner|Owner|relation|false|entity|" + some, "parts|Parts|relation|true|entity|[contains]",
		"tags|Tags|text|true|text|[contains]", "kinds|Kinds|enum|true|multi_select|[contains]", "sizes|Sizes|number|true|text|[contains]",
		"home.city|Home: City|text|false|text|" + texts, "home.geo.lat|Home: Geo: Lat|number|false|number|" + ordered,
	}, got)
	require.Len(t, entity.FilterFields(doc, "home", "name"), 3)
	doc.Tasks = []entity.Task{{ID: "sum"}, {ID: "check"}}
	all := entity.FilterFields(doc)
	require.Equal(t, entity.FilterField{
		Field: "$failed_tasks", Label: "Failed tasks", Type: entity.FieldEnum, List: true, Control: entity.ControlMultiSelect,
		Operators: []entity.FilterOp{entity.FilterContains, entity.FilterEq, entity.FilterNeq}, Options: []string{"sum", "check"},
	}, all[len(all)-1])
	require.Len(t, entity.FilterFields(doc, "home", "name"), 3)
}

func entityTypeOf(t *testing.T, file string) entity.Type {
	t.Helper()
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	doc, err := spec.LoadEntityType(file, body)
	require.NoError(t, err)
	return doc
}
