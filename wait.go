package jig

import (
	"fmt"
	"time"
)

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
