package composition

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// scope holds the names that the expressions of a step can read: the steps of the run and of the enclosing items, and the errors being handled.
type scope struct {
	// up is the scope around the loop; nil in the run's own scope.
	up *scope
	// loop is the loop that the item belongs to; nil in the run's own scope.
	loop *node
	// done holds the marks of the steps in this scope that have ended. prefix is the beginning of the paths of its steps.
	done   marks
	prefix string
	// items, path and index identify the item. items is nil outside of an item.
	items *loopState
	path  string
	index int
	// errors are the errors being handled, the innermost last.
	errors []namedError
	// own holds results of items whose loops have not ended, for the items' own undo and catch.
	own []ownResult
	// ends is the earliest enclosing deadline, in milliseconds since 1970; 0 if there is no deadline.
	ends int64
}

type namedError struct {
	name string
	err  *jig.Error
}

// ownResult says where the result of an item is. The item's undo and catch read it under the loop's id.
type ownResult struct {
	id   string
	path string
	mark mark
}

func (p *Plan) scope(st *state) *scope { return &scope{done: st.Done} }

// item returns the scope of an item of the loop at path.
func (s *scope) item(loop *node, path string, items *loopState, item *itemState) *scope {
	if item.Done == nil {
		item.Done = marks{}
	}
	inner := *s
	inner.up, inner.loop, inner.done, inner.items, inner.path, inner.index = s, loop, item.Done, items, path, item.Index
	inner.prefix = itemPath(path, item.Index) + "/"
	return &inner
}

func itemPath(loop string, index int) string { return loop + "[" + strconv.Itoa(index) + "]" }

// bounded returns the scope for steps that run under a deadline.
func (s *scope) bounded(ends int64) *scope {
	if ends == 0 || s.ends != 0 && s.ends <= ends {
		return s
	}
	inner := *s
	inner.ends = ends
	return &inner
}

// handling returns the scope of a catch, or of a condition on an error.
func (s *scope) handling(err *jig.Error, as string) *scope {
	inner := *s
	inner.errors = append(slices.Clip(s.errors), namedError{name: as, err: err})
	return &inner
}

// withOwn returns the scope in which an item can read its own result.
func (s *scope) withOwn(n *node, path string, m mark) *scope {
	if n.each == nil {
		return s
	}
	inner := *s
	inner.own = append(slices.Clip(s.own), ownResult{id: n.id, path: path, mark: m})
	return &inner
}

// find returns how a step ended and the path of its result. ok is false if the step is not visible from this scope.
func (s *scope) find(n *node) (m mark, path string, ok bool) {
	for _, own := range slices.Backward(s.own) {
		if own.id == n.id {
			return own.mark, own.path, true
		}
	}
	for at := s; at != nil; at = at.up {
		if at.loop == n.loop {
			return at.done[n.id], at.prefix + n.name, true
		}
	}
	return "", "", false
}

// leaf is a running step and the scope that it runs in. inner reports whether it contains other running steps.
type leaf struct {
	n     *node
	st    *stepState
	sc    *scope
	path  string
	inner bool
}

// call returns the path of the call that the step has requested. ok is false if there is no such call, or if the run no longer waits for
// it.
func (l leaf) call() (string, bool) {
	return plan.AttemptPath(l.path, l.st.Retries+1), l.st.Asked && !l.st.Over
}

// wait returns what the step waits for, if it waits for an event or a time.
func (l leaf) wait() (jig.Wait, bool) {
	w := jig.Wait{Call: l.path}
	if l.st.Until != 0 {
		w.Until = time.UnixMilli(l.st.Until).UTC()
	}
	switch {
	case l.inner || l.st.Over:
		return w, false
	case l.n.action == actWaitFor:
		w.Event = l.n.waitFor.event
		return w, l.st.Begun
	case l.n.action == actWait || l.n.action == actWaitUntil:
		return w, l.st.Begun
	}
	w.Retries = true
	return w, l.st.Until != 0
}

// live calls f for every running step, in the order of the document and of the items.
func (r *run) live(steps []*node, st *blockState, sc *scope, f func(leaf)) {
	if st != nil && st.Step != nil {
		n := steps[st.At]
		r.liveStep(n, st.Step, sc, f)
	}
}

func (r *run) liveStep(n *node, st *stepState, sc *scope, f func(leaf)) {
	path := sc.prefix + n.name
	if n.each == nil {
		r.liveItem(n, st, sc, path, f)
		return
	}
	if st.Caught != nil {
		r.liveItem(n, st, r.outside(n, st, sc), path, f)
		return
	}
	f(leaf{n: n, st: st, sc: sc, path: path, inner: true})
	for i := range st.Loop.Open {
		item := &st.Loop.Open[i]
		r.liveItem(n, item.Step, sc.item(n, path, st.Loop, item), itemPath(path, item.Index), f)
	}
}

func (r *run) liveItem(n *node, st *stepState, sc *scope, path string, f func(leaf)) {
	l := leaf{n: n, st: st, sc: sc, path: path}
	switch {
	case st.Caught != nil:
		l.inner = true
		f(l)
		r.live(n.onError.catch, st.Block, sc.handling(st.Caught.Error, n.onError.as).withOwn(n, path, st.Mark), f)
	case n.action == actBlock:
		l.inner = true
		f(l)
		r.live(n.steps, st.Block, sc, f)
	case n.action == actSwitch:
		l.inner = true
		f(l)
		if st.Case > 0 {
			r.live(n.cases[st.Case-1].steps, st.Block, sc, f)
		}
	case n.action == actParallel:
		l.inner = true
		f(l)
		for i, b := range st.Branches {
			if b.Step != nil {
				r.liveStep(n.branches[i], b.Step, sc, f)
			}
		}
	default:
		f(l)
	}
}

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
