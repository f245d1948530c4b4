package composition

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// undoPath returns the path of the call that undoes a step.
func undoPath(n plan.UndoNote) string { return n.Path + ".undo" }

// note records how to undo a step that has just succeeded. If the input of the undo cannot be rendered, the step does not fail, because its
// effect has happened; the undo report shows the error instead.
func (r *run) note(ctx context.Context, n *node, sc *scope, path string, m mark, retries int) error {
	if n.id != "" && n.each == nil {
		sc.done[n.id] = m
	}
	rendered := expr.Rendered{}
	input, problem, err := r.input(expr.WithRendered(ctx, rendered), n.undo, sc.withOwn(n, path, m))
	if err != nil {
		return err
	}
	return r.keepNote(plan.UndoNote{
		Path: path, Call: plan.AttemptPath(path, retries+1), Tool: n.undo.tool, Named: n.undo.named, Input: input, Rendered: rendered, Error: problem,
	})
}

func (r *run) keepNote(n plan.UndoNote) error {
	raw, err := jsontext.Encode(n)
	if err != nil {
		return err
	}
	r.Keep(plan.UndoNotePath(r.st.Notes), raw)
	r.st.Notes++
	return nil
}

// unwind begins to undo the effects of a run that fails.
func (r *run) unwind(fail *failure) {
	r.st.Failure, r.st.Root, r.st.Left = fail, nil, r.st.Notes
	r.st.Phase = phaseUndoing
}

// cancel stops a canceled run: no other step begins, and open calls are canceled. The run's effects are undone afterwards.
func (r *run) cancel() {
	r.st.Phase = phaseEnding
	r.st.Failure = &failure{Error: jig.Errorf(jig.CodeCanceled, "the composition was canceled")}
}

// giveUp ends the open calls of a step, or of one item, that has timed out. over is false while a call that can be undone is still open: its
// outcome must be known, because a later failure of the run may have to undo it. Other calls are given up at once.
func (r *run) giveUp(ctx context.Context, n *node, st *stepState, sc *scope, path string) (over bool, err error) {
	var open []leaf
	r.liveItem(n, st, sc, path, func(l leaf) {
		l.st.Ends, l.st.Until = 0, 0 // the step no longer waits for a time
		if _, ok := l.call(); ok {
			open = append(open, l)
		}
	})
	st.Late, over = true, true
	for _, l := range open {
		call, _ := l.call()
		if l.n.undo == nil {
			l.st.Over = true
			if !r.Calls[call].Status.Final() {
				r.st.Dropped = append(r.st.Dropped, call)
			}
			continue
		}
		ended, err := r.settle(ctx, l)
		if err != nil {
			return false, err
		}
		over = over && ended
		if !ended && r.Calls[call].Status == jig.CallExecuting {
			r.Move.Stop = append(r.Move.Stop, call)
		}
	}
	return over, nil
}

// settle handles a call of a step that the run has given up and that can be undone. A call that has not begun is canceled. For a call that has
// begun, settle waits until it has ended, and until a person has settled an unknown outcome. Then it records how to undo the call if the call
// took effect, or that its effect is unknown.
func (r *run) settle(ctx context.Context, l leaf) (over bool, err error) {
	path, _ := l.call()
	call := r.Calls[path]
	if !call.Status.Final() {
		if call.Status == jig.CallWaiting || call.Status == jig.CallReserved {
			r.Move.Cancel = append(r.Move.Cancel, path)
		}
		return false, nil
	}
	err = r.noteFailed(ctx, l.n, l.st, l.sc, l.path, callMark(l.st.Retries))
	l.st.Over = true
	return true, err
}

// noteFailed records what a failed step may have left behind: how to undo its call if that succeeded after all, or that its effect is
// unknown. A call with an unknown effect is not undone; the report says so.
func (r *run) noteFailed(ctx context.Context, n *node, st *stepState, sc *scope, path string, m mark) error {
	if n.undo == nil || !st.Asked {
		return nil
	}
	attempt := plan.AttemptPath(path, st.Retries+1)
	call := r.Calls[attempt]
	var problem *jig.Error
	switch failure := call.Outcome().Cause(); {
	case call.Outcome().Success:
		return r.note(ctx, n, sc, path, m, st.Retries)
	case failure.Code == jig.CodeOutcomeUnknown:
		problem = failed(path, failure).Error
	case call.Status == jig.CallCanceled && !failure.NotExecuted:
		problem = jig.Errorf(jig.CodeOutcomeUnknown, "the call was canceled while it ran, and it is not known whether it took effect")
	default:
		return nil
	}
	return r.keepNote(plan.UndoNote{Path: path, Call: attempt, Tool: n.undo.tool, Error: problem})
}

// lookAtDropped removes the dropped calls that have ended.
func (r *run) lookAtDropped(ctx context.Context) error {
	if err := r.LoadCalls(ctx, r.st.Dropped); err != nil {
		return err
	}
	r.st.Dropped = slices.DeleteFunc(r.st.Dropped, func(path string) bool {
		call, ok := r.Calls[path]
		return !ok || call.Status.Final()
	})
	return nil
}

// drain waits for the open calls of a canceled run. A call that succeeds after all is undone if it can be.
func (r *run) drain(ctx context.Context, sc *scope) (over bool, err error) {
	var open []leaf
	r.live(r.plan.steps, r.st.Root, sc, func(l leaf) {
		if _, ok := l.call(); ok {
			open = append(open, l)
		}
	})
	over = true
	for _, l := range open {
		path, _ := l.call()
		ended := r.Calls[path].Status.Final()
		switch {
		case l.n.undo != nil:
			if ended, err = r.settle(ctx, l); err != nil {
				return false, err
			}
		case ended:
			l.st.Over = true
		default:
			r.Move.Cancel = append(r.Move.Cancel, path)
		}
		over = over && ended
	}
	return over, nil
}

// undo undoes the effects of the run, in reverse order and one at a time. If one undo fails, the others still run.
func (r *run) undo(ctx context.Context) (over bool, err error) {
	for ; r.st.Left > 0; r.st.Left-- {
		if err := ctx.Err(); err != nil {
			return false, err //nolint:wrapcheck // the error of the caller's context
		}
		note, err := r.noteAt(ctx, r.st.Left-1)
		if err != nil {
			return false, err
		}
		if note.Error != nil {
			continue
		}
		path := undoPath(note)
		if !r.st.Asked {
			r.st.Asked = true
			r.Ask(Ask{Path: path, Tool: note.Tool, Input: note.Input, Undoes: note.Call, Because: r.st.Failure.Error.Message, Named: note.Named, Rendered: note.Rendered})
			return false, nil
		}
		if err := r.LoadCalls(ctx, []string{path}); err != nil {
			return false, err
		}
		call, ok := r.Calls[path]
		if !ok {
			return false, jig.Errorf(jig.CodeInternal, "the call %s of the composition %s is gone", path, r.plan.Name)
		}
		if !call.Status.Final() {
			r.Move.Open = append(r.Move.Open, path)
			return false, nil
		}
		r.st.Asked = false
		if call.Outcome().Success {
			r.Move.Events = append(r.Move.Events, jig.Event{Type: jig.EventToolUndone, CallID: note.Call, Tool: call.Tool})
		}
	}
	return true, nil
}

func (r *run) noteAt(ctx context.Context, number int) (plan.UndoNote, error) {
	var note plan.UndoNote
	path := plan.UndoNotePath(number)
	if err := r.LoadValues(ctx, []string{path}); err != nil {
		return note, err
	}
	if err := json.Unmarshal(r.Values[path], &note); err != nil {
		return note, jig.Errorf(jig.CodeInternal, "the note on how to undo step %d of the composition %s is gone: %w", number, r.plan.Name, err)
	}
	return note, nil
}

// describeUndo tells the caller which undo call is running.
func (r *run) describeUndo() {
	if r.st.Phase != phaseUndoing {
		return
	}
	r.Move.Steps = append(r.Move.Steps, r.Move.Open...)
	for _, ask := range r.Move.Calls {
		r.Move.Steps = append(r.Move.Steps, ask.Path)
	}
}

// undoReport is the data of a failed run that had something to undo. Other failed runs have no data.
type undoReport struct {
	Undone    []string    `json:"undone"`
	NotUndone []notUndone `json:"not_undone"`
}

type notUndone struct {
	Path  string     `json:"path"`
	Error *jig.Error `json:"error"`
}

func (r *run) undoReport(ctx context.Context) (json.RawMessage, error) {
	if r.st.Notes == 0 {
		return nil, nil
	}
	report := undoReport{Undone: []string{}, NotUndone: []notUndone{}}
	for to := r.st.Notes; to > 0; to = max(0, to-plan.MaxBatch) {
		if err := r.reportBatch(ctx, &report, max(0, to-plan.MaxBatch), to); err != nil {
			return nil, err
		}
	}
	return jsontext.Encode(report)
}

// reportBatch adds the notes from..to-1 to the report, the last first.
func (r *run) reportBatch(ctx context.Context, report *undoReport, from, to int) error {
	paths := make([]string, 0, to-from)
	for i := to - 1; i >= from; i-- {
		paths = append(paths, plan.UndoNotePath(i))
	}
	if err := r.LoadValues(ctx, paths); err != nil {
		return err
	}
	notes, asked := make([]plan.UndoNote, len(paths)), make([]string, 0, len(paths))
	for i := range paths {
		note, err := r.noteAt(ctx, to-1-i)
		if err != nil {
			return err
		}
		if notes[i] = note; note.Error == nil {
			asked = append(asked, undoPath(note))
		}
	}
	if err := r.LoadCalls(ctx, asked); err != nil {
		return err
	}
	for _, note := range notes {
		problem := note.Error
		if problem == nil {
			if result := r.Calls[undoPath(note)].Outcome(); !result.Success {
				problem = result.Cause()
			}
		}
		if problem == nil {
			report.Undone = append(report.Undone, note.Path)
		} else {
			report.NotUndone = append(report.NotUndone, notUndone{Path: note.Path, Error: problem})
		}
	}
	return nil
}
