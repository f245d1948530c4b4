package jig

// EntityStatus is how the latest extraction of an entity stands. It has nothing of the entity's content.
type EntityStatus struct {
	EntityID string `json:"entity_id"`
	Type     string `json:"type"`
	Title    string `json:"title,omitempty"`
	// SessionID and Call are those of the latest extraction; empty when there was none.
	SessionID string           `json:"session_id,omitempty"`
	Call      string           `json:"call,omitempty"`
	Status    ExtractionStatus `json:"status"`
	// Tasks are those of the entity's type, by id.
	Tasks map[string]TaskState `json:"tasks"`
	// Filled are the fields that a task filled, and that nobody else changed since.
	Filled []string `json:"fields_filled"`
}

// ExtractionStatus is where an extraction stands.
type ExtractionStatus string

// The states of an extraction.
const (
	// ExtractionNone: there was none.
	ExtractionNone    ExtractionStatus = "none"
	ExtractionRunning ExtractionStatus = "running"
	// ExtractionCompleted: no task failed. ExtractionPartial: some did. ExtractionFailed: it ended as a whole: it was denied, canceled,
	// or what it found could not be kept.
	ExtractionCompleted ExtractionStatus = "completed"
	ExtractionPartial   ExtractionStatus = "partial"
	ExtractionFailed    ExtractionStatus = "failed"
)

// TaskState is how a task of an entity stands.
type TaskState struct {
	// Status is pending, completed, kept, failed, skipped or canceled.
	Status string `json:"status"`
	// Attempts is how many calls were made; 0 of a task that makes none.
	Attempts int    `json:"attempts,omitempty"`
	Error    *Error `json:"error,omitempty"`
}
