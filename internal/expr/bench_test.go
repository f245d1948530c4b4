package expr_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/expr"
)

const typical = `input.items.filter(i, i.price > 10).map(i, i.name + ": " + string(i.price)).join(", ")`

func benchInput() map[string]any {
	items := make([]any, 20)
	for i := range items {
		items[i] = map[string]any{"name": "item", "price": int64(i)}
	}
	return map[string]any{"items": items}
}

// BenchmarkEval compares the evaluation of a compiled expression with plain cel-go under cel-go's limits, over converted values.
func BenchmarkEval(b *testing.B) {
	for name, source := range map[string]string{"typical": typical, "condition": `input.items.size() > 3 && input.items[0].name == "item"`} {
		b.Run(name+"/jig", func(b *testing.B) {
			p, err := scriptEnv(b).CompileAs(source, expr.Any)
			require.NoError(b, err)
			ready, err := expr.From(benchInput())
			require.NoError(b, err)
			vars := map[string]any{"input": ready}
			for b.Loop() {
				_, err := p.Eval(b.Context(), vars)
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

// stepVars returns the variables that a step's expressions read, converted for the engine and in the form that plain cel-go takes.
func stepVars(b *testing.B) (ready, native map[string]any) {
	b.Helper()
	sections := make([]any, 20)
	for i := range sections {
		sections[i] = map[string]any{"success": true, "data": map[string]any{"id": int64(i), "url": "/sections/of/a/page"}}
	}
	native = map[string]any{
		"input": map[string]any{"title": "A page", "publish": true, "tags": []any{"news", "home"}},
		"steps": map[string]any{"page": map[string]any{"success": true, "data": map[string]any{"id": int64(7), "url": "/pages/7"}}, "sections": sections},
		"vars":  map[string]any{"total": int64(20)},
	}
	ready = map[string]any{}
	for name, value := range native {
		v, err := expr.From(value)
		require.NoError(b, err)
		ready[name] = v
	}
	return ready, native
}

// rawPrograms compiles with plain cel-go. As in jig, the programs can be interrupted.
func rawPrograms(b *testing.B, sources ...string) []cel.Program {
	b.Helper()
	env, err := cel.NewEnv(cel.Variable("input", cel.DynType), cel.Variable("steps", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("vars", cel.MapType(cel.StringType, cel.DynType)), ext.Strings())
	require.NoError(b, err)
	out := make([]cel.Program, len(sources))
	for i, source := range sources {
		checked, issues := env.Compile(source)
		require.NoError(b, issues.Err())
		out[i], err = env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.InterruptCheckFrequency(64))
		require.NoError(b, err)
	}
	return out
}

// BenchmarkSteps compares the evaluations for one step of a composition with the same evaluations in plain cel-go. Both sides take turns within
// one run. x_cel is the median ratio.
func BenchmarkSteps(b *testing.B) {
	ready, native := stepVars(b)
	env := stepEnv(b)
	conditions := map[string]string{
		"condition": `input.publish && steps.page.success && steps.page.data.id > 0 && "news" in input.tags`,
		"loop":      `input.publish && steps.sections.all(s, s.success && s.data.id >= 0)`,
		"value":     `steps.sections.filter(s, s.data.id > 10).map(s, s.data.url)`,
	}
	for name, source := range conditions {
		p, err := env.Compile(source)
		require.NoError(b, err)
		raw := rawPrograms(b, source)[0]
		b.Run(name, func(b *testing.B) {
			inTurns(b, func() error {
				_, err := p.EvalValue(b.Context(), ready)
				return err
			}, func() error {
				_, _, err := raw.ContextEval(b.Context(), native)
				return err
			})
		})
	}
	d, problems := env.Document(json.RawMessage(
		`{"page_id":"${steps.page.data.id}","title":"${input.title}","options":{"draft":false,"tags":"${input.tags}"},"note":"page ${steps.page.data.url} of ${vars.total}"}`))
	require.Empty(b, problems)
	raw := rawPrograms(b, "steps.page.data.id", "input.title", "input.tags", "steps.page.data.url", "vars.total")
	b.Run("document", func(b *testing.B) {
		inTurns(b, func() error {
			_, err := d.Render(b.Context(), ready)
			return err
		}, func() error {
			_, err := renderRaw(b, raw, native)
			return err
		})
	})
}

// renderRaw renders the document of BenchmarkSteps as one would write it by hand.
func renderRaw(b *testing.B, programs []cel.Program, vars map[string]any) ([]byte, error) {
	b.Helper()
	got := make([]any, len(programs))
	for i, p := range programs {
		v, _, err := p.ContextEval(b.Context(), vars)
		if err != nil {
			return nil, err
		}
		got[i] = v.Value()
	}
	return json.Marshal(map[string]any{
		"page_id": got[0], "title": got[1], "options": map[string]any{"draft": false, "tags": got[2]}, "note": fmt.Sprintf("page %v of %v", got[3], got[4]),
	})
}

func inTurns(b *testing.B, ours, theirs func() error) {
	b.Helper()
	const turn = 500
	timed := func(f func() error) time.Duration {
		var failed error
		begin := time.Now()
		for range turn {
			if err := f(); err != nil {
				failed = err
			}
		}
		took := time.Since(begin)
		require.NoError(b, failed)
		return took
	}
	var ratios []float64
	for b.Loop() {
		mine := timed(ours)
		ratios = append(ratios, float64(mine)/float64(timed(theirs)))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x_cel")
}

func BenchmarkCompile(b *testing.B) {
	env := scriptEnv(b)
	for b.Loop() {
		_, err := env.Compile(typical)
		require.NoError(b, err)
	}
}
