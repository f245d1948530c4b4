package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
)

// format is the version of the state's own form.
const format = 1

// phase is how far a run is.
type phase string

const (
	phaseRunning phase = ""
	// phaseEnding: the run was cancelled, and its open calls have not ended.
	phaseEnding phase = "ending"
	// phaseUndoing: what was done is being undone, the last first.
	phaseUndoing phase = "undoing"
	phaseDone    phase = "done"
)

// state is where a run stands. Its size goes with the plan and the items under way: results are in the ledger or kept as
// values, and only where they are found stands here.
type state struct {
	Format int    `json:"v"`
	Plan   string `json:"plan"`
	Phase  phase  `json:"phase,omitempty"`
	// Root is the block of the plan's steps.
	Root *blockState `json:"root,omitempty"`
	// Done are the steps that ended, outside of loops.
	Done marks `json:"done,omitempty"`
	// Last is the number, from 1, of the last step at the top level that ran.
	Last int                 `json:"last,omitempty"`
	Vars map[string]varState `json:"vars,omitempty"`
	// Ran counts the steps and items that ended well.
	Ran int `json:"ran,omitempty"`
	// Notes counts what can be undone, Left what is still to be undone; Asked says that the undo call is under way.
	Notes int  `json:"notes,omitempty"`
	Left  int  `json:"left,omitempty"`
	Asked bool `json:"asked,omitempty"`
	// Failure is why the run fails.
	Failure *failure `json:"failure,omitempty"`
	// Dropped are calls that timed out and have not ended: they are given up anew in every move, should one have been lost.
	Dropped []string `json:"dropped,omitempty"`
	// Taken are the ids of consumed events that the last situation still showed.
	Taken []int64 `json:"taken,omitempty"`
}

// marks say by id how steps ended and where their results are.
type marks map[string]mark

// mark is "s" (skipped), "o" (ended well, nothing to show), "v" (kept as a value), "c" or "c3" (in the ledger: the call of
// the first or the third attempt), "l20" or "l20x" (a loop of 20 items; x: some of them are kept as values).
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

// attempt is the number of the attempt whose call has the result, from 1; ok is false when no call has it.
func (m mark) attempt() (n int, ok bool) {
	number, ok := strings.CutPrefix(string(m), string(markCall))
	if !ok || number == "" {
		return 1, ok
	}
	n, err := strconv.Atoi(number)
	return n, err == nil && n > 1
}

// items is the number of a loop's items, and whether some results are kept as values.
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

// varState is a var: here when it is small, otherwise kept as a value.
type varState struct {
	Size   int             `json:"n"`
	Inline json.RawMessage `json:"j,omitempty"`
}

// blockState is a block under way: the steps before At have ended, the one at At has begun when Step is set.
type blockState struct {
	At   int        `json:"i,omitempty"`
	Step *stepState `json:"s,omitempty"`
}

// stepState is a step under way, or one item of a loop. What it holds depends on the step's action.
type stepState struct {
	// Ends is when the step times out, Until what it waits for, both in milliseconds since 1970.
	Ends  int64 `json:"e,omitempty"`
	Until int64 `json:"u,omitempty"`
	// Retries counts further attempts; Asked says that the attempt's call was asked for.
	Retries int  `json:"r,omitempty"`
	Asked   bool `json:"a,omitempty"`
	// Late says that the step's time is up: it ends once the outcomes of its calls that can be undone are known. Over says that what
	// became of a call which was under way then, or when the run was cancelled, is settled.
	Late bool `json:"t,omitempty"`
	Over bool `json:"o,omitempty"`
	// Block is that of a block, of the chosen case, or of a catch (when Caught is set).
	Block *blockState `json:"b,omitempty"`
	// Case is the chosen case of a switch, from 1.
	Case int `json:"c,omitempty"`
	// Branches of a parallel step.
	Branches []branchState `json:"p,omitempty"`
	Loop     *loopState    `json:"l,omitempty"`
	// Seen is the last event that an event's wait has looked at.
	Seen int64 `json:"n,omitempty"`
	// Begun says that a wait knows how long.
	Begun bool `json:"w,omitempty"`
	// Failure is that of the first branch that failed, at FailedAt.
	Failure  *failure `json:"f,omitempty"`
	FailedAt int      `json:"g,omitempty"`
	// Caught is the failure that a catch handles, Mark where the failed result is.
	Caught *failure `json:"x,omitempty"`
	Mark   mark     `json:"m,omitempty"`
	// Done are the steps of the catch of a loop that has no items.
	Done marks `json:"d,omitempty"`
}

// branchState is a branch of a parallel step: not begun, under way, or over.
type branchState struct {
	Step *stepState `json:"s,omitempty"`
	Over bool       `json:"o,omitempty"`
}

// loopState is a loop under way. Its list stands here when it is small, otherwise it is kept in chunks.
type loopState struct {
	Count int             `json:"n"`
	List  json.RawMessage `json:"j,omitempty"`
	// Next is the first item that has not begun.
	Next int         `json:"i,omitempty"`
	Open []itemState `json:"o,omitempty"`
	// Kept says that results of some items are kept as values.
	Kept bool `json:"k,omitempty"`
	// Failure is that of the failed item with the lowest number, FailedAt.
	Failure  *failure `json:"f,omitempty"`
	FailedAt int      `json:"g,omitempty"`
}

type itemState struct {
	Index int        `json:"i"`
	Step  *stepState `json:"s,omitempty"`
	// Done are the item's own steps that ended.
	Done marks `json:"d,omitempty"`
}

// failure is an error and the path of the step that failed with it.
type failure struct {
	Error *jig.Error `json:"e"`
	Path  string     `json:"p"`
}

// What an error may bring into the state.
const (
	maxMessage    = 2 << 10
	maxViolations = 10
)

// failed makes a failure that is small enough to be kept.
func failed(path string, err *jig.Error) *failure {
	e := *err
	e.Message, e.Hint = jig.Cut(e.Message, maxMessage), jig.Cut(e.Hint, maxMessage)
	e.Field, e.Reason = jig.Cut(e.Field, maxMessage), jig.Cut(e.Reason, maxMessage)
	e.Violations = e.Violations[:min(len(e.Violations), maxViolations)]
	e.Cause = nil
	return &failure{Error: &e, Path: path}
}

func (p *Plan) begin() *state {
	return &state{Format: format, Plan: p.version, Root: &blockState{}, Done: marks{}, Vars: map[string]varState{}}
}

// read reads a state and holds it against the plan, so that what follows need not doubt it.
func (p *Plan) read(raw json.RawMessage) (*state, error) {
	if len(raw) == 0 {
		return p.begin(), nil
	}
	st := &state{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(st); err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "the state of the composition %s cannot be read: %w", p.name, err)
	}
	if err := p.check(st); err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "the state of the composition %s is not one of this version: %w", p.name, err)
	}
	if st.Done == nil {
		st.Done = marks{}
	}
	if st.Vars == nil {
		st.Vars = map[string]varState{}
	}
	return st, nil
}

func (p *Plan) check(st *state) error {
	switch {
	case st.Format != format:
		return fmt.Errorf("its format is %d, not %d", st.Format, format)
	case st.Plan != p.version:
		return fmt.Errorf("it is of version %q, not %q", st.Plan, p.version)
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

// isLoop says whether the state of a step is that of a loop rather than of one of its items.
func isLoop(n *node) bool { return n.each != nil }

// checkStep checks the state of a step, of the whole loop when loop is set, of one item otherwise.
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
