package extraction

import (
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/protocol"
)

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
func StatusOf(call jig.CallStatus, tasks map[string]jig.TaskState, ended bool) jig.ExtractionStatus {
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
