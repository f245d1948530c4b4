package protocol

import "time"

// ComparedFor is how long a call that waits for approval is not compared again with what people are shown.
const ComparedFor = time.Minute

// CompareRequest asks to compare a call that waits for approval with what people are shown.
type CompareRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
}

// ComparisonStatus says how a call differs from what people are shown.
type ComparisonStatus string

// The outcomes of a comparison. ComparisonUnknown means that the call could not be compared.
const (
	ComparisonSame     ComparisonStatus = "unchanged"
	ComparisonContract ComparisonStatus = "contract_changed"
	ComparisonPreview  ComparisonStatus = "preview_changed"
	ComparisonUnknown  ComparisonStatus = "unknown"
)

// Comparison says whether a call that waits for approval is still what people are shown: the tool's contract, and what the call would change.
type Comparison struct {
	Status ComparisonStatus `json:"status" enum:"unchanged,contract_changed,preview_changed,unknown"`
	// At is when the call was compared; zero if no worker tried.
	At time.Time `json:"at,omitzero"`
	// Detail says what has changed, with the difference between two previews, or why that is unknown.
	Detail string `json:"detail,omitempty"`
}
