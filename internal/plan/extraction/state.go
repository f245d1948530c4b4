package extraction

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
)

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
	plan.Head
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

func (o *openState) path(t *task) string { return plan.AttemptPath(t.ID, o.Calls) }

func recordPath(id string) string { return id + "#" }

// read decodes a state, or begins one, and checks it against the plan.
func (p *Plan) read(raw json.RawMessage) (*state, error) {
	st := &state{}
	if len(raw) == 0 {
		st.Head, st.marks = plan.NewHead(p.Version), slices.Repeat([]mark{markPending}, len(p.tasks))
	}
	return st, plan.ReadState(p.about(), raw, st, func() error { return p.check(st) })
}

func (p *Plan) about() string { return "the extraction of " + p.Name }

func (p *Plan) check(st *state) error {
	if err := st.Check(p.Version); err != nil {
		return err
	}
	switch {
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

// TaskPending is the status of a task that has not ended, or that was not requested.
const TaskPending TaskStatus = "pending"

// Standing returns the status of each task of an entity type, by id. state is the state of the latest extraction, or nil if there was no
// extraction. ended holds the stored outcomes of tasks. If there is no state or the extraction has ended, a task without a final status in
// state gets the status of its stored outcome.
func Standing(kind entity.Type, state json.RawMessage, ended map[string]json.RawMessage) (map[string]jig.TaskState, error) {
	var st struct {
		Marks string `json:"marks"`
		Done  bool   `json:"done"`
	}
	if len(state) > 0 {
		if err := json.Unmarshal(state, &st); err != nil || len(st.Marks) != len(kind.Tasks) || strings.Trim(st.Marks, marksKnown) != "" {
			return nil, jig.Errorf(jig.CodeInternal, "the state of the extraction is not one of version %s of the type %s", kind.Version, kind.Name)
		}
	}
	all := make(map[string]jig.TaskState, len(kind.Tasks))
	for i, t := range kind.Tasks {
		var before Earlier
		if raw, ok := ended[t.ID]; ok {
			if err := json.Unmarshal(raw, &before); err != nil {
				return nil, jig.Errorf(jig.CodeInternal, "reading how task %s ended: %w", t.ID, err)
			}
		}
		now := jig.TaskState{Status: string(TaskPending)}
		m := markPending
		if st.Marks != "" {
			m = mark(st.Marks[i])
		}
		switch {
		case m.over():
			now.Status = string(m.status())
		case before.Status != "" && (st.Marks == "" || st.Done):
			now.Status = string(before.Status)
		}
		if now.Status == string(before.Status) || m == markKept {
			now.Attempts, now.Error = before.Attempts, before.Error
		}
		if p := before.Provenance; p != nil && now.Attempts == 0 && m.hasValue() {
			now.Attempts = p.Attempt
		}
		all[t.ID] = now
	}
	return all, nil
}

// StatusOf returns the status of an entity's latest extraction. call is the status of the call that runs it, or empty if there is no such
// call; ended reports whether a task of the entity has ever ended.
func StatusOf(call jig.CallStatus, tasks map[string]jig.TaskState, ended bool) string {
	switch {
	case call == "" && !ended:
		return jig.ExtractionNone
	case call != "" && !call.Final():
		return jig.ExtractionRunning
	case call != "" && call != jig.CallSucceeded:
		return jig.ExtractionFailed
	}
	for _, t := range tasks {
		if t.Status == string(TaskFailed) || t.Status == string(TaskCanceled) {
			return jig.ExtractionPartial
		}
	}
	return jig.ExtractionCompleted
}

// progress counts the requested tasks by status.
func (r *run) progress() *protocol.Progress {
	var p protocol.Progress
	for n, m := range r.st.marks {
		if !r.given.asked[n] {
			continue
		}
		p.Total++
		switch m {
		case markDone, markKept:
			p.Done++
		case markOpen:
			p.Running++
		case markFailed, markCanceled:
			p.Failed++
		case markLeft, markOut:
			p.Skipped++
		case markPending, markReady:
		}
	}
	return &p
}
