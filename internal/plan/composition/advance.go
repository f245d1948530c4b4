package composition

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// maxBegun is the number of steps that one move begins. A move that reaches this limit, or stores [plan.MaxStored] bytes, asks to be continued
// by another move at once.
const maxBegun = 1_000

// run holds the data of one call of [Plan.Advance].
type run struct {
	plan.Run
	plan *Plan
	st   *state
	// ready holds values decoded for expressions, and held is their total size.
	ready map[string]ready
	held  int
	// event is set while the condition of a wait_for is evaluated for an event.
	event *expr.Value
	// begun counts the steps begun in this move.
	begun int
}

// outcome is the result of advancing a step: not over, or over with a mark and, if it failed, the failure.
type outcome struct {
	over bool
	mark mark
	fail *failure
}

// Advance takes a run as far as it can go without waiting. state is empty for the first move, and [Move.State] of the last stored move after
// that. The same state, facts and situation always give the same move. Advance returns an error, and no move, if reading the facts fails (it
// returns that error), if the context is done, or if the state does not belong to this plan (INTERNAL).
func (p *Plan) Advance(ctx context.Context, state json.RawMessage, facts Facts, at Situation) (Move, error) {
	if err := ctx.Err(); err != nil {
		return Move{}, err //nolint:wrapcheck // the error of the caller's context
	}
	st, err := p.read(state)
	if err != nil {
		return Move{}, err
	}
	r := &run{Run: plan.NewRun(p.about(), facts, at), plan: p, st: st, ready: map[string]ready{}}
	if err := r.advance(ctx); err != nil {
		return Move{}, err
	}
	r.describe()
	r.Move.Cancel = append(r.Move.Cancel, r.st.Dropped...)
	if r.Move.State, err = jsontext.Encode(r.st); err != nil {
		return Move{}, err
	}
	return r.Move, nil
}

func (r *run) advance(ctx context.Context) error {
	sc := r.plan.scope(r.st)
	if err := r.lookAtCalls(ctx, sc); err != nil {
		return err
	}
	if err := r.lookAtDropped(ctx); err != nil {
		return err
	}
	if r.At.Canceled && r.st.Phase == phaseRunning {
		r.cancel()
	}
	if r.st.Phase == phaseEnding {
		if over, err := r.drain(ctx, sc); err != nil || !over {
			return err
		}
		r.unwind(r.st.Failure)
	}
	if r.st.Phase == phaseRunning {
		over, fail, err := r.block(ctx, r.plan.steps, r.st.Root, sc)
		switch {
		case err != nil || !over:
			return err
		case fail != nil:
			r.unwind(fail)
		default:
			if err := r.succeed(ctx, sc); err != nil {
				return err
			}
		}
	}
	if r.st.Phase == phaseUndoing {
		if over, err := r.undo(ctx); err != nil || !over {
			return err
		}
		r.st.Phase = phaseDone
	}
	return r.finish(ctx, sc)
}

// lookAtCalls reads the ledger status of all open calls at once. It is an INTERNAL error if one of them does not exist.
func (r *run) lookAtCalls(ctx context.Context, sc *scope) error {
	var paths []string
	r.live(r.plan.steps, r.st.Root, sc, func(l leaf) {
		if path, ok := l.call(); ok {
			paths = append(paths, path)
		}
	})
	return r.LoadRequested(ctx, paths)
}

// block advances the steps of a block, one after another, as far as possible.
func (r *run) block(ctx context.Context, steps []*node, st *blockState, sc *scope) (over bool, fail *failure, err error) {
	for st.At < len(steps) {
		n := steps[st.At]
		var out outcome
		st.Step, out, err = r.proceed(ctx, n, st.Step, sc)
		if err != nil || !out.over {
			return false, nil, err
		}
		st.At++
		if st == r.st.Root && out.mark != markSkipped {
			r.st.Last = st.At
		}
		if out.fail != nil {
			return true, out.fail, nil
		}
	}
	return true, nil, nil
}

// proceed begins a step if necessary, advances it as far as possible, and records how it ended. The returned state is nil if the step has not
// begun or has ended.
func (r *run) proceed(ctx context.Context, n *node, st *stepState, sc *scope) (*stepState, outcome, error) {
	var out outcome
	var err error
	if st == nil {
		if !r.mayBegin(sc) {
			return nil, out, ctx.Err() //nolint:wrapcheck // the error of the caller's context
		}
		st = &stepState{}
		out, err = r.begin(ctx, n, st, sc)
	} else {
		out, err = r.step(ctx, n, st, sc)
	}
	if err != nil || !out.over {
		return st, out, err
	}
	if n.id != "" {
		sc.done[n.id] = out.mark
	}
	return nil, out, nil
}

// mayBegin reports whether another step may begin. It returns false if the move has reached a limit or the deadline of an enclosing step has
// passed. Steps that end immediately count toward the limit; otherwise a loop of such steps would never pause.
func (r *run) mayBegin(sc *scope) bool {
	if sc.ends != 0 && r.Now() >= sc.ends {
		return false
	}
	if r.begun >= maxBegun || r.Stored >= plan.MaxStored {
		r.Paused = true
		return false
	}
	r.begun++
	return true
}

// begin evaluates the step's condition and its list, once, and advances the step as far as possible.
func (r *run) begin(ctx context.Context, n *node, st *stepState, sc *scope) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err //nolint:wrapcheck // the error of the caller's context
	}
	path := sc.prefix + n.name
	if n.cond != nil {
		is, problem, err := r.boolean(ctx, n.cond, sc)
		if err != nil {
			return outcome{}, err
		}
		if problem != nil {
			return r.failedHere(ctx, n, st, r.outside(n, st, sc), path, problem)
		}
		if !is {
			return outcome{over: true, mark: markSkipped}, nil
		}
	}
	if n.each == nil {
		r.deadline(n, st)
		return r.step(ctx, n, st, sc)
	}
	problem, err := r.beginLoop(ctx, n, st, sc, path)
	if err != nil {
		return outcome{}, err
	}
	if problem != nil {
		return r.failedHere(ctx, n, st, r.outside(n, st, sc), path, problem)
	}
	return r.step(ctx, n, st, sc)
}

func (r *run) deadline(n *node, st *stepState) {
	if n.timeout > 0 {
		st.Ends = r.After(n.timeout)
	}
}

// step advances a step that has begun as far as possible.
func (r *run) step(ctx context.Context, n *node, st *stepState, sc *scope) (outcome, error) {
	path := sc.prefix + n.name
	if n.each == nil {
		return r.item(ctx, n, st, sc, path)
	}
	if st.Caught != nil {
		return r.catch(ctx, n, st, r.outside(n, st, sc), path)
	}
	return r.loop(ctx, n, st, sc, path)
}

// outside returns the scope for the catch of a loop that has no items because its condition or its list failed.
func (r *run) outside(n *node, st *stepState, sc *scope) *scope {
	if n.each == nil {
		return sc
	}
	if st.Done == nil {
		st.Done = marks{}
	}
	inner := *sc
	inner.up, inner.loop, inner.done, inner.items, inner.prefix = sc, n, st.Done, nil, sc.prefix+n.name+"/"
	return &inner
}

// item advances a step, or one item of a loop, as far as possible: first its action, then the handling of a failure.
func (r *run) item(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	if st.Caught != nil {
		return r.catch(ctx, n, st, sc, path)
	}
	var out outcome
	var err error
	if !st.Late {
		if out, err = r.act(ctx, n, st, sc.bounded(st.Ends), path); err != nil {
			return out, err
		}
	}
	if !out.over {
		if !st.Late && (st.Ends == 0 || r.Now() < st.Ends) {
			return out, nil
		}
		if over, err := r.giveUp(ctx, n, st, sc, path); err != nil || !over {
			return outcome{}, err
		}
		return r.failedHere(ctx, n, st, sc, path, jig.Errorf(jig.CodeTimeout, "the step took longer than %s", n.timeout))
	}
	if out.fail == nil {
		return out, r.succeeded(ctx, n, st, sc, path, out.mark)
	}
	again, problem, err := r.again(ctx, n, st, sc, path, out.fail.Error)
	switch {
	case err != nil:
		return outcome{}, err
	case again:
		return outcome{}, nil
	}
	if err := r.noteFailed(ctx, n, st, sc, path, out.mark); err != nil {
		return outcome{}, err
	}
	if problem != nil { // the condition of the retry failed
		return r.failedHere(ctx, n, st, sc, path, problem)
	}
	return r.failed(ctx, n, st, sc, path, out)
}

// succeeded counts a step that succeeded and records how to undo it.
func (r *run) succeeded(ctx context.Context, n *node, st *stepState, sc *scope, path string, m mark) error {
	if m == markSkipped {
		return nil
	}
	if n.action != actBlock && n.action != actParallel && n.action != actSwitch {
		r.st.Ran++
	}
	if n.undo == nil {
		return nil
	}
	return r.note(ctx, n, sc, path, m, st.Retries)
}

// failedHere fails a step without a call that could hold its result.
func (r *run) failedHere(ctx context.Context, n *node, st *stepState, sc *scope, path string, problem *jig.Error) (outcome, error) {
	m, err := r.keepResult(n, path, jig.Failure(problem))
	if err != nil {
		return outcome{}, err
	}
	return r.failed(ctx, n, st, sc, path, outcome{over: true, mark: m, fail: failed(path, problem)})
}

// keepResult keeps a result that no call holds, if something reads it.
func (r *run) keepResult(n *node, path string, result jig.ToolResult) (mark, error) {
	if !n.observed {
		return markNothing, nil
	}
	raw, err := jsontext.Encode(result)
	if err != nil {
		return "", err
	}
	r.Keep(path, raw)
	return markValue, nil
}

// failed applies the step's on_error to its failure.
func (r *run) failed(ctx context.Context, n *node, st *stepState, sc *scope, path string, out outcome) (outcome, error) {
	if n.onError == nil {
		return out, nil
	}
	if n.onError.proceed {
		return outcome{over: true, mark: out.mark}, nil
	}
	if n.id != "" && n.each == nil {
		sc.done[n.id] = out.mark
	}
	if n.onError.when != nil {
		// In an item, the loop's id refers to the item's own result.
		own := sc.withOwn(n, path, out.mark).handling(out.fail.Error, n.onError.as)
		is, problem, err := r.boolean(ctx, n.onError.when, own)
		if err != nil {
			return outcome{}, err
		}
		if problem != nil {
			out.fail = failed(path, problem)
			return out, nil
		}
		if !is {
			return out, nil
		}
	}
	*st = stepState{Block: &blockState{}, Caught: out.fail, Mark: out.mark, Done: st.Done}
	return r.catch(ctx, n, st, sc, path)
}

// catch advances the steps that handle a failure as far as possible. The failed result remains the result of the step.
func (r *run) catch(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	inner := sc.handling(st.Caught.Error, n.onError.as)
	over, fail, err := r.block(ctx, n.onError.catch, st.Block, inner.withOwn(n, path, st.Mark))
	if err != nil || !over {
		return outcome{}, err
	}
	return outcome{over: true, mark: st.Mark, fail: fail}, nil
}

// succeed ends a run whose steps have all ended. If the output cannot be rendered, the run fails and is undone.
func (r *run) succeed(ctx context.Context, sc *scope) error {
	_, problem, err := r.outputOf(ctx, sc)
	if err != nil {
		return err
	}
	if problem != nil {
		r.unwind(failed("output", problem))
		return nil
	}
	r.st.Phase = phaseDone
	return nil
}

// finish sets the result of the move if the run has ended.
func (r *run) finish(ctx context.Context, sc *scope) error {
	if r.st.Phase != phaseDone {
		return nil
	}
	r.Move.Done = true
	if f := r.st.Failure; f != nil {
		data, err := r.undoReport(ctx)
		line, _, _ := strings.Cut(f.Error.Message, "\n")
		r.Move.Result = jig.ToolResult{Data: data, Summary: line, Error: f.Error}
		if f.Path != "" {
			r.Move.Result.Summary = f.Path + ": " + r.Move.Result.Summary
		}
		return err
	}
	data, problem, err := r.outputOf(ctx, sc)
	if err != nil {
		return err
	}
	if problem != nil { // only if the state was tampered with: succeed has already rendered the output
		r.Move.Result = jig.Failure(problem)
		return nil
	}
	r.Move.Result = jig.ToolResult{Success: true, Data: data, Summary: counted(r.st.Ran) + " done"}
	return nil
}

func counted(steps int) string {
	if steps == 1 {
		return "1 step"
	}
	return strconv.Itoa(steps) + " steps"
}

// describe tells the caller which steps and calls are open and when to look again.
func (r *run) describe() {
	if r.Move.Done {
		return
	}
	r.live(r.plan.steps, r.st.Root, r.plan.scope(r.st), func(l leaf) {
		if r.st.Phase == phaseRunning {
			r.AwaitTime(l.st.Ends)
			r.AwaitTime(l.st.Until)
		}
		if !l.inner && !l.st.Over {
			r.Show(l.path)
		}
		if w, waits := l.wait(); waits && len(r.Move.Waits) < plan.MaxShown {
			r.Move.Waits = append(r.Move.Waits, w)
		}
		if path, ok := l.call(); ok {
			r.AwaitCall(path)
		}
	})
	r.Wake()
	r.describeUndo()
}
