package extraction

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan"
)

// maxEvaluated is the number of evaluations in one move. They bound the time that it takes. A move that reaches this limit, or stores
// [plan.MaxStored] bytes, asks to be continued by another move at once.
const maxEvaluated = 200

// run holds the data of one call of [Plan.Advance].
type run struct {
	plan.Run
	plan  *Plan
	facts Facts
	given *given
	st    *state

	// ready holds the values of tasks decoded for expressions, and sums holds their hashes.
	ready map[int]expr.Value
	sums  map[int]string
	// connected caches the result of known and is valid if sourcesRead is set. related reports whether this move changes the relations of the
	// entity.
	connected            map[string]Source
	sourcesRead, related bool
	// evaluated counts the evaluations of this move.
	evaluated int
}

// Advance takes an extraction as far as it can go without waiting. state is empty for the first move, and [Move.State] of the last stored
// move after that. The same state, facts and situation always give the same move. An input that cannot be read ends the extraction with an
// error as its result. Advance itself returns an error, and no move, if reading the facts fails (it returns that error), if the context is
// done, or if the state does not belong to this plan (INTERNAL).
func (p *Plan) Advance(ctx context.Context, state json.RawMessage, facts Facts, at Situation) (Move, error) {
	if err := ctx.Err(); err != nil {
		return Move{}, err //nolint:wrapcheck // the error of the caller's context
	}
	st, err := p.read(state)
	if err != nil {
		return Move{}, err
	}
	r := &run{Run: plan.NewRun(p.about(), facts, at), plan: p, facts: facts, st: st, ready: map[int]expr.Value{}, sums: map[int]string{}}
	var problem *jig.Error
	if r.given, problem = p.given(at.Input); problem != nil {
		st.Done, st.Open = true, nil
		for n := range st.marks {
			st.marks[n] = markCanceled
		}
		r.Move.Done, r.Move.Result = true, jig.Failure(problem)
	} else if err := r.advance(ctx); err != nil {
		return Move{}, err
	}
	if r.Move.State, err = st.encode(); err != nil {
		return Move{}, err
	}
	return r.Move, nil
}

func (r *run) advance(ctx context.Context) error {
	if !r.st.Done {
		if err := r.settle(ctx); err != nil {
			return err
		}
		if r.At.Canceled {
			r.cancel()
		} else if err := r.start(ctx); err != nil {
			return err
		}
		r.st.Done = r.over()
	}
	r.Move.Progress = r.progress()
	if r.st.Done {
		return r.finish(ctx)
	}
	r.describe()
	return nil
}

// over reports whether every requested task has ended.
func (r *run) over() bool {
	for n, m := range r.st.marks {
		if r.given.asked[n] && !m.over() {
			return false
		}
	}
	return true
}

// full reports whether this move has reached a limit, so that the remaining work is left for the next move.
func (r *run) full() bool {
	if r.evaluated >= maxEvaluated || r.Stored >= plan.MaxStored {
		r.Paused = true
	}
	return r.Paused
}

// settle advances the running tasks: it handles calls that have ended and makes attempts that are now due.
func (r *run) settle(ctx context.Context) error {
	var paths []string
	for _, o := range r.st.Open {
		if o.Until == 0 {
			paths = append(paths, o.path(r.plan.tasks[o.Task]))
		}
	}
	if err := r.LoadRequested(ctx, paths); err != nil {
		return err
	}
	open := make([]openState, 0, len(r.st.Open))
	for _, o := range r.st.Open {
		over, err := r.look(ctx, &o)
		if err != nil {
			return err
		}
		if !over {
			open = append(open, o)
		}
	}
	r.st.Open = open
	return nil
}

// look advances a running task as far as possible.
func (r *run) look(ctx context.Context, o *openState) (over bool, err error) {
	t := r.plan.tasks[o.Task]
	if o.Until != 0 {
		if r.At.Canceled || r.Now() < o.Until || r.full() {
			return false, nil
		}
		o.Until = 0
		r.evaluated++
		r.retry(t, o)
		return false, nil
	}
	call := r.Calls[o.path(t)]
	if !call.Status.Final() || r.full() {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err //nolint:wrapcheck // the error of the caller's context
	}
	r.evaluated++
	return r.answered(ctx, t, o, call.Outcome())
}

// again asks a model for another answer. The task fails if the input of that call cannot be rendered.
func (r *run) again(ctx context.Context, t *task, o *openState) (over bool, err error) {
	r.evaluated++
	problem, err := r.ask(ctx, t, o)
	if err != nil || problem == nil {
		return false, err
	}
	return true, r.fail(ctx, t, o, problem)
}

// start begins tasks until no other task can begin.
func (r *run) start(ctx context.Context) error {
	for progress := true; progress && !r.Paused; {
		progress = false
		for n, t := range r.plan.tasks {
			before := r.st.marks[n]
			if !r.given.asked[n] || before.over() || before == markOpen {
				continue
			}
			if err := r.consider(ctx, t); err != nil {
				return err
			}
			if r.Paused {
				return nil
			}
			progress = progress || r.st.marks[n].over()
		}
	}
	return nil
}

// consider advances a task that has not begun as far as possible.
func (r *run) consider(ctx context.Context, t *task) error {
	if r.st.marks[t.number] == markPending {
		lacks, waits := r.needs(t)
		if lacks != "" {
			return r.skip(t, markLeft, lacks)
		}
		if r.related && t.rests() {
			r.Paused = true // the new targets are known only after this move has been stored
		}
		if waits || r.full() {
			return nil
		}
		if err := r.decide(ctx, t); err != nil {
			return err
		}
	}
	if r.st.marks[t.number] != markReady || len(r.st.Open) >= r.plan.parallel || r.full() {
		return nil
	}
	return r.begin(ctx, t)
}

// needs looks at the tasks that t depends on. lacks is the id of one that ended without a value; waits reports whether one has not ended yet.
func (r *run) needs(t *task) (lacks string, waits bool) {
	for _, n := range t.deps {
		switch m := r.st.marks[n]; {
		case !m.over():
			waits = true
		case !m.hasValue():
			return r.plan.tasks[n].ID, false
		}
	}
	return "", waits
}

// decide decides what happens to a task that could begin: it keeps its earlier outcome, it is skipped because its condition is false, it is
// evaluated at once, or it waits for its turn.
func (r *run) decide(ctx context.Context, t *task) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the error of the caller's context
	}
	settled, err := r.asBefore(ctx, t)
	if err != nil || settled {
		return err
	}
	if t.when != nil {
		r.evaluated++
		is, problem, err := evaluate(ctx, r, t, "when", t.reads.when, r.At.Now.UTC(), nil, t.when.EvalBool)
		if problem != nil || err != nil {
			return r.failed(ctx, t, nil, problem, err)
		}
		if !is {
			return r.skip(t, markOut, "condition")
		}
	}
	if t.local() {
		r.evaluated++
		return r.work(ctx, t)
	}
	r.st.marks[t.number] = markReady
	return nil
}

// work evaluates a task that makes no call.
func (r *run) work(ctx context.Context, t *task) error {
	r.event(jig.EventTaskStarted, t, nil, TaskEvent{})
	var value json.RawMessage
	var problem *jig.Error
	if t.Kind == entity.TaskCitations {
		raw, err := r.claims(ctx, t)
		if err != nil {
			return err
		}
		if value, problem, err = r.cited(ctx, t, raw); err != nil {
			return err
		}
	} else {
		var err error
		if value, problem, err = evaluate(ctx, r, t, "compute", t.reads.compute, r.At.Now.UTC(), nil, t.compute.EvalJSON); err != nil {
			return err
		}
	}
	if problem == nil {
		var err error
		if problem, err = r.accept(ctx, t, nil, value, nil); err != nil {
			return err
		}
	}
	return r.failed(ctx, t, nil, problem, nil)
}

// begin makes the first call of a task.
func (r *run) begin(ctx context.Context, t *task) error {
	r.evaluated++
	o := openState{Task: t.number, Since: r.Now()}
	problem, err := r.ask(ctx, t, &o)
	if err != nil {
		return err
	}
	r.event(jig.EventTaskStarted, t, &o, TaskEvent{})
	if problem != nil {
		return r.fail(ctx, t, &o, problem)
	}
	r.st.marks[t.number] = markOpen
	r.st.Open = append(r.st.Open, o)
	return nil
}

// cancel cancels the running calls. No other task begins, and a running task ends when its call does.
func (r *run) cancel() {
	r.st.Open = slices.DeleteFunc(r.st.Open, func(o openState) bool {
		t := r.plan.tasks[o.Task]
		if o.Until != 0 {
			r.st.marks[o.Task] = markCanceled
			return true
		}
		if path := o.path(t); !r.Calls[path].Status.Final() {
			r.Move.Cancel = append(r.Move.Cancel, path)
		}
		return false
	})
	if len(r.st.Open) > 0 {
		return
	}
	for n, m := range r.st.marks {
		if !m.over() {
			r.st.marks[n] = markCanceled
		}
	}
}

// describe tells the caller which tasks and calls are open and when to look again.
func (r *run) describe() {
	for _, o := range r.st.Open {
		t := r.plan.tasks[o.Task]
		r.Show(t.ID)
		if o.Until != 0 {
			r.AwaitTime(o.Until)
		} else {
			r.AwaitCall(o.path(t))
		}
	}
	r.Wake()
}
