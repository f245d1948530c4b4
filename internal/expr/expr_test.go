package expr_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

func scriptEnv(t testing.TB) *expr.Env {
	t.Helper()
	env, err := expr.ScriptUse().Env()
	require.NoError(t, err)
	return env
}

func eval(t *testing.T, env *expr.Env, source string, vars map[string]any) (string, error) {
	t.Helper()
	p, err := env.Compile(source)
	if err != nil {
		return "", err
	}
	raw, err := p.EvalJSON(t.Context(), vars)
	return string(raw), err
}

func TestNumbers_Input(t *testing.T) {
	t.Parallel()
	env := scriptEnv(t)
	cases := []struct{ json, kind, out string }{
		{"0", "int", "0"},
		{"-0", "int", "0"},
		{"1", "int", "1"},
		{"1.0", "int", "1"},
		{"-1.0", "int", "-1"},
		{"1e3", "int", "1000"},
		{"1.5e1", "int", "15"},
		{"1.5", "double", "1.5"},
		{"1e-3", "double", "0.001"},
		{"9007199254740991", "int", "9007199254740991"},
		{"-9007199254740991", "int", "-9007199254740991"},
		{"9007199254740992", "double", "9007199254740992"},
		{"-9007199254740992", "double", "-9007199254740992"},
		{"1e300", "double", "1e+300"},
	}
	for _, c := range cases {
		t.Run(c.json, func(t *testing.T) {
			t.Parallel()
			vars := map[string]any{"input": json.RawMessage(`{"n":` + c.json + `,"l":[` + c.json + `]}`)}
			kind, err := eval(t, env, "type(input.n)", vars)
			require.NoError(t, err)
			require.Equal(t, `"`+c.kind+`"`, kind)
			out, err := eval(t, env, "input.l[0]", vars)
			require.NoError(t, err)
			require.Equal(t, c.out, out)
			var decoded any
			require.NoError(t, json.Unmarshal([]byte(c.json), &decoded))
			kind, err = eval(t, env, "type(input)", map[string]any{"input": decoded})
			require.NoError(t, err)
			require.Equal(t, `"`+c.kind+`"`, kind, "as encoding/json decodes it")
		})
	}
	for _, bad := range []string{`1e999`, `{`, `1 2`, `nul`} {
		_, err := eval(t, env, "input", map[string]any{"input": json.RawMessage(bad)})
		var e *jig.Error
		require.ErrorAs(t, err, &e, bad)
		require.Equal(t, jig.CodeInvalidInput, e.Code)
		require.Equal(t, "input", e.Field)
	}
}

func TestValues_Output(t *testing.T) {
	t.Parallel()
	env := scriptEnv(t)
	for source, want := range map[string]string{
		"9223372036854775807":               "9223372036854775807",
		"-9223372036854775807 - 1":          "-9223372036854775808",
		"18446744073709551615u":             "18446744073709551615",
		"3.0":                               "3",
		"2.5":                               "2.5",
		"b'ab\\xff'":                        `"YWL/"`,
		"timestamp('2020-01-02T03:04:05Z')": `"2020-01-02T03:04:05Z"`,
		"duration('90m')":                   `"1h30m0s"`,
		"null":                              "null",
		"optional.none()":                   "null",
		"optional.of(3)":                    "3",
		"type(1)":                           `"int"`,
		"{1: 'a', true: 'b', 'c': [1u]}":    `{"1":"a","c":[1],"true":"b"}`,
		"'<a> & \"b\"'":                     `"<a> & \"b\""`,
		"json.encode({'n': 9223372036854775807})": `"{\"n\":9223372036854775807}"`,
	} {
		got, err := eval(t, env, source, nil)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for _, source := range []string{"1.0 / 0.0", "{1: 'a', '1': 'b'}", "{1.5: 2}"} {
		_, err := eval(t, env, source, nil)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), source)
	}
}

func TestGoValues_Input(t *testing.T) {
	t.Parallel()
	env := scriptEnv(t)
	type record struct {
		Name string `json:"name"`
	}
	ready, err := expr.FromJSON(json.RawMessage(`{"x": 1}`))
	require.NoError(t, err)
	got, err := eval(t, env, "input", map[string]any{"input": []any{
		1, int32(2), uint64(3), float32(1.5),
		[]string{"a"},
		record{Name: "n"},
		ready, nil, time.Unix(0, 0).UTC(), time.Minute,
		map[string]any{"f": 2.0},
	}})
	require.NoError(t, err)
	require.Equal(t, `[1,2,3,1.5,["a"],{"name":"n"},{"x":1},null,"1970-01-01T00:00:00Z","1m0s",{"f":2}]`, got)
	_, err = expr.From(map[string]any{"f": func() {}})
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	_, err = expr.From(math.NaN())
	require.NoError(t, err)
}

func TestEval_ExtensionFunctions(t *testing.T) {
	t.Parallel()
	env := scriptEnv(t)
	vars := map[string]any{"task": "héllo", "pass": 2, "input": json.RawMessage(`{"m":{"z":1,"b":2,"a":3},"l":[3,1,2]}`)}
	for source, want := range map[string]string{
		"task.size()":                                 "5",
		"'%s-%d'.format([task, pass])":                `"héllo-2"`,
		"input.l.sort()":                              "[1,2,3]",
		"input.l.sortBy(x, -x)":                       "[3,2,1]",
		"input.m.map(k, k)":                           `["a","b","z"]`,
		"{'q': 1, 'c': 2, 'x': 3}.map(k, k).join('')": `"cqx"`,
		"input.m.transformList(k, v, k + string(v))":  `["a3","b2","z1"]`,
		"input.m.transformMap(k, v, v * 2).map(k, k)": `["a","b","z"]`,
		"math.greatest(1, 2)":                         "2",
		"sets.contains([1, 2], [1])":                  "true",
		"base64.encode(b'a')":                         `"YQ=="`,
		"cel.bind(x, 2, x * x)":                       "4",
		"input.?nope.orValue(7)":                      "7",
		"input.l.filter(x, x > 1).map(x, x + 1)":      "[4,3]",
		"[1] + [2] + input.l":                         "[1,2,3,1,2]",
		"'abc'.matches('^a.c$')":                      "true",
		"task.matches('^' + 'h')":                     "true",
		"3 in input.l && 'a' in input.m":              "true",
		"input.l == [3, 1, 2] && input.l != [1]":      "true",
		"lists.range(3)":                              "[0,1,2]",
		"'a,b'.split(',').distinct().reverse()":       `["b","a"]`,
		"input.l[1] == 1.0 && 1.5 < 2":                "true",
		"has(input.m) && !has(input.none)":            "true",
		"input.l.exists(x, x == 2) ? 'y' : 'n'":       `"y"`,
		"[[1], [2]].flatten()":                        "[1,2]",
	} {
		got, err := eval(t, env, source, vars)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
}

func TestErrors_SayWhereAndWhat(t *testing.T) {
	t.Parallel()
	env := scriptEnv(t)
	cases := []struct{ source, want string }{
		{"inptu.x", "undeclared reference to 'inptu'; did you mean 'input'? (column 1)\n  inptu.x\n  ^"},
		{"task.siez()", "undeclared reference to 'siez'; did you mean 'size'? (column 10)\n  task.siez()\n           ^"},
		{"now", "undeclared reference to 'now' (column 1)\n  now\n  ^"},
		{"1 +", "syntax error: unexpected end (column 4)\n  1 +\n     ^"},
		{"task +\n  'é' + 1", "'+' cannot be applied to (string, int); make a text with string(…) (line 2, column 7)\n    'é' + 1\n        ^"},
		{"input.a % 0.5", "'%' cannot be applied to (dyn, double); it needs whole numbers: int(…) (column 9)\n  input.a % 0.5\n          ^"},
		{"input.b.c", "no such key: 'b'; has(…) or .?b tests whether it is present (column 6)\n  input.b.c\n       ^"},
		{"1 / 0", "division by zero (column 3)\n  1 / 0\n    ^"},
		{"last", "'last' has no value here (column 1)\n  last\n  ^"},
		{"task.matches('(')", "not a regular expression: error parsing regexp: missing closing ): `(` (column 14)\n  task.matches('(')\n               ^"},
	}
	for _, c := range cases {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()
			_, err := eval(t, env, c.source, map[string]any{"input": json.RawMessage(`{"a":1}`), "task": "x"})
			var e *jig.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, jig.CodeInvalidInput, e.Code)
			require.Equal(t, c.want, e.Message)
			var issue *expr.IssueError
			require.ErrorAs(t, err, &issue)
			require.Equal(t, c.source, issue.Source)
		})
	}
	_, err := env.CompileAs("'a'", expr.Bool)
	require.ErrorContains(t, err, "this gives string where true or false is needed")
	p, err := env.CompileAs("input", expr.List)
	require.NoError(t, err)
	_, err = p.Eval(t.Context(), map[string]any{"input": "text"})
	require.ErrorContains(t, err, "this gives string where a list is needed")
	_, err = env.Compile(strings.Repeat(" ", 16<<10) + "1")
	require.ErrorContains(t, err, "at most 16384 are allowed")
}

func TestEval_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	env, err := expr.NewEnv(expr.Use{Name: "long", Limits: expr.Limits{Cost: 1 << 40, Work: 1 << 40}})
	require.NoError(t, err)
	p, err := env.Compile("lists.range(10000).all(x, lists.range(10000).all(y, x + y >= 0))")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = p.Eval(ctx, nil)
	require.Equal(t, jig.CodeTimeout, jig.CodeOf(err))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = p.Eval(ctx, nil)
	require.Equal(t, jig.CodeCanceled, jig.CodeOf(err))
}

func TestEngine_EvaluatesConcurrencyKeys(t *testing.T) {
	t.Parallel()
	engine, err := expr.NewEngine()
	require.NoError(t, err)
	input := json.RawMessage(`{"path":"a/b","n":3,"l":[1,"x"]}`)
	for source, want := range map[string]string{
		"": "", "input.path": "a/b", "'file:' + input.path": "file:a/b", "input.n": "3", "input.l": `[1,"x"]`, "null": "", "''": "",
		"input.?gone.orValue(null)": "",
	} {
		got, err := engine.ConcurrencyKey(t.Context(), source, input)
		require.NoError(t, err, source)
		require.Equal(t, want, got)
	}
	_, err = engine.ConcurrencyKey(t.Context(), "input.nope", input)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	_, err = engine.ConcurrencyKey(t.Context(), "inptu", input)
	require.ErrorContains(t, err, "did you mean 'input'?")
}
