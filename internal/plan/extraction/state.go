package extraction

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
)

// format is the version of the state's JSON format.
const format = 1

// mark is the status of a task, one letter of state.Marks.
type mark byte

const (
	markPending mark = '.'
	// markReady: the task is known to run and waits for its turn.
	markReady mark = 'r'
	markOpen  mark = 'o'
	markDone  mark = 'd'
	// markKept: the task has the value of an earlier extraction.
	markKept   mark = 'k'
	markFailed mark = 'f'
	// markLeft: skipped because a task that it depends on has no value. markOut: skipped because its condition is false.
	markLeft     mark = 's'
	markOut      mark = 'w'
	markCanceled mark = 'c'
)

const marksKnown = ".rodkfswc"

// hasValue reports whether tasks that depend on this one may use its value.
func (m mark) hasValue() bool { return m == markDone || m == markKept }

// over reports whether the task has reached its final status.
func (m mark) over() bool { return m != markPending && m != markReady && m != markOpen }

func (m mark) status() TaskStatus {
	switch m {
	case markDone:
		return TaskCompleted
	case markKept:
		return TaskKept
	case markFailed:
		return TaskFailed
	case markLeft, markOut:
		return TaskSkipped
	case markPending, markReady, markOpen, markCanceled:
	}
	return TaskCanceled
}

// state is the state of an extraction. Values and errors are kept elsewhere, so its size depends on the running tasks.
type state struct {
	Format int    `json:"v"`
	Plan   string `json:"plan"`
	// Marks has one letter for each task, in the order of the document.
	Marks string      `json:"marks"`
	Open  []openState `json:"open,omitempty"`
	// Bytes is the total size of all values and records that are kept.
	Bytes int  `json:"bytes,omitempty"`
	Done  bool `json:"done,omitempty"`

	marks []mark
}

// openState is a running task: its call is open, or it waits for its next attempt.
type openState struct {
	// Task is the task's index in the document.
	Task int `json:"t"`
	// Since is the value of `now` in its expressions, and Until is the time of the next attempt. Both are in milliseconds since 1970.
	Since int64 `json:"s"`
	Until int64 `json:"u,omitempty"`
	// Calls counts the calls requested. Failed counts those that failed for a reason other than their answer.
	Calls  int `json:"c,omitempty"`
	Failed int `json:"f,omitempty"`
	// Repairs is the number of the call whose answer must be repaired, and Problem says what was wrong with that answer.
	Repairs int        `json:"r,omitempty"`
	Problem *jig.Error `json:"p,omitempty"`
	// Tokens is the number of tokens that the calls have used.
	Tokens int64 `json:"n,omitempty"`
}

func (o *openState) path(t *task) string { return attemptPath(t.ID, o.Calls) }

func attemptPath(id string, call int) string {
	if call <= 1 {
		return id
	}
	return id + "~" + strconv.Itoa(call)
}

func recordPath(id string) string { return id + "#" }

// read decodes a state and checks it against the plan, so that the code that follows can rely on it.
func (p *Plan) read(raw json.RawMessage) (*state, error) {
	if len(raw) == 0 {
		st := &state{Format: format, Plan: p.version, marks: make([]mark, len(p.tasks))}
		for i := range st.marks {
			st.marks[i] = markPending
		}
		return st, nil
	}
	st := &state{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(st); err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "the state of the extraction of %s cannot be read: %w", p.name, err)
	}
	if err := p.check(st); err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "the state of the extraction of %s is not one of this version: %w", p.name, err)
	}
	return st, nil
}

func (p *Plan) check(st *state) error {
	switch {
	case st.Format != format:
		return fmt.Errorf("its format is %d, not %d", st.Format, format)
	case st.Plan != p.version:
		return fmt.Errorf("it is of version %q, not %q", st.Plan, p.version)
	case len(st.Marks) != len(p.tasks):
		return fmt.Errorf("it has %d tasks, not %d", len(st.Marks), len(p.tasks))
	case strings.Trim(st.Marks, marksKnown) != "":
		return fmt.Errorf("its marks are %q", jig.Cut(st.Marks, 100))
	case st.Bytes < 0:
		return fmt.Errorf("its counters are off")
	}
	st.marks = make([]mark, len(st.Marks))
	open := 0
	for i := range st.marks {
		if st.marks[i] = mark(st.Marks[i]); st.marks[i] == markOpen {
			open++
		}
	}
	seen := map[int]bool{}
	for _, o := range st.Open {
		switch {
		case o.Task < 0 || o.Task >= len(p.tasks) || st.marks[o.Task] != markOpen || seen[o.Task]:
			return fmt.Errorf("task %d is not running", o.Task)
		case o.Calls < 1 || o.Failed < 0 || o.Repairs < 0 || o.Repairs > o.Calls || (o.Repairs > 0) != (o.Problem != nil):
			return fmt.Errorf("task %d has bad counters", o.Task)
		}
		seen[o.Task] = true
	}
	if open != len(st.Open) {
		return fmt.Errorf("%d tasks are running, but %d are reported", open, len(st.Open))
	}
	return nil
}

func (st *state) encode() (json.RawMessage, error) {
	marks := make([]byte, len(st.marks))
	for i, m := range st.marks {
		marks[i] = byte(m)
	}
	st.Marks = string(marks)
	return jsontext.Encode(st)
}

// Limits, in bytes and violations, of an error in the state or in an event. The task's record has a longer form of the error.
const (
	maxMessage    = 2 << 10
	maxViolations = 10
)

// brief shortens an error for the state and the events.
func brief(err *jig.Error) *jig.Error {
	if err == nil {
		return nil
	}
	e := *err
	e.Message, e.Hint = jig.Cut(e.Message, maxMessage), jig.Cut(e.Hint, maxMessage)
	e.Field, e.Reason = jig.Cut(e.Field, maxMessage/8), jig.Cut(e.Reason, maxMessage/8)
	e.Cause, e.Violations = nil, append([]jig.Violation(nil), e.Violations[:min(len(e.Violations), maxViolations)]...)
	for i, v := range e.Violations {
		e.Violations[i] = jig.Violation{Pointer: jig.Cut(v.Pointer, maxMessage/8), Message: jig.Cut(v.Message, maxMessage/8)}
	}
	return &e
}
