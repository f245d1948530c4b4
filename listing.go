package jig

import "time"

// PendingFilter narrows a list of waiting calls. Empty fields do not filter.
type PendingFilter struct {
	// Tool is the name of a tool, or category.* for all tools of a category.
	Tool        string      `json:"tool,omitempty"`
	Kind        PendingKind `json:"kind,omitempty"`
	SessionID   string      `json:"session_id,omitempty"`
	Agent       string      `json:"agent,omitempty"`
	RequestedBy string      `json:"requested_by,omitempty"`
	// For keeps calls that this principal may decide and has not decided yet. The engine applies it, because it knows the groups of people.
	For string `json:"for,omitempty"`
	// Before and After bound the time of the request, exclusively: older than Before, newer than After.
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
}
