package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"

	"github.com/jig-run/jig/internal/expr"
)

// turn is the number of times that a side does its work before it is the other side's turn.
const turn = 100

// contender is a piece of work, done by jig and by the library alone.
type contender struct {
	what       string
	ours, raws func(ctx context.Context) error
	// beside reports that the row is shown for information only and has no target.
	beside bool
}

// inTurns measures contenders. Both sides work in short turns, so that disturbances affect both, and the verdict depends on the ratio of
// the medians of each pair's turns.
func (b *bench) inTurns(ctx context.Context, figure, what, library string, bound float64, list []contender) ([]row, error) {
	var rows []row
	for _, c := range list {
		ours, raws := make([]float64, b.pairs), make([]float64, b.pairs)
		for pair := range b.pairs {
			err := b.profiled(figure, "both", func() (err error) {
				ours[pair], raws[pair], err = b.oneOfEach(ctx, c)
				return err
			})
			if err != nil {
				return rows, fmt.Errorf("%s: %w", c.what, err)
			}
		}
		ratio := ratios(ours, raws)
		r := row{
			figure: what + ", " + c.what, jig: spreadOf(ours).show(2, " µs"),
			baseline: spreadOf(raws).show(2, " µs"), ratio: ratio.show(2, ""), verdict: notJudged,
		}
		if !c.beside {
			r.target, r.verdict = fmt.Sprintf("≤ %g × %s", bound, library), judge(ratio.median <= bound)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// oneOfEach measures one pair. It returns the microseconds of one evaluation for each side, as the median of its turns.
func (b *bench) oneOfEach(ctx context.Context, c contender) (ours, raws float64, err error) {
	var times [2][]float64
	for range max(1, b.size.evaluations/turn) {
		for i, work := range []func(context.Context) error{c.ours, c.raws} {
			began := time.Now()
			for range turn {
				if err := work(ctx); err != nil {
					return 0, 0, err
				}
			}
			times[i] = append(times[i], float64(time.Since(began).Nanoseconds())/1000/turn)
		}
	}
	return quantile(times[0], 0.5), quantile(times[1], 0.5), nil
}

// stepVariables returns the variables that a step's expressions read, converted for the engine and in the form that cel-go takes.
func stepVariables() (ready, native map[string]any, err error) {
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
		if ready[name], err = expr.From(value); err != nil {
			return nil, nil, fmt.Errorf("convert %s: %w", name, err)
		}
	}
	return ready, native, nil
}

// evaluation measures P8: evaluating the compiled expressions of a composition's step, compared with cel-go alone.
func evaluation(ctx context.Context, b *bench) ([]row, error) {
	ready, native, err := stepVariables()
	if err != nil {
		return nil, err
	}
	env, err := expr.StepUse().Env()
	if err != nil {
		return nil, fmt.Errorf("make the environment: %w", err)
	}
	var list []contender
	const condition = `input.publish && steps.page.success && steps.page.data.id > 0 && "news" in input.tags`
	for _, one := range []struct {
		what, source string
		limits       []cel.ProgramOption
	}{
		{what: "a condition", source: condition},
		{what: "the same, compared with cel-go with its own cost limit", source: condition, limits: []cel.ProgramOption{cel.CostLimit(1_000_000)}},
		{what: "a condition over 20 results", source: `input.publish && steps.sections.all(s, s.success && s.data.id >= 0)`},
		{what: "a list made of 20 results", source: `steps.sections.filter(s, s.data.id > 10).map(s, s.data.url)`},
	} {
		program, err := env.Compile(one.source)
		if err != nil {
			return nil, fmt.Errorf("compile %s: %w", one.what, err)
		}
		raw, err := rawPrograms(one.limits, one.source)
		if err != nil {
			return nil, err
		}
		list = append(list, contender{
			what: one.what, beside: len(one.limits) > 0,
			ours: func(ctx context.Context) error {
				_, err := program.EvalValue(ctx, ready)
				return err
			},
			raws: func(ctx context.Context) error {
				_, _, err := raw[0].ContextEval(ctx, native)
				return err //nolint:wrapcheck // as above
			},
		})
	}
	rendered, err := rendering(env, ready, native)
	if err != nil {
		return nil, err
	}
	return b.inTurns(ctx, "p8", "evaluation of a step's compiled expression", "cel-go", 1.2, append(list, rendered))
}

// rendering compares rendering a step's input with hand-written code.
func rendering(env *expr.Env, ready, native map[string]any) (contender, error) {
	document, problems := env.Document(json.RawMessage(`{"page_id":"${steps.page.data.id}","title":"${input.title}",` +
		`"options":{"draft":false,"tags":"${input.tags}"},"note":"page ${steps.page.data.url} of ${vars.total}"}`))
	if len(problems) > 0 {
		return contender{}, fmt.Errorf("compile the document: %v", problems)
	}
	raw, err := rawPrograms(nil, "steps.page.data.id", "input.title", "input.tags", "steps.page.data.url", "vars.total")
	if err != nil {
		return contender{}, err
	}
	return contender{
		what: "a call's input of 5 expressions",
		ours: func(ctx context.Context) error {
			_, err := document.Render(ctx, ready)
			return err
		},
		raws: func(ctx context.Context) error {
			got := make([]any, len(raw))
			for i, p := range raw {
				v, _, err := p.ContextEval(ctx, native)
				if err != nil {
					return err //nolint:wrapcheck // as above
				}
				got[i] = v.Value()
			}
			_, err := json.Marshal(map[string]any{
				"page_id": got[0], "title": got[1], "options": map[string]any{"draft": false, "tags": got[2]},
				"note": fmt.Sprintf("page %v of %v", got[3], got[4]),
			})
			return err //nolint:wrapcheck // as above
		},
	}, nil
}

// rawPrograms compiles expressions with cel-go alone. The programs are optimized, and interruptible as any server needs them to be.
func rawPrograms(limits []cel.ProgramOption, sources ...string) ([]cel.Program, error) {
	env, err := cel.NewEnv(cel.Variable("input", cel.DynType), cel.Variable("steps", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("vars", cel.MapType(cel.StringType, cel.DynType)), ext.Strings())
	if err != nil {
		return nil, fmt.Errorf("make cel-go's environment: %w", err)
	}
	list := make([]cel.Program, len(sources))
	for i, source := range sources {
		checked, issues := env.Compile(source)
		if issues.Err() != nil {
			return nil, fmt.Errorf("compile %s with cel-go: %w", source, issues.Err())
		}
		options := append([]cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), cel.InterruptCheckFrequency(64)}, limits...)
		if list[i], err = env.Program(checked, options...); err != nil {
			return nil, fmt.Errorf("compile %s with cel-go: %w", source, err)
		}
	}
	return list, nil
}
