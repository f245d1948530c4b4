package expr_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/expr"
)

// Whatever is compiled and evaluated, it ends soon, with a value that is JSON or an error of the vocabulary, and does so
// again the same way.
func FuzzExpression(f *testing.F) {
	if !raceEnabled { // they would take a minute
		for _, source := range hostile() {
			f.Add(source, `{}`)
		}
	}
	f.Add("input.m.map(k, k + string(input.m[k]))", `{"m":{"b":1,"a":2.5}}`)
	f.Add("input.l.filter(x, x.n > 1).sortBy(x, x.n).map(x, '%s'.format([x]))", `{"l":[{"n":2},{"n":3}]}`)
	f.Add("input.?a[?0].orValue({'a': [1, 2.0, b'x', duration('1h')]})", `{}`)
	use := expr.ScriptUse()
	use.Limits = expr.Limits{}
	env, err := expr.NewEnv(use)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, source, input string) {
		p, err := env.Compile(source)
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		vars := map[string]any{"input": json.RawMessage(input), "task": input, "pass": 1, "calls": []any{}, "last": []any{}, "messages": []any{}, "vars": map[string]any{}}
		first, err := p.EvalJSON(ctx, vars)
		again, err2 := p.EvalJSON(ctx, vars)
		require.Equal(t, err == nil, err2 == nil)
		require.Equal(t, string(first), string(again))
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), err.Error())
			return
		}
		require.True(t, json.Valid(first))
	})
}

func FuzzTemplate(f *testing.F) {
	for _, source := range []string{"a ${task} b", "$${x}", "${'}'}", "${r'\\'}", "${ {} }", "$$${task}", "${", "é${'''}'''}"} {
		f.Add(source)
	}
	env := scriptEnv(f)
	f.Fuzz(func(t *testing.T, source string) {
		tm, err := env.Template(source)
		if err == nil {
			_, err = tm.Eval(t.Context(), map[string]any{"task": "x"})
		}
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
		}
	})
}
