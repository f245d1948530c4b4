package expr_test

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/expr"
)

const typical = `input.items.filter(i, i.price > 10).map(i, i.name + ": " + string(i.price)).join(", ")`

func benchInput() map[string]any {
	items := make([]any, 20)
	for i := range items {
		items[i] = map[string]any{"name": "item", "price": int64(i)}
	}
	return map[string]any{"items": items}
}

// BenchmarkEval is a cached evaluation beside cel-go's own with the limits it has, over values that are ready.
func BenchmarkEval(b *testing.B) {
	for name, source := range map[string]string{"typical": typical, "condition": `input.items.size() > 3 && input.items[0].name == "item"`} {
		b.Run(name+"/jig", func(b *testing.B) {
			cache, env := expr.NewCache(0), scriptEnv(b)
			ready, err := expr.From(benchInput())
			require.NoError(b, err)
			vars := map[string]any{"input": ready}
			for b.Loop() {
				p, err := cache.Compile(env, source, expr.Any)
				if err == nil {
					_, err = p.Eval(b.Context(), vars)
				}
				require.NoError(b, err)
			}
		})
		for variant, options := range map[string][]cel.ProgramOption{
			"cel":         {cel.EvalOptions(cel.OptOptimize), cel.InterruptCheckFrequency(64)},
			"cel_limited": {cel.EvalOptions(cel.OptOptimize), cel.InterruptCheckFrequency(64), cel.CostLimit(1_000_000)},
		} {
			b.Run(name+"/"+variant, func(b *testing.B) {
				env, err := cel.NewEnv(cel.Variable("input", cel.DynType), ext.Strings())
				require.NoError(b, err)
				checked, issues := env.Compile(source)
				require.NoError(b, issues.Err())
				p, err := env.Program(checked, options...)
				require.NoError(b, err)
				vars := map[string]any{"input": benchInput()}
				for b.Loop() {
					_, _, err := p.ContextEval(b.Context(), vars)
					require.NoError(b, err)
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	env := scriptEnv(b)
	for b.Loop() {
		_, err := env.Compile(typical)
		require.NoError(b, err)
	}
}
