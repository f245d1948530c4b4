package expr_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

func TestTemplate_Renders(t *testing.T) {
	t.Parallel()
	env := scriptEnv(t)
	vars := map[string]any{"task": "x", "input": json.RawMessage(`{"n":3,"l":[1,"a"],"s":"text","z":null}`)}
	for source, want := range map[string]any{
		"":                              "",
		"plain":                         "plain",
		"${input.n}":                    int64(3),
		"${ input.l }":                  []any{int64(1), "a"},
		"${input.z}":                    nil,
		" ${input.n}":                   " 3",
		"${input.n}${input.n}":          "33",
		"a ${input.s} b ${input.l} c":   `a text b [1,"a"] c`,
		"null is ${input.z}":            "null is null",
		"$${input.n}":                   "${input.n}",
		"cost $5, $${x} ${input.n} $":   "cost $5, ${x} 3 $",
		"${'}' + \"}\" + '''}'''}":      "}}}",
		`${r'\' + 'x}'}`:                `\x}`,
		`${'\'}'}`:                      "'}",
		"${ {'a': {'b': 1}}.a.b }":      int64(1),
		"${1 // a } in a comment\n+ 1}": int64(2),
		"é${task}é":                     "éxé",
	} {
		tm, err := env.Template(source)
		require.NoError(t, err, source)
		got, err := tm.Eval(t.Context(), vars)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	tm, err := env.Template("${input.l}")
	require.NoError(t, err)
	text, err := tm.EvalText(t.Context(), vars)
	require.NoError(t, err)
	require.Equal(t, `[1,"a"]`, text)
}

func TestTemplate_ErrorsPointIntoTheText(t *testing.T) {
	t.Parallel()
	env := scriptEnv(t)
	for source, want := range map[string]string{
		"é ${inptu}":               "undeclared reference to 'inptu'; did you mean 'input'? (column 5)\n  é ${inptu}\n      ^",
		"line\nand ${ 1 + } more":  "syntax error: unexpected end (line 2, column 12)\n  and ${ 1 + } more\n             ^",
		"open ${input":             "this ${ has no closing } (column 6)\n  open ${input\n       ^",
		"open ${'}":                "this ${ has no closing } (column 6)\n  open ${'}\n       ^",
		"nothing ${ }":             "there is no expression between ${ and } (column 11)\n  nothing ${ }\n            ^",
		"a ${input.n} ${input.no}": "no such key: 'no'; has(…) or .?no tests whether it is present (column 21)\n  a ${input.n} ${input.no}\n                      ^",
	} {
		tm, err := env.Template(source)
		if err == nil {
			_, err = tm.Eval(t.Context(), map[string]any{"input": json.RawMessage(`{"n":1}`)})
		}
		var e *jig.Error
		require.ErrorAs(t, err, &e, source)
		require.Equal(t, want, e.Message)
	}
	tm, err := env.Template(strings.Repeat("${task}", 100))
	require.NoError(t, err)
	_, err = tm.Eval(t.Context(), map[string]any{"task": strings.Repeat("x", 1<<17)})
	require.ErrorContains(t, err, "larger than 4096 KiB")
}

func TestDocument_Renders(t *testing.T) {
	t.Parallel()
	env := scriptEnv(t)
	d, problems := env.Document(json.RawMessage(`{"a":"${input.n}","b":["x ${task}",1.0,null,{"c":"$${k}"}],"${task}":true}`))
	require.Empty(t, problems)
	raw, err := d.Render(t.Context(), map[string]any{"task": "t", "input": json.RawMessage(`{"n":[1]}`)})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":[1],"b":["x t",1,null,{"c":"${k}"}],"${task}":true}`, string(raw))

	_, err = d.Render(t.Context(), map[string]any{"task": "t", "input": json.RawMessage(`{}`)})
	require.Equal(t, "a", jig.AsError(err).Field)

	_, problems = env.Document(json.RawMessage(`{"a":"${1 +}","b":[0,{"c":"${inptu}"}]}`))
	require.Len(t, problems, 2)
	require.Equal(t, "a", problems[0].Path)
	require.Equal(t, "b[1].c", problems[1].Path)

	_, problems = env.Document(json.RawMessage(`{`))
	require.Len(t, problems, 1)
	_, problems = env.Document(json.RawMessage(strings.Repeat("[", 200) + strings.Repeat("]", 200)))
	require.Len(t, problems, 1)
	var none []expr.Problem
	_, none = env.Document(json.RawMessage(`"${task}"`))
	require.Empty(t, none)
}
