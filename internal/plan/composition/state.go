package composition

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

// phase is the phase that a run is in.
type phase string

const (
	phaseRunning phase = ""
	// phaseEnding: the run was canceled, and some of its open calls have not ended.
	phaseEnding phase = "ending"
	// phaseUndoing: effects are being undone, in reverse order.
	phaseUndoing phase = "undoing"
	phaseDone    phase = "done"
)

// state is the state of a run. Its size depends on the plan and on the items that are running. Results are in the ledger or among the kept
// values; the state says only where to find them.
type state struct {
	plan.Head
	Phase phase `json:"phase,omitempty"`
	// Root is the block of the plan's steps.
	Root *blockState `json:"root,omitempty"`
	// Done holds the marks of the steps that have ended, outside of loops.
	Done marks `json:"done,omitempty"`
	// Last is the number, from 1, of the last top-level step that ran.
	Last int                 `json:"last,omitempty"`
	Vars map[string]varState `json:"vars,omitempty"`
	// Ran counts the steps and items that succeeded.
	Ran int `json:"ran,omitempty"`
	// Notes counts the notes on undoing steps, and Left those that are still to be processed. Asked reports whether the current undo call has been
	// requested.
	Notes int  `json:"notes,omitempty"`
	Left  int  `json:"left,omitempty"`
	Asked bool `json:"asked,omitempty"`
	// Failure is the reason why the run fails.
	Failure *failure `json:"failure,omitempty"`
	// Dropped are calls that timed out but have not ended. Every move cancels them again, in case an earlier cancellation was lost.
	Dropped []string `json:"dropped,omitempty"`
	// Taken lists the ids of consumed events that the last situation still listed.
	Taken []int64 `json:"taken,omitempty"`
}

// marks says, by step id, how steps ended and where their results are.
type marks map[string]mark

// mark is "s" (skipped), "o" (succeeded without a result to keep), "v" (kept as a value), "c" or "c3" (in the ledger, as the call of the
// first or the third attempt), "l20" or "l20x" (a loop of 20 items; x: some of their results are kept as values).
type mark string

const (
	markSkipped mark = "s"
	markNothing mark = "o"
	markValue   mark = "v"
	markCall    mark = "c"
	markLoop    mark = "l"
)

func callMark(retries int) mark {
	if retries == 0 {
		return markCall
	}
	return markCall + mark(strconv.Itoa(retries+1))
}

func loopMark(items int, kept bool) mark {
	m := markLoop + mark(strconv.Itoa(items))
	if kept {
		m += "x"
	}
	return m
}

// attempt returns the number, from 1, of the attempt whose call has the result. ok is false if no call has it.
func (m mark) attempt() (n int, ok bool) {
	number, ok := strings.CutPrefix(string(m), string(markCall))
	if !ok || number == "" {
		return 1, ok
	}
	n, err := strconv.Atoi(number)
	return n, err == nil && n > 1
}

// items returns the number of a loop's items and whether some of their results are kept as values. ok is false if m is not the mark of a
// loop.
func (m mark) items() (n int, kept, ok bool) {
	number, ok := strings.CutPrefix(string(m), string(markLoop))
	if !ok {
		return 0, false, false
	}
	number, kept = strings.CutSuffix(number, "x")
	n, err := strconv.Atoi(number)
	return n, kept, err == nil && 0 <= n && n <= maxItems
}

func (m mark) valid() bool {
	_, call := m.attempt()
	_, _, loop := m.items()
	return m == markSkipped || m == markNothing || m == markValue || call || loop
}

// varState is a variable: its value if it is small, otherwise only its size, with the value kept elsewhere.
type varState struct {
	Size   int             `json:"n"`
	Inline json.RawMessage `json:"j,omitempty"`
}

// blockState is a running block. The steps before At have ended; the step at At has begun if Step is set.
type blockState struct {
	At   int        `json:"i,omitempty"`
	Step *stepState `json:"s,omitempty"`
}

// stepState is a running step, or one item of a loop. Which fields are set depends on the step's action.
type stepState struct {
	// Ends is the time at which the step times out, and Until the time that it waits for, both in milliseconds since 1970.
	Ends  int64 `json:"e,omitempty"`
	Until int64 `json:"u,omitempty"`
	// Retries counts the attempts after the first. Asked reports whether the call of the current attempt has been requested.
	Retries int  `json:"r,omitempty"`
	Asked   bool `json:"a,omitempty"`
	// Late is set once the step has timed out. The step then ends as soon as the outcomes of those of its calls that can be undone are known.
	// Over is set once the run no longer waits for the call that was open when the step timed out or the run was canceled.
	Late bool `json:"t,omitempty"`
	Over bool `json:"o,omitempty"`
	// Block is the state of a block, of the chosen case, or of a catch (when Caught is set).
	Block *blockState `json:"b,omitempty"`
	// Case is the chosen case of a switch, from 1.
	Case int `json:"c,omitempty"`
	// Branches are the branches of a parallel step.
	Branches []branchState `json:"p,omitempty"`
	Loop     *loopState    `json:"l,omitempty"`
	// Seen is the id of the last event that a wait_for has checked.
	Seen int64 `json:"n,omitempty"`
	// Begun reports whether a wait has computed its end.
	Begun bool `json:"w,omitempty"`
	// Failure is the failure of the first branch, in document order, that failed; FailedAt is its index.
	Failure  *failure `json:"f,omitempty"`
	FailedAt int      `json:"g,omitempty"`
	// Caught is the failure that a catch handles. Mark says where the failed result is.
	Caught *failure `json:"x,omitempty"`
	Mark   mark     `json:"m,omitempty"`
	// Done holds the marks of the steps in the catch of a loop that has no items.
	Done marks `json:"d,omitempty"`
}

// branchState is a branch of a parallel step: not begun, running, or over.
type branchState struct {
	Step *stepState `json:"s,omitempty"`
	Over bool       `json:"o,omitempty"`
}

// loopState is a running loop. List holds the list if it is small; otherwise the list is kept as values, in chunks.
type loopState struct {
	Count int             `json:"n"`
	List  json.RawMessage `json:"j,omitempty"`
	// Next is the index of the first item that has not begun.
	Next int         `json:"i,omitempty"`
	Open []itemState `json:"o,omitempty"`
	// Kept reports whether the results of some items are kept as values.
	Kept bool `json:"k,omitempty"`
	// Failure is the failure of the failed item with the lowest index; FailedAt is that index.
	Failure  *failure `json:"f,omitempty"`
	FailedAt int      `json:"g,omitempty"`
}

type itemState struct {
	Index int        `json:"i"`
	Step  *stepState `json:"s,omitempty"`
	// Done holds the marks of the item's own steps that have ended.
	Done marks `json:"d,omitempty"`
}

// failure is an error, with the path of the step that failed with it.
type failure struct {
	Error *jig.Error `json:"e"`
	Path  string     `json:"p"`
}

// failed returns a failure that is small enough to keep in the state.
func failed(path string, err *jig.Error) *failure {
	return &failure{Error: plan.Brief(err), Path: path}
}

// read decodes a state, or begins one, and checks it against the plan.
func (p *Plan) read(raw json.RawMessage) (*state, error) {
	st := &state{}
	if len(raw) == 0 {
		st.Head, st.Root = plan.NewHead(p.Version), &blockState{}
	}
	if err := plan.ReadState(p.about(), raw, st, func() error { return p.check(st) }); err != nil {
		return nil, err
	}
	if st.Done == nil {
		st.Done = marks{}
	}
	if st.Vars == nil {
		st.Vars = map[string]varState{}
	}
	return st, nil
}

func (p *Plan) about() string { return "the composition " + p.Name }

func (p *Plan) check(st *state) error {
	if err := st.Check(p.Version); err != nil {
		return err
	}
	switch {
	case st.Last < 0 || st.Last > len(p.steps) || st.Notes < 0 || st.Left < 0 || st.Left > st.Notes:
		return fmt.Errorf("its counters are off")
	case st.Failure != nil && st.Failure.Error == nil:
		return fmt.Errorf("its failure is empty")
	}
	switch st.Phase {
	case phaseRunning, phaseEnding:
		if st.Root == nil {
			return fmt.Errorf("it has no steps")
		}
		if st.Phase == phaseEnding && st.Failure == nil {
			return fmt.Errorf("it ends for no reason")
		}
	case phaseUndoing:
		if st.Failure == nil {
			return fmt.Errorf("it undoes for no reason")
		}
	case phaseDone:
	default:
		return fmt.Errorf("it has the phase %q", st.Phase)
	}
	if err := checkMarks(st.Done); err != nil {
		return err
	}
	return checkBlock(p.steps, st.Root)
}

func checkMarks(done marks) error {
	for id, m := range done {
		if !m.valid() {
			return fmt.Errorf("step %q has the mark %q", id, m)
		}
	}
	return nil
}

func checkBlock(steps []*node, st *blockState) error {
	switch {
	case st == nil:
		return nil
	case st.At < 0 || st.At > len(steps) || st.At == len(steps) && st.Step != nil:
		return fmt.Errorf("step %d is not there", st.At)
	case st.Step == nil:
		return nil
	}
	return checkStep(steps[st.At], st.Step, isLoop(steps[st.At]))
}

// isLoop reports whether the state of a step belongs to a loop rather than to one of its items.
func isLoop(n *node) bool { return n.each != nil }

// checkStep checks the state of a step: of the whole loop if loop is set, otherwise of a plain step or one item.
func checkStep(n *node, st *stepState, loop bool) error {
	if st.Caught != nil {
		if st.Caught.Error == nil || st.Block == nil || n.onError == nil || !st.Mark.valid() {
			return fmt.Errorf("%s catches nothing", n.name)
		}
		return checkBlock(n.onError.catch, st.Block)
	}
	if st.Retries < 0 || st.Failure != nil && st.Failure.Error == nil {
		return fmt.Errorf("%s has bad counters", n.name)
	}
	if loop {
		return checkLoop(n, st.Loop)
	}
	switch n.action {
	case actBlock:
		return checkBlock(n.steps, st.Block)
	case actSwitch:
		if st.Case < 0 || st.Case > len(n.cases) || st.Case == 0 && st.Block != nil || st.Case > 0 && st.Block == nil {
			return fmt.Errorf("%s has no case %d", n.name, st.Case)
		}
		if st.Case > 0 {
			return checkBlock(n.cases[st.Case-1].steps, st.Block)
		}
	case actParallel:
		if len(st.Branches) != 0 && len(st.Branches) != len(n.branches) {
			return fmt.Errorf("%s has not %d branches", n.name, len(st.Branches))
		}
		for i, b := range st.Branches {
			if b.Step == nil {
				continue
			}
			if err := checkStep(n.branches[i], b.Step, isLoop(n.branches[i])); err != nil {
				return err
			}
		}
	case actCall, actSet, actWait, actWaitUntil, actWaitFor, actEmit, actFail:
	}
	return nil
}

func checkLoop(n *node, l *loopState) error {
	switch {
	case l == nil:
		return fmt.Errorf("%s has no items", n.name)
	case l.Count < 0 || l.Count > maxItems || l.Next < 0 || l.Next > l.Count:
		return fmt.Errorf("%s has bad counters", n.name)
	case l.Failure != nil && l.Failure.Error == nil:
		return fmt.Errorf("%s failed for no reason", n.name)
	}
	for _, item := range l.Open {
		if item.Index < 0 || item.Index >= l.Next || item.Step == nil {
			return fmt.Errorf("%s has no item %d", n.name, item.Index)
		}
		if err := checkMarks(item.Done); err != nil {
			return err
		}
		if err := checkStep(n, item.Step, false); err != nil {
			return err
		}
	}
	return nil
}
