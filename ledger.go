package jig

import (
	"encoding/json"
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
