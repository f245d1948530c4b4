package jig

import (
	"encoding/json"
	"fmt"
	"time"
)

// CallView is a call as the session's status shows it.
type CallView struct {
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	Status CallStatus `json:"status"`
	// Summary says how the call ended, or what holds it back.
	Summary string `json:"summary,omitempty"`
	// Child is the session that the call started; empty when it started none.
	Child      string `json:"child_session_id,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Error      *Error `json:"error,omitempty"`
}

// SessionView is the state of a session as the command `status` shows it.
type SessionView struct {
	SessionID string `json:"session_id"`
	// ClientID is the id that the client chose for the session; empty when jig made the session's id.
	ClientID string     `json:"client_id,omitempty"`
	Agent    string     `json:"agent"`
	Status   Status     `json:"status"`
	Pass     int        `json:"pass"`
	Pending  []Pending  `json:"pending"`
	Calls    []CallView `json:"calls"`
	Answer   string     `json:"answer,omitempty"`
	// AnswerArtifact is the artifact with the full answer when it is too large to be shown.
	AnswerArtifact string `json:"answer_artifact,omitempty"`
	// Output is the result data of a session that is a single call without a model; it is set once the session has ended. OutputArtifact is
	// the artifact with the whole result when it is too large to be shown.
	Output         json.RawMessage `json:"output,omitempty"`
	OutputArtifact string          `json:"output_artifact,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Error          *Error          `json:"error,omitempty"`
	// Counts holds the number of calls in each status.
	Counts map[CallStatus]int `json:"counts,omitempty"`
	Tokens int64              `json:"tokens,omitempty"`
	Todo   json.RawMessage    `json:"todo,omitempty"`
	// Paused lists the pauses that hold back the session's calls.
	Paused []Pause `json:"paused,omitempty"`
	// Held says why calls that have not begun are held back: policies that cannot be read, or the rate limit that the start of the session
	// waits for. For sessions that answer calls, it has all their waits for rate limits and models, each with the call and the session.
	Held []string `json:"held,omitempty"`
	// Waits lists the steps of compositions that wait for events or times, in the session and in those that answer its calls.
	Waits []Wait `json:"waits,omitempty"`
	// Idle reports that nothing in the session is running: it waits for people, events or times, or is held back.
	Idle bool `json:"idle,omitempty"`
	// UpdatedAt is when the session last changed in the store.
	UpdatedAt time.Time `json:"-"`
}

// Wait is a step of a composition that waits for an event or a time.
type Wait struct {
	// Call is the id of the step, such as 1.1/paid.
	Call string `json:"call,omitempty"`
	// SessionID is the session of the step if that answers a call of the session that was asked about, and Via is the call. Both are empty for
	// the session's own steps.
	SessionID string `json:"session_id,omitempty"`
	Via       string `json:"via,omitempty"`
	// Event is the name of the event; empty if the step waits for a time alone.
	Event string `json:"event,omitempty"`
	// Until is when the wait ends; zero if it has no end.
	Until time.Time `json:"until,omitzero"`
	// Retries reports that the step has failed and is tried again then.
	Retries bool `json:"retries,omitempty"`
}

// String returns the wait as a sentence, such as: 1.1/paid waits for event "paid" until 2026-11-27 11:10:00 UTC.
func (w Wait) String() string {
	text := w.Call + " waits"
	if w.Via != "" {
		text = w.Via + ", in session " + w.SessionID + ": " + text
	}
	if w.Event != "" {
		text += fmt.Sprintf(" for event %q", w.Event)
	}
	if !w.Until.IsZero() {
		text += " until " + w.Until.UTC().Format("2006-01-02 15:04:05 MST")
	}
	if w.Retries {
		text += ", then tries again"
	}
	return text
}

// EntityStatus is the state of an entity's latest extraction. It does not contain the entity's content.
type EntityStatus struct {
	EntityID string `json:"entity_id"`
	Type     string `json:"type"`
	Title    string `json:"title,omitempty"`
	// SessionID and Call identify the latest extraction; empty when there was none.
	SessionID string `json:"session_id,omitempty"`
	Call      string `json:"call,omitempty"`
	Status    string `json:"status"`
	// Tasks are the tasks of the entity's type, by id.
	Tasks map[string]TaskState `json:"tasks"`
	// Filled are the fields that a task filled and that nobody else has changed since.
	Filled []string `json:"fields_filled"`
}

// The states of an extraction.
const (
	// ExtractionNone: there has been no extraction.
	ExtractionNone    = "none"
	ExtractionRunning = "running"
	// ExtractionCompleted: no task failed. ExtractionPartial: some tasks failed. ExtractionFailed: the extraction failed as a whole,
	// because it was denied or canceled, or because its values could not be stored.
	ExtractionCompleted = "completed"
	ExtractionPartial   = "partial"
	ExtractionFailed    = "failed"
)

// TaskState is the state of a task of an entity.
type TaskState struct {
	// Status is pending, completed, kept, failed, skipped or canceled.
	Status string `json:"status"`
	// Attempts is the number of calls made; 0 for a task that makes no calls.
	Attempts int    `json:"attempts,omitempty"`
	Error    *Error `json:"error,omitempty"`
}
