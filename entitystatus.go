package jig

// EntityStatus is the state of an entity's latest extraction. It does not contain the entity's content.
type EntityStatus struct {
	EntityID string `json:"entity_id"`
	Type     string `json:"type"`
	Title    string `json:"title,omitempty"`
	// SessionID and Call identify the latest extraction; empty when there was none.
	SessionID string           `json:"session_id,omitempty"`
	Call      string           `json:"call,omitempty"`
	Status    ExtractionStatus `json:"status"`
	// Tasks are the tasks of the entity's type, by id.
	Tasks map[string]TaskState `json:"tasks"`
	// Filled are the fields that a task filled and that nobody else has changed since.
	Filled []string `json:"fields_filled"`
}

// ExtractionStatus is the state of an extraction.
type ExtractionStatus string

// The states of an extraction.
const (
	// ExtractionNone: there has been no extraction.
	ExtractionNone    ExtractionStatus = "none"
	ExtractionRunning ExtractionStatus = "running"
	// ExtractionCompleted: no task failed. ExtractionPartial: some tasks failed. ExtractionFailed: the extraction failed as a whole,
	// because it was denied or canceled, or because its values could not be stored.
	ExtractionCompleted ExtractionStatus = "completed"
	ExtractionPartial   ExtractionStatus = "partial"
	ExtractionFailed    ExtractionStatus = "failed"
)

// TaskState is the state of a task of an entity.
type TaskState struct {
	// Status is pending, completed, kept, failed, skipped or canceled.
	Status string `json:"status"`
	// Attempts is the number of calls made; 0 for a task that makes no calls.
	Attempts int    `json:"attempts,omitempty"`
	Error    *Error `json:"error,omitempty"`
}
