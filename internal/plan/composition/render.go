package composition

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
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

func (r *run) boolean(ctx context.Context, p *program, sc *scope) (bool, *jig.Error, error) {
	vars, problem, err := r.bind(ctx, p.reads, p.at, sc)
	if problem != nil || err != nil {
		return false, problem, err
	}
	is, err := p.EvalBool(ctx, vars)
	problem, err = r.plan.Problem(ctx, p.at, err)
	return is, problem, err
}

func (r *run) value(ctx context.Context, p *program, sc *scope) (any, *jig.Error, error) {
	vars, problem, err := r.bind(ctx, p.reads, p.at, sc)
	if problem != nil || err != nil {
		return nil, problem, err
	}
	v, err := p.Eval(ctx, vars)
	problem, err = r.plan.Problem(ctx, p.at, err)
	return v, problem, err
}

func (r *run) text(ctx context.Context, t *template, sc *scope) (string, *jig.Error, error) {
	vars, problem, err := r.bind(ctx, t.reads, t.at, sc)
	if problem != nil || err != nil {
		return "", problem, err
	}
	text, err := t.EvalText(ctx, vars)
	problem, err = r.plan.Problem(ctx, t.at, err)
	return text, problem, err
}

func (r *run) render(ctx context.Context, d *document, sc *scope) (json.RawMessage, *jig.Error, error) {
	vars, problem, err := r.bind(ctx, d.reads, d.at, sc)
	if problem != nil || err != nil {
		return nil, problem, err
	}
	raw, err := d.Render(ctx, vars)
	problem, err = r.plan.Problem(ctx, d.at, err)
	return raw, problem, err
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
