package composition

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// act advances the action of a step, or of one item, as far as possible.
func (r *run) act(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	switch n.action {
	case actCall:
		return r.callTool(ctx, n, st, sc, path)
	case actBlock:
		if st.Block == nil {
			st.Block = &blockState{}
		}
		return r.enclosed(ctx, n, n.steps, n.steps, st, sc, path)
	case actSwitch:
		return r.choose(ctx, n, st, sc, path)
	case actParallel:
		return r.sideBySide(ctx, n, st, sc, path)
	case actSet:
		return r.set(ctx, n, sc, path)
	case actWait, actWaitUntil:
		return r.wait(ctx, n, st, sc, path)
	case actWaitFor:
		return r.waitFor(ctx, n, st, sc, path)
	case actEmit:
		return r.emit(ctx, n, sc, path)
	case actFail:
		message, problem, err := r.text(ctx, n.fail.message, sc)
		if problem == nil && err == nil {
			problem = &jig.Error{Code: jig.CodeConflict, Message: jig.Cut(message, plan.MaxMessage), Reason: n.fail.reason}
		}
		return r.broken(n, path, problem, err)
	}
	return outcome{}, jig.Errorf(jig.CodeInternal, "step %s does nothing", n.name)
}

// broken returns the outcome of a step that failed without a call, so its result must be kept separately. If err is set, broken returns it.
func (r *run) broken(n *node, path string, problem *jig.Error, err error) (outcome, error) {
	if err != nil {
		return outcome{}, err
	}
	m, err := r.keepResult(n, path, jig.Failure(problem))
	return outcome{over: true, mark: m, fail: failed(path, problem)}, err
}

func (r *run) callTool(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	attempt := plan.AttemptPath(path, st.Retries+1)
	if st.Asked {
		call, ok := r.Calls[attempt]
		if !ok || !call.Status.Final() {
			return outcome{}, nil
		}
		out, result := outcome{over: true, mark: callMark(st.Retries)}, call.Outcome()
		switch {
		case !result.Success:
			out.fail = failed(path, result.Cause())
		case n.call.parse:
			return r.parsed(n, path, result)
		}
		return out, nil
	}
	if st.Until != 0 {
		if r.Now() < st.Until || !r.mayBegin(sc) {
			return outcome{}, nil
		}
		st.Until = 0
	}
	ask := Ask{Path: attempt, Tool: n.call.tool, Named: n.call.named}
	if st.Retries > 0 {
		ask.RetryOf = plan.AttemptPath(path, st.Retries)
	} else {
		var problem *jig.Error
		var err error
		rendered := expr.Rendered{}
		ask.Rendered = rendered
		if ask.Input, problem, err = r.input(expr.WithRendered(ctx, rendered), n.call, sc); problem != nil || err != nil {
			return r.broken(n, path, problem, err)
		}
	}
	st.Asked = true
	r.Ask(ask)
	return outcome{}, nil
}

// parsed returns the outcome of an agent's call, with the answer parsed as the JSON that the agent was asked for.
func (r *run) parsed(n *node, path string, result jig.ToolResult) (outcome, error) {
	var data map[string]json.RawMessage
	var answer string
	if json.Unmarshal(result.Data, &data) != nil || json.Unmarshal(data["answer"], &answer) != nil {
		return r.broken(n, path, jig.Errorf(jig.CodeInvalidOutput, "the agent gave no answer"), nil)
	}
	parsed, problem := plan.Unfenced(answer)
	if problem != nil {
		return r.broken(n, path, problem, nil)
	}
	data["answer"] = parsed
	var err error
	if result.Data, err = jsontext.Encode(data); err != nil {
		return outcome{}, err
	}
	m, err := r.keepResult(n, path, result)
	return outcome{over: true, mark: m}, err
}

// again decides whether to retry a failed call, and when. A call that may have had an effect that another attempt could repeat is never
// retried, even if the document asks for it.
func (r *run) again(ctx context.Context, n *node, st *stepState, sc *scope, path string, failure *jig.Error) (bool, *jig.Error, error) {
	if n.retry == nil || !st.Asked || st.Retries+1 >= n.retry.attempts || !r.Calls[plan.AttemptPath(path, st.Retries+1)].MayRetry() {
		return false, nil, nil
	}
	switch failure.Code { //nolint:exhaustive // only these codes are never retried: a person decided, or the effect may have happened
	case jig.CodeDenied, jig.CodeExpired, jig.CodeCanceled, jig.CodeOutcomeUnknown:
		return false, nil, nil
	default:
	}
	worth := failure.Code.Retryable()
	if n.retry.when != nil {
		is, problem, err := r.boolean(ctx, n.retry.when, sc.handling(failure, ""))
		if problem != nil || err != nil {
			return false, problem, err
		}
		worth = is
	}
	if !worth {
		return false, nil, nil
	}
	st.Retries++
	st.Asked = false
	st.Until = r.After(max(plan.Backoff(n.retry.backoff, n.retry.maxBackoff, st.Retries), failure.RetryAfter))
	return true, nil, nil
}

// enclosed advances the steps of a block or of a chosen case as far as possible. The result is the block's output, or the results of the
// shown steps by id.
func (r *run) enclosed(ctx context.Context, n *node, steps, shown []*node, st *stepState, sc *scope, path string) (outcome, error) {
	over, fail, err := r.block(ctx, steps, st.Block, sc)
	if err != nil || !over {
		return outcome{}, err
	}
	return r.concluded(ctx, n, shown, fail, sc, path)
}

// concluded makes the result of a step whose inner steps have ended.
func (r *run) concluded(ctx context.Context, n *node, shown []*node, fail *failure, sc *scope, path string) (outcome, error) {
	if fail != nil {
		m, err := r.keepResult(n, path, jig.Failure(fail.Error))
		return outcome{over: true, mark: m, fail: fail}, err
	}
	if !n.observed {
		return outcome{over: true, mark: markNothing}, nil
	}
	var data json.RawMessage
	var problem *jig.Error
	var err error
	if n.output != nil {
		data, problem, err = r.render(ctx, n.output, sc)
	} else {
		data, problem, err = r.resultsOf(ctx, shown, n.at, sc)
	}
	if problem != nil || err != nil {
		return r.broken(n, path, problem, err)
	}
	m, err := r.keepResult(n, path, jig.ToolResult{Success: true, Data: data})
	return outcome{over: true, mark: m}, err
}

// resultsOf returns an object with the results of steps by id.
func (r *run) resultsOf(ctx context.Context, steps []*node, at string, sc *scope) (json.RawMessage, *jig.Error, error) {
	out, size := map[string]json.RawMessage{}, 0
	for i, n := range steps {
		if i%stepBatch == 0 {
			if err := r.foresee(ctx, steps[i:min(i+stepBatch, len(steps))], sc); err != nil {
				return nil, nil, err
			}
		}
		if n.id == "" {
			continue
		}
		m, path, ok := sc.find(n)
		if !ok {
			continue
		}
		raw, err := r.rawResult(ctx, n, found{mark: m, path: path}, maxValue-size)
		if err != nil {
			return nil, nil, err
		}
		if size += len(raw); size > maxValue {
			problem := jig.Errorf(jig.CodeInvalidInput, "the results of its steps take more than %d KiB", maxValue>>10).
				WithHint("give the block an output")
			return nil, r.plan.Located(at, problem), nil
		}
		out[n.id] = raw
	}
	raw, err := jsontext.Encode(out)
	return raw, nil, err
}

// rawResult returns steps.<id> as JSON. A list longer than limit may be cut short.
func (r *run) rawResult(ctx context.Context, n *node, f found, limit int) (json.RawMessage, error) {
	count, kept, ok := f.mark.items()
	if !ok {
		return r.resultJSON(ctx, f)
	}
	list := []byte{'['}
	for from := 0; from < count && len(list) <= limit; from += plan.MaxBatch {
		raws, err := r.itemBatch(ctx, n, f.path, from, min(from+plan.MaxBatch, count), kept)
		if err != nil {
			return nil, err
		}
		for i, raw := range raws {
			if from+i > 0 {
				list = append(list, ',')
			}
			list = append(list, raw...)
		}
	}
	return append(list, ']'), nil
}

func (r *run) choose(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	for i, b := range n.cases {
		if st.Case != 0 {
			break
		}
		is := true
		if b.when != nil {
			var problem *jig.Error
			var err error
			if is, problem, err = r.boolean(ctx, b.when, sc); problem != nil || err != nil {
				return r.broken(n, path, problem, err)
			}
		}
		if is {
			st.Case, st.Block = i+1, &blockState{}
		}
	}
	if st.Case == 0 {
		return outcome{over: true, mark: markSkipped}, nil
	}
	steps := n.cases[st.Case-1].steps
	return r.enclosed(ctx, n, steps, steps, st, sc, path)
}

// sideBySide advances all branches as far as possible. If one fails, the others still run to their ends.
func (r *run) sideBySide(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	if st.Branches == nil {
		st.Branches = make([]branchState, len(n.branches))
	}
	over := true
	for i := range st.Branches {
		b := &st.Branches[i]
		if b.Over {
			continue
		}
		var out outcome
		var err error
		if b.Step, out, err = r.proceed(ctx, n.branches[i], b.Step, sc); err != nil {
			return outcome{}, err
		}
		b.Over = out.over
		over = over && out.over
		if out.fail != nil && (st.Failure == nil || i < st.FailedAt) {
			st.Failure, st.FailedAt = out.fail, i
		}
	}
	if !over {
		return outcome{}, nil
	}
	return r.concluded(ctx, n, n.branches, st.Failure, sc, path)
}

func (r *run) set(ctx context.Context, n *node, sc *scope, path string) (outcome, error) {
	raw, problem, err := r.render(ctx, n.set, sc)
	if problem != nil || err != nil {
		return r.broken(n, path, problem, err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return outcome{}, jig.Errorf(jig.CodeInternal, "step %s sets no mapping: %w", path, err)
	}
	total := 0
	for name, v := range r.st.Vars {
		if _, replaced := members[name]; !replaced {
			total += v.Size
		}
	}
	for _, v := range members {
		total += len(v)
	}
	if total > maxVars {
		problem := jig.Errorf(jig.CodeInvalidInput, "vars take %d KiB; at most %d are allowed", total>>10, maxVars>>10)
		return r.broken(n, path, r.plan.Located(n.set.at, problem), nil)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		v := varState{Size: len(members[name])}
		if v.Size <= inlineBytes {
			v.Inline = members[name]
		} else {
			r.Keep(varPath(name), members[name])
		}
		r.st.Vars[name] = v
	}
	return outcome{over: true, mark: markNothing}, nil
}

func (r *run) emit(ctx context.Context, n *node, sc *scope, path string) (outcome, error) {
	event := jig.Event{Type: jig.EventType(jig.EventCustom + n.emit.event)}
	if n.emit.data != nil {
		raw, problem, err := r.render(ctx, n.emit.data, sc)
		if err == nil && problem == nil && len(raw) > plan.MaxInput {
			problem = r.plan.Located(n.emit.data.at, jig.Errorf(jig.CodeInvalidInput, "the event takes %d KiB; at most %d are allowed", len(raw)>>10, plan.MaxInput>>10))
		}
		if problem != nil || err != nil {
			return r.broken(n, path, problem, err)
		}
		event.Data = raw
		r.Stored += len(raw)
	}
	r.Move.Events = append(r.Move.Events, event)
	return outcome{over: true, mark: markNothing}, nil
}
