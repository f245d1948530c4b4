package expr_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/expr"
)

func stepEnv(t testing.TB, extra ...expr.Variable) *expr.Env {
	t.Helper()
	env, err := expr.StepUse(extra...).Env()
	require.NoError(t, err)
	return env
}

func TestStepEnv_IsMadeOnce(t *testing.T) {
	t.Parallel()
	a, b := expr.Variable{Name: "problem"}, expr.Variable{Name: "other", Type: expr.Int}
	first, second := stepEnv(t), stepEnv(t)
	require.Same(t, first, second)
	require.Same(t, stepEnv(t, a, b), stepEnv(t, b, a))
	require.Same(t, stepEnv(t), stepEnv(t, expr.Variable{Name: "error"}), "error is already declared")
	require.NotSame(t, stepEnv(t), stepEnv(t, a))
	require.NotSame(t, stepEnv(t, a), stepEnv(t, expr.Variable{Name: "problem", Type: expr.Map}))
	limits := stepEnv(t, a).Use().Limits
	require.Equal(t, expr.Limits{Source: 4 << 10, Cost: 1_000_000, Work: 12 << 20, Result: 1 << 20}, limits)
}

func TestStep_Expressions(t *testing.T) {
	t.Parallel()
	env := stepEnv(t, expr.Variable{Name: "problem"})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	vars := map[string]any{
		"input": json.RawMessage(`{"title":"Hello","publish":true}`),
		"steps": json.RawMessage(`{"page":{"success":true,"data":{"id":7}},"sections":[{"success":true},{"success":false}],"gone":{"skipped":true}}`),
		"vars":  map[string]any{"total": 3}, "item": "x", "index": 2, "tenant": "default", "now": now,
		"session": map[string]any{"id": "ses_1"}, "principal": map[string]any{"groups": []string{"editors"}},
		"problem": map[string]any{"code": "TIMEOUT"}, "event": map[string]any{"data": nil},
	}
	for source, want := range map[string]string{
		"steps.page.data.id + vars.total":                            "10",
		"input.publish && steps.sections.all(s, s.success)":          "false",
		"steps.gone.?success.orValue(false)":                         "false",
		"index + 1":                                                  "3",
		"'editors' in principal.groups && session.id == 'ses_1'":     "true",
		"now + duration('24h')":                                      `"2026-03-02T12:00:00Z"`,
		"now.getFullYear()":                                          "2026",
		"now > timestamp('2026-01-01T00:00:00Z')":                    "true",
		"problem.code in ['TIMEOUT', 'UNAVAILABLE']":                 "true",
		"event.data == null":                                         "true",
		"[{'page': 1}].map(steps, steps.page + .steps.page.data.id)": "[8]",
		"tenant + item":                                              `"defaultx"`,
	} {
		got, err := eval(t, env, source, vars)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	p, err := env.CompileAs("now + duration('1h')", expr.Timestamp)
	require.NoError(t, err)
	at, err := p.Eval(t.Context(), vars)
	require.NoError(t, err)
	require.Equal(t, now.Add(time.Hour).Format(time.RFC3339), at)
	_, err = env.CompileAs("'2026-03-02'", expr.Timestamp)
	require.ErrorContains(t, err, "this gives string where a timestamp is needed")
	p, err = env.CompileAs("input.title", expr.Timestamp)
	require.NoError(t, err)
	_, err = p.Eval(t.Context(), vars)
	require.ErrorContains(t, err, "this gives string where a timestamp is needed")
}

func TestType_OfAResult(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]expr.Type{
		"1": expr.Int, "'a'": expr.String, "[input]": expr.List, "{'a': 1}": expr.Map, "input.x": expr.Any, "now": expr.Timestamp,
		"input.x == 1": expr.Bool, "1.5": expr.Any, "duration('1s')": expr.Any, "optional.none()": expr.Any, "steps": expr.Map,
		"input.l.map(x, x)": expr.List, "string(input.x)": expr.String, "null": expr.Any,
	} {
		p, err := stepEnv(t).Compile(source)
		require.NoError(t, err, source)
		require.Equal(t, want, p.Type(), source)
	}
}

func TestReads_OfExpressions(t *testing.T) {
	t.Parallel()
	steps := func(ids ...string) expr.Reads { return expr.Reads{Names: []string{"steps"}, Steps: ids} }
	vars := func(names ...string) expr.Reads { return expr.Reads{Names: []string{"vars"}, Vars: names} }
	for source, want := range map[string]expr.Reads{
		"1 + 2":                                {},
		"input.title":                          {Names: []string{"input"}},
		"index + int(item.n) > now.getHours()": {Names: []string{"index", "item", "now"}},
		"steps.page.data.id":                   steps("page"),
		"steps['page'].data":                   steps("page"),
		"steps[?'page'].data":                  steps("page"),
		"steps.?page":                          steps("page"),
		"has(steps.page)":                      steps("page"),
		"'page' in steps":                      steps("page"),
		"steps.b.success && steps.a.success && steps.b.data": steps("a", "b"),
		"steps.sections.all(s, s.success)":                   steps("sections"),
		"size(steps)":                                        {Names: []string{"steps"}, AllSteps: true},
		"steps[input.id]":                                    {Names: []string{"input", "steps"}, AllSteps: true},
		"item in steps":                                      {Names: []string{"item", "steps"}, AllSteps: true},
		"steps.map(k, steps[k])":                             {Names: []string{"steps"}, AllSteps: true},
		"[steps]":                                            {Names: []string{"steps"}, AllSteps: true},
		"{'a': steps.b}":                                     steps("b"),
		"{steps.a.data: 1}":                                  steps("a"),
		"vars.total + vars['n']":                             vars("n", "total"),
		"vars":                                               {Names: []string{"vars"}, AllVars: true},
		"[1].map(steps, steps + 1)":                          {},
		"[{'a': 1}].map(steps, steps.a)":                     {},
		"[{'a': 1}].map(steps, steps.a + .steps.b.n)":        steps("b"),
		"[1].map(vars, steps.x.data)":                        steps("x"),
		"steps.a.data.map(steps, steps)":                     steps("a"),
		"[1].map(steps, steps).size() + steps.a.data":        steps("a"),
		"[1].exists(x, [2].exists(steps, steps == x)) && steps.a.success":                   steps("a"),
		"[1].exists(steps, [2].exists(steps, steps == 1) && steps == 1) && steps.a.success": steps("a"),
		"[1].map(steps, steps > 0, steps)":                                                  {},
		"cel.bind(steps, {'a': 1}, steps.a)":                                                {},
		"cel.bind(steps, steps.a, steps.b)":                                                 steps("a"),
		"cel.bind(x, steps.a, x.data) + steps.b.data":                                       steps("a", "b"),
		"cel.bind(all, steps, all.page)":                                                    {Names: []string{"steps"}, AllSteps: true},
		"[1].transformList(steps, v, steps + v) == steps.q.data":                            steps("q"),
		"[1].transformMap(i, steps, steps)":                                                 {},
		"[{'steps': 1}].sortBy(steps, steps.steps)":                                         {},
		"input.steps.page":                                                                  {Names: []string{"input"}},
		"optional.of(steps.a).hasValue()":                                                   steps("a"),
		"steps.a.data ? steps.b : {'c': steps.c}.c":                                         steps("a", "b", "c"),
		"string(session.id) + tenant":                                                       {Names: []string{"session", "tenant"}},
	} {
		p, err := stepEnv(t).Compile(source)
		require.NoError(t, err, source)
		require.Equal(t, want, p.Reads(), source)
	}
	script, err := scriptEnv(t).Compile("vars.a")
	require.NoError(t, err)
	require.Equal(t, expr.Reads{Names: []string{"vars"}, Vars: []string{"a"}}, script.Reads())
}

func TestReads_OfTemplatesAndDocuments(t *testing.T) {
	t.Parallel()
	tm, err := stepEnv(t).Template("${steps.b.data} and ${steps.a.data} for ${input.x}, $${vars}")
	require.NoError(t, err)
	require.Equal(t, expr.Reads{Names: []string{"input", "steps"}, Steps: []string{"a", "b"}}, tm.Reads())
	tm, err = stepEnv(t).Template("plain")
	require.NoError(t, err)
	require.Equal(t, expr.Reads{}, tm.Reads())
	d, problems := stepEnv(t).Document(json.RawMessage(`{"b":["x",{"c":"${steps.a}"},"${vars.n}"],"a":"${steps}","d":1}`))
	require.Empty(t, problems)
	require.Equal(t, expr.Reads{Names: []string{"steps", "vars"}, Steps: []string{"a"}, AllSteps: true, Vars: []string{"n"}}, d.Reads())
	each := map[string]expr.Reads{}
	var order []string
	for path, tm := range d.Templates() {
		order = append(order, path)
		each[path] = tm.Reads()
	}
	require.Equal(t, []string{"a", "b[1].c", "b[2]"}, order)
	require.Equal(t, map[string]expr.Reads{
		"a":      {Names: []string{"steps"}, AllSteps: true},
		"b[1].c": {Names: []string{"steps"}, Steps: []string{"a"}},
		"b[2]":   {Names: []string{"vars"}, Vars: []string{"n"}},
	}, maps.Collect(maps.All(each)))
	for path := range d.Templates() {
		require.Equal(t, "a", path, "the walk ends when the loop does")
		break
	}
	merged := expr.Reads{Names: []string{"b"}, Vars: []string{"x"}}.Merge(expr.Reads{Names: []string{"a", "b"}, AllSteps: true})
	require.Equal(t, expr.Reads{Names: []string{"a", "b"}, Vars: []string{"x"}, AllSteps: true}, merged)
	require.True(t, merged.Has("a"))
	require.False(t, merged.Has("c"))
}

func BenchmarkStepEnv(b *testing.B) {
	for b.Loop() {
		_, err := expr.NewEnv(expr.StepUse())
		require.NoError(b, err)
	}
}
