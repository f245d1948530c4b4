package expr_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

const pageSchema = `{
	"type": "object",
	"properties": {
		"title": {"type": "string"},
		"count": {"type": "integer"},
		"price": {"type": "number"},
		"publish": {"type": "boolean"},
		"note": {"type": ["string", "null"]},
		"either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
		"status": {"enum": ["draft", "live"]},
		"three": {"const": 3},
		"tags": {"type": "array", "items": {"type": "string"}},
		"pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
		"sections": {"type": "array", "items": {"$ref": "#/$defs/section"}},
		"author": {"$ref": "#/$defs/person"},
		"tree": {"$ref": "#/$defs/tree"},
		"remote": {"$ref": "https://example.com/schema"},
		"narrowed": {"$ref": "#/$defs/person", "properties": {"age": {"type": "integer"}}},
		"open": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true},
		"typed": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
		"patterned": {"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {"^x": {}}},
		"closed": {"type": "object", "additionalProperties": false},
		"extended": {"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{"properties": {"b": {}}}]},
		"bare": {"type": "object"},
		"needed": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
		"maybe": {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
		"any": {},
		"yes": true,
		"nullable": {"type": "string", "nullable": true, "enum": ["a", "b"]},
		"untyped": {"properties": {"a": {"properties": {"b": {"type": "string"}}}}},
		"two words": {"type": "string"}
	},
	"$defs": {
		"section": {"type": "object", "properties": {"heading": {"type": "string"}, "words": {"type": "integer"}}},
		"person": {"type": "object", "properties": {"name": {"type": "string"}}},
		"tree": {"type": "object", "properties": {"leaf": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
	}
}`

func pageShapes() expr.Shapes {
	return expr.Shapes{
		"input":           json.RawMessage(pageSchema),
		"item":            json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}}}`),
		"vars.total":      json.RawMessage(`{"type":"integer"}`),
		"error":           expr.ErrorShape(),
		"steps.page.data": json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"},"owner":{"$ref":"#/$defs/o"}},"$defs":{"o":{"type":"object","properties":{"mail":{"type":"string"}}}}}`),
		"steps.loop":      expr.ListShape(expr.ResultShape(json.RawMessage(`{"type":"object","properties":{"url":{"$ref":"#/$defs/u"}},"$defs":{"u":{"type":"string"}}}`))),
	}
}

func TestCheck_FindsMistakes(t *testing.T) {
	t.Parallel()
	cases := []struct{ source, at, want string }{
		{"input.titel", "titel", "input has no 'titel'; did you mean 'title'?"},
		{"1 == 1 && input . titel == ''", "titel", "input has no 'titel'; did you mean 'title'?"},
		{"'é' + input.titel", "titel", "input has no 'titel'; did you mean 'title'?"},
		{"input.author.naem", "naem", "input.author has no 'naem'; did you mean 'name'?"},
		{"input.author.zip", "zip", "input.author has no 'zip'; it has name"},
		{"input.sections[0].heding", "heding", "input.sections[…] has no 'heding'; did you mean 'heading'?"},
		{"input.sections.all(s, s.heding != '')", "heding", "s has no 'heding'; did you mean 'heading'?"},
		{"input.sections.filter(s, s.words > 1).map(s, s.haeding)", "haeding", "s has no 'haeding'; did you mean 'heading'?"},
		{"input.sections.map(s, s.heading).map(h, h.words)", "words", "h is string, which has no members"},
		{"input.sections.exists_one(s, s.word == 1)", "word", "s has no 'word'; did you mean 'words'?"},
		{"input.sections.transformList(i, s, s.heading + i)", "+", "'+' cannot be applied to (string, int); make a text with string(…)"},
		{"input.sections.sortBy(s, s.wrods)", "wrods", "s has no 'wrods'; did you mean 'words'?"},
		{"input.sections.sortBy(s, s.words)[0].wrods", "wrods", "this value[…] has no 'wrods'; did you mean 'words'?"},
		{"cel.bind(a, input.author, a.nme)", "nme", "a has no 'nme'; did you mean 'name'?"},
		{"(input.publish ? input.sections : input.sections)[0].wrods", "wrods", ""},
		{"(input.sections + input.sections)[0].wrods", "", ""},
		{"input.tree.children[0].children[1].lef", "lef", "input.tree.children[…].children[…] has no 'lef'; did you mean 'leaf'?"},
		{"input['author'].naem", "naem", "input.author has no 'naem'; did you mean 'name'?"},
		{"input.maybe.b", "b", "input.maybe has no 'b'; did you mean 'a'?"},
		{"input.closed.x", "x", "input.closed has no 'x'"},
		{"input.needed.c", "c", "input.needed has no 'c'; did you mean 'a'?"},
		{"has(input.authro.name)", "authro", "input has no 'authro'; did you mean 'author'?"},
		{"[1].map(x, .input.titel)", "titel", "input has no 'titel'; did you mean 'title'?"},
		{"{'a': input.titel}", "titel", "input has no 'titel'; did you mean 'title'?"},
		{"[input.title, input.titel]", "titel", "input has no 'titel'; did you mean 'title'?"},

		{"input.count + input.title", "+", "'+' cannot be applied to (int, string); make a text with string(…)"},
		{"input.count % 0.5", "%", "'%' cannot be applied to (dyn, double); it needs whole numbers: int(…)"},
		{"input.count + 1u", "+", "'+' cannot be applied to (int, uint); make both the same with int(…), uint(…) or double(…)"},
		{"input.price + input.title", "+", "'+' cannot be applied to (int or double, string); make a text with string(…)"},
		{"input.note * 2", "*", "'*' cannot be applied to (null or string, int)"},
		{"input.tags + input.title", "+", "'+' cannot be applied to (list, string)"},
		{"input.title.startsWith(input.count)", "(", "'startsWith' cannot be applied to (string, int)"},
		{"size(input.count)", "(", "'size' cannot be applied to (int)"},
		{"input.count > input.title", ">", "'>' cannot be applied to (int, string)"},
		{"-input.title", "-", "'-' cannot be applied to (string)"},
		{"!input.title", "!", "'!' cannot be applied to (string)"},
		{"input.publish && input.title", "&&", "'&&' cannot be applied to (bool, string)"},
		{"input.title ? 1 : 2", "input", ""},
		{"input.tags.filter(t, t)", "t)", "this gives string where true or false is needed"},
		{"input.tags.exists(t, t + 1 == 2)", "+", "'+' cannot be applied to (string, int); make a text with string(…)"},
		{"input.count.all(x, true)", "", "input.count is int, which has no items to iterate over"},
		{"input.title.x", "x", "input.title is string, which has no members"},
		{"input.count[0]", "[", "input.count is int, which has no members or items"},
		{"input.untyped.a.b + 1", "+", "'+' cannot be applied to (string, int); make a text with string(…)"},
		{"input.untyped.a.c", "c", "input.untyped.a has no 'c'; did you mean 'b'?"},
		{"input.tags['a']", "[", "input.tags is a list, so its index must be a whole number, not a string"},
		{"input.tags.first", "first", "input.tags is list, which has no members"},
		{"input.count in input.title", "in", "'in' cannot be applied to (int, string)"},
		{"input.count == input.title", "==", "'==' compares int with string, which are never equal"},
		{"input.status != 3", "!=", "'!=' compares string with int, which are never equal"},
		{"input.typed.b + 'x'", "+", "'+' cannot be applied to (int, string); make a text with string(…)"},
		{"input.three.size()", "(", "'size' cannot be applied to (int)"},
		{"input.title.getFullYear()", "(", "'getFullYear' cannot be applied to (string)"},
		{"(input.publish ? input.title : 'x') + 1", "+", "'+' cannot be applied to (string, int); make a text with string(…)"},
		{"input.title.split(',')[0] + 1", "+", "'+' cannot be applied to (string, int); make a text with string(…)"},
		{"lists.range(3).map(i, i + 'x')", "+", "'+' cannot be applied to (int, string); make a text with string(…)"},
		{"string(input.count) + input.count", "+", "'+' cannot be applied to (string, int); make a text with string(…)"},
		{"now + input.title", "+", "'+' cannot be applied to (timestamp, string); make a text with string(…)"},
		{"index + tenant", "", ""},

		{"item.di", "di", "item has no 'di'; did you mean 'id'?"},
		{"vars.total + 'x'", "+", "'+' cannot be applied to (int, string); make a text with string(…)"},
		{"error.cod", "cod", "error has no 'cod'; did you mean 'code'?"},
		{"steps.page.succcess", "succcess", "steps.page has no 'succcess'; did you mean 'success'?"},
		{"steps.page.data.ID", "ID", "steps.page.data has no 'ID'; did you mean 'id'?"},
		{"steps.page.data.id + 'x'", "+", "'+' cannot be applied to (int, string); make a text with string(…)"},
		{"steps.page.data.owner.mial", "mial", "steps.page.data.owner has no 'mial'; did you mean 'mail'?"},
		{"steps.page.error.msg", "msg", ""},
		{"steps['page'].succcess", "succcess", "steps.page has no 'succcess'; did you mean 'success'?"},
		{"steps.unheard.output", "output", ""},
		{"steps.unheard.success + 1", "+", "'+' cannot be applied to (bool, int)"},
		{"steps.loop.data", "data", "steps.loop is list, which has no members"},
		{"steps.loop.all(s, s.succes)", "succes", "s has no 'succes'; did you mean 'success'?"},
		{"steps.loop[0].data.ulr", "ulr", "steps.loop[…].data has no 'ulr'; did you mean 'url'?"},
		{"steps.loop.map(s, s.data.url + 1)", "+", "'+' cannot be applied to (string, int); make a text with string(…)"},
	}
	for _, c := range cases {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()
			err := stepEnv(t).Check(c.source, expr.Any, pageShapes())
			var issue *expr.IssueError
			require.ErrorAs(t, err, &issue)
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
			if c.want != "" {
				require.Equal(t, c.want, issue.Message)
			}
			rest := string([]rune(c.source)[issue.Offset:])
			require.True(t, strings.HasPrefix(rest, c.at), "the caret is under %q", rest)
		})
	}
}

func TestCheck_IgnoresUncertainCases(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"input.title", "input.count * 2", "input.price * 2", "input.price * 2.5", "input.price + input.count", "input.count / 2 > 1.5",
		"input.note == null || input.note.size() > 3", "input.note + 'x'", "input.either + 1", "input.either + 'x'", "input.either.x",
		"has(input.titel)", "has(input.titel) && input.titel == 'x'", "input.?titel", "input.?titel.orValue('x')", "input[?'titel']",
		"'titel' in input ? input.titel : ''", "has(input.extra) ? input.extra.deep.er : 1", "input['titel']", "input[input.title]",
		"input.author.?zip.orValue('') + 'x'", "input.pair[0] + 'x'", "input.pair[1] + 1", "input.remote.x.y", "input.narrowed.whatever",
		"input.open.b + 1", "input.typed.b + 1", "input.patterned.xy", "input.extended.b", "input.bare.x", "input.needed.b", "input.any.x + 1",
		"input.yes.x", "input.nullable == null || input.nullable + 'x' == 'ax'", "(input.nullable == null ? null : input.nullable) == null", "input.untyped.a + 1", "input.maybe.a", "input.maybe == null", "input.title == null", "input.count == 1.0", "input.count == input.price",
		"input.status == 'gone'", "input.three + 1", "input.tags.map(t, t + 'x')", "input.tags[0] + 'x'", "input.tags[1.0]", "input.tags + ['x']",
		"input.tags.size() + input.title.size() + input.author.size()", "input.author.map(k, k + 'x')", "input.author.all(k, v, v == 1 || k == 'x')",
		"input.sections.map(s, s.words).filter(w, w > 1)", "input.sections.map(s, s.words).map(w, w + 1)", "[].map(x, x + 1)", "[] + [1]",
		"([] + input.sections)[0].words + 1", "[[1], ['a']].map(x, x[0])", "[1, 'a'].map(x, x + 1)", "[?input.?x].map(x, x + 1)",
		"dyn(input.count) + 0.5", "double(input.count) + 0.5", "int(input.title) + 1", "string(input.count) + 'x'", "type(input.count) == int",
		"json.encode(input)", "'%s'.format([input.count])", "math.greatest(input.count, input.price)", "sets.contains(input.tags, ['a'])",
		"timestamp(input.title) < now", "now - timestamp('2020-01-01T00:00:00Z') > duration('1h')", "now.getFullYear() + index",
		"input == {'title': 'x'}", "input.tags == []", "'x' in input.tags", "1 in input.tags", "input.title in input.author",
		"input.tree.children.exists(c, c.children.exists(d, d.leaf == 'x'))", "cel.bind(input, {'x': 1}, input.x)", "[{'x': 1}].all(input, input.x == 1)",
		"steps.gone.skipped", "steps.gone.data.whatever.x + 1", "steps.gone.all(s, s.success)", "steps.gone[0].data", "size(steps.gone)",
		"steps.page.data.id + 1", "steps.page.data.owner.mail + 'x'", "steps.page.success && steps.page.summary != ''", "steps.page.artifacts[0] + 'x'",
		"steps.page.error.code == 'TIMEOUT'", "has(steps.page.error)", "steps.loop.all(s, s.success || s.error.code == 'DENIED')",
		"steps.loop.map(s, s.data.url + '/')", "steps.loop.filter(s, s.success)[0].data.url + 'x'", "steps[item.id].data", "steps.map(k, steps[k].success)",
		"vars.total + 1", "vars.other.x + 1", "item.id + index", "error.reason", "event.data.x", "session.id", "principal.groups",
		"input.publish ? input.title : input.count", "(input.publish ? input.title : input.count) + 'x'", "(input.publish ? dyn(1) : 1.5) * 2",
		"[input.title, input.count].map(x, x + 1)", "input.sections.map(s, [s.words]).map(l, l[0] + 1)", "optional.of(input.title).value() + 'x'",
		"optional.of(input.count).optMap(x, x + 1).orValue(0)", "input.sections.transformMap(i, s, s.words).map(k, k)", "base64.encode(b'x') + input.title",
		"input.sections.map(s, s.words > 1, s.heading).join(', ')", "input.tags.sort().reverse()[0] + 'x'", "!(input.either)",
		"input.`two words`", "input.sections.exists_one(s, s.words == 1)", "lists.range(input.count).map(i, i + 1)", "input.tags.flatten()",
	} {
		require.NoError(t, stepEnv(t).Check(source, expr.Any, pageShapes()), source)
		require.NoError(t, stepEnv(t).Check(source, expr.Any, nil), source)
	}
}

func TestCheck_ComparesTheResultType(t *testing.T) {
	t.Parallel()
	env, shapes := stepEnv(t), pageShapes()
	require.NoError(t, env.Check("input.publish", expr.Bool, shapes))
	require.NoError(t, env.Check("input.either", expr.Bool, shapes))
	require.NoError(t, env.Check("input.maybe", expr.Map, shapes))
	require.NoError(t, env.Check("input.price", expr.Int, shapes))
	require.ErrorContains(t, env.Check("input.title", expr.Bool, shapes), "this gives string where true or false is needed")
	require.ErrorContains(t, env.Check("input", expr.List, shapes), "this gives map where a list is needed")
	require.ErrorContains(t, env.Check("input.note", expr.Timestamp, shapes), "this gives null or string where a timestamp is needed")
	require.ErrorContains(t, env.Check("1 +", expr.Any, shapes), "syntax error")
	require.ErrorContains(t, env.Check("inptu", expr.Any, shapes), "did you mean 'input'?")
	require.NoError(t, env.Check("input.titel", expr.Any, expr.Shapes{"input": json.RawMessage(`{`)}), "a schema that cannot be read says nothing")
	require.NoError(t, env.Check("input.titel", expr.Any, expr.Shapes{"input": json.RawMessage(`{"$ref":"#"}`)}), "neither does one that refers to itself")
}

func TestCheck_OfTemplatesAndDocuments(t *testing.T) {
	t.Parallel()
	env, shapes := stepEnv(t), pageShapes()
	require.NoError(t, env.CheckTemplate("$${input.titel} ${input.title}", shapes))
	err := env.CheckTemplate("é ${input.title}: ${input.titel}", shapes)
	require.EqualError(t, err, "INVALID_INPUT: input has no 'titel'; did you mean 'title'? (column 27)\n  é ${input.title}: ${input.titel}\n                            ^")
	require.ErrorContains(t, env.CheckTemplate("open ${", shapes), "no closing }")
	d, problems := env.Document(json.RawMessage(`{"a":["x","${input.titel}"],"b":"${input.count + ''} ","c":"${input.count}","d":1}`))
	require.Empty(t, problems)
	var paths []string
	for _, p := range checkDocument(d, shapes) {
		paths = append(paths, p.Path)
	}
	require.Equal(t, []string{"a[1]", "b"}, paths)
	_, problems = env.Document(json.RawMessage(`{"e":"${1 +}"}`))
	require.Len(t, problems, 1)
	require.Equal(t, "e", problems[0].Path)
	_, problems = env.Document(json.RawMessage(`{`))
	require.Len(t, problems, 1)
}

func TestDescribe_GivesASchema(t *testing.T) {
	t.Parallel()
	env, shapes := stepEnv(t), pageShapes()
	for source, want := range map[string]string{
		"input.sections":                 `{"type":["array"],"items":{"type":["object"],"properties":{"heading":{"type":["string"]},"words":{"type":["integer"]}},"additionalProperties":false}}`,
		"input.sections.filter(s, true)": `{"type":["array"],"items":{"type":["object"],"properties":{"heading":{"type":["string"]},"words":{"type":["integer"]}},"additionalProperties":false}}`,
		"input.price":                    `{"type":["number"]}`,
		"input.note":                     `{"type":["null","string"]}`,
		"input.either":                   `{}`,
		"input.open":                     `{"type":["object"],"properties":{"a":{"type":["string"]}},"additionalProperties":true}`,
		"input.tags.map(t, size(t))":     `{"type":["array"],"items":{"type":["integer"]}}`,
		"input.count > 1":                `{"type":["boolean"]}`,
		"now":                            `{}`,
		"steps.page.data.owner":          `{"type":["object"],"properties":{"mail":{"type":["string"]}},"additionalProperties":false}`,
		"steps.loop.map(s, s.data.url)":  `{"type":["array"],"items":{"type":["string"]}}`,
	} {
		got, err := env.Describe(source, shapes)
		require.NoError(t, err, source)
		require.JSONEq(t, want, string(got), source)
	}
	got, err := env.Describe("input.tree", shapes)
	require.NoError(t, err)
	require.Less(t, len(got), 200_000, "a schema that contains itself is cut off")
	require.ErrorContains(t, env.Check("item.children[0].lef", expr.Any, expr.Shapes{"item": got}), "did you mean 'leaf'?")
	got, err = env.DescribeTemplate("${input.count}", shapes)
	require.NoError(t, err)
	require.JSONEq(t, `{"type":["integer"]}`, string(got))
	for _, text := range []string{"${input.count} ", "plain", ""} {
		got, err = env.DescribeTemplate(text, shapes)
		require.NoError(t, err)
		require.JSONEq(t, `{"type":["string"]}`, string(got))
	}
	_, err = env.DescribeTemplate("${input.titel}", shapes)
	require.Error(t, err)
	_, err = env.Describe("1 +", shapes)
	var issue *expr.IssueError
	require.ErrorAs(t, err, &issue)
}

// A program is compiled once and can be checked against several shapes, and evaluated.
func TestCheck_CompiledExpressions(t *testing.T) {
	t.Parallel()
	known := expr.Shapes{"input": json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}}}`)}
	env := stepEnv(t)
	raw := json.RawMessage(`{"a":"${input.titel}","b":["x ${input.title}","${input.tags.map(t, t.nme)}"]}`)
	d, problems := env.Document(raw)
	require.Empty(t, problems)
	require.Empty(t, checkDocument(d, nil))
	found := checkDocument(d, known)
	require.Len(t, found, 2)
	require.Equal(t, "a", found[0].Path)
	require.Equal(t, "b[1]", found[1].Path)
	require.ErrorContains(t, found[1].Err, "t is string, which has no members")

	p, err := env.CompileAs("input.tags.filter(t, t > 'a')", expr.List)
	require.NoError(t, err)
	require.NoError(t, p.Check(known))
	described, err := p.Describe(known)
	require.NoError(t, err)
	require.JSONEq(t, `{"type":["array"],"items":{"type":["string"]}}`, string(described))
	v, err := p.Eval(t.Context(), map[string]any{"input": map[string]any{"tags": []any{"a", "b"}}})
	require.NoError(t, err)
	require.Equal(t, []any{"b"}, v)
	require.NoError(t, p.Check(known), "also after it ran")
}

// checkDocument checks all templates of a document.
func checkDocument(d *expr.Document, shapes expr.Shapes) []expr.Problem {
	var problems []expr.Problem
	for path, t := range d.Templates() {
		if err := t.Check(shapes); err != nil {
			problems = append(problems, expr.Problem{Path: path, Err: jig.AsError(err)})
		}
	}
	return problems
}
