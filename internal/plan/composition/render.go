package composition

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// Limits, in bytes, of the values that expressions produce.
const (
	maxVars  = 256 << 10
	maxValue = 1 << 20
	// inlineBytes is the largest value that is held in the state rather than among the kept values.
	inlineBytes = 256
)

// The functions below evaluate in a scope. Each returns the value; or a problem, which fails the step; or an error, which ends the move
// because the context is done or the facts could not be read.

// evaluate binds the variables that an expression reads and evaluates it.
func evaluate[T any](
	ctx context.Context, r *run, reads expr.Reads, at string, sc *scope, eval func(context.Context, map[string]any) (T, error),
) (v T, problem *jig.Error, err error) {
	vars, problem, err := r.bind(ctx, reads, at, sc)
	if problem != nil || err != nil {
		return v, problem, err
	}
	v, err = eval(ctx, vars)
	problem, err = r.plan.Problem(ctx, at, err)
	return v, problem, err
}

func (r *run) boolean(ctx context.Context, p *program, sc *scope) (bool, *jig.Error, error) {
	return evaluate(ctx, r, p.reads, p.at, sc, p.EvalBool)
}

func (r *run) value(ctx context.Context, p *program, sc *scope) (any, *jig.Error, error) {
	return evaluate(ctx, r, p.reads, p.at, sc, p.Eval)
}

func (r *run) text(ctx context.Context, t *template, sc *scope) (string, *jig.Error, error) {
	return evaluate(ctx, r, t.reads, t.at, sc, t.EvalText)
}

func (r *run) render(ctx context.Context, d *document, sc *scope) (json.RawMessage, *jig.Error, error) {
	return evaluate(ctx, r, d.reads, d.at, sc, d.Render)
}

// input renders the input of a call, an object of at most 256 KiB.
func (r *run) input(ctx context.Context, c *callPlan, sc *scope) (json.RawMessage, *jig.Error, error) {
	raw, problem, err := r.assemble(ctx, c, sc)
	if problem != nil || err != nil {
		return nil, problem, err
	}
	switch {
	case len(raw) == 0:
		raw = json.RawMessage(`{}`)
	case raw[0] != '{':
		problem = r.plan.Located(c.at, jig.Errorf(jig.CodeInvalidInput, "the input of a call must be an object"))
	default:
		problem = r.plan.CheckInput(c.at, raw)
	}
	return raw, problem, nil
}

func (r *run) assemble(ctx context.Context, c *callPlan, sc *scope) (json.RawMessage, *jig.Error, error) {
	if c.input != nil {
		return r.render(ctx, c.input, sc)
	}
	if len(c.parts) == 0 {
		return nil, nil, nil
	}
	members := make(map[string]json.RawMessage, len(c.parts))
	for _, p := range c.parts {
		raw := p.fixed
		var problem *jig.Error
		var err error
		switch {
		case p.text != nil:
			var text string
			if text, problem, err = r.text(ctx, p.text, sc); err == nil && problem == nil {
				raw, err = jsontext.Encode(text + p.after)
			}
		case p.doc != nil:
			raw, problem, err = r.render(ctx, p.doc, sc)
		}
		if problem != nil || err != nil {
			return nil, problem, err
		}
		members[p.name] = raw
	}
	raw, err := jsontext.Encode(members)
	return raw, nil, err
}

// outputOf returns the data of a run that succeeded: the spec's output, or the data of the last top-level step that ran.
func (r *run) outputOf(ctx context.Context, sc *scope) (json.RawMessage, *jig.Error, error) {
	if r.plan.output != nil {
		return r.render(ctx, r.plan.output, sc)
	}
	if r.st.Last == 0 {
		return nil, nil, nil
	}
	n := r.plan.steps[r.st.Last-1]
	if n.id == "" {
		return nil, nil, nil
	}
	m, path, ok := sc.find(n)
	if !ok {
		return nil, nil, nil
	}
	count, kept, isLoop := m.items()
	if !isLoop {
		raw, err := r.resultJSON(ctx, found{mark: m, path: path})
		if err != nil {
			return nil, nil, err
		}
		return dataOf(raw), nil, nil
	}
	list, size := make([]json.RawMessage, 0, count), 0
	for from := 0; from < count; from += plan.MaxBatch {
		raws, err := r.itemBatch(ctx, n, path, from, min(from+plan.MaxBatch, count), kept)
		if err != nil {
			return nil, nil, err
		}
		for _, raw := range raws {
			data := plan.OrNull(dataOf(raw))
			if size += len(data); size > maxRead {
				return nil, r.plan.Located(n.at, jig.Errorf(jig.CodeInvalidInput, "the results take more than %d MiB", maxRead>>20).
					WithHint("give the composition an output")), nil
			}
			list = append(list, data)
		}
	}
	raw, err := jsontext.Encode(list)
	return raw, nil, err
}

// dataOf returns the data of a result, as JSON. It is empty if there is no data or it is null.
func dataOf(result json.RawMessage) json.RawMessage {
	var r struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(result, &r) != nil || string(r.Data) == "null" {
		return nil
	}
	return r.Data
}
