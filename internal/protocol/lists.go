package protocol

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
)

// SessionFilter narrows a list of sessions. Empty fields do not filter.
type SessionFilter struct {
	Status jig.Status `json:"status,omitempty"`
	// Agent is the name of an agent, or call for single calls of tools and compositions.
	Agent       string `json:"agent,omitempty"`
	RequestedBy string `json:"requested_by,omitempty"`
	// Reason is why sessions ended or, if they have not, why they wait, such as partial.
	Reason string `json:"reason,omitempty"`
	// ParentID keeps the sessions that this session started. Roots keeps those that no other session started.
	ParentID string `json:"parent_session_id,omitempty"`
	Roots    bool   `json:"roots,omitempty"`
	// Before and After bound the time of the start, exclusively: older than Before, newer than After.
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
}

// SessionsRequest asks for a page of a tenant's sessions.
type SessionsRequest struct {
	Tenant string        `json:"tenant"`
	Filter SessionFilter `json:"filter,omitzero"`
	// Cursor is where the previous page ended. It belongs to the filter of that page.
	Cursor string `json:"cursor,omitempty"`
	// Limit is the maximum number of sessions. The default is 50, the maximum 100.
	Limit int `json:"limit,omitempty"`
}

// SessionsPage is a page of sessions, the newest first. It may be incomplete, even empty, although more follow.
type SessionsPage struct {
	Sessions []SessionItem `json:"sessions"`
	Next     string        `json:"next,omitempty"`
}

// SessionItem is a session in a list.
type SessionItem struct {
	SessionID string `json:"session_id"`
	// ClientID is the id that the client chose for the session.
	ClientID string `json:"client_id,omitempty"`
	Agent    string `json:"agent"`
	// Tool is the tool or composition that a single call calls.
	Tool   string     `json:"tool,omitempty"`
	Status jig.Status `json:"status"`
	Pass   int        `json:"pass"`
	// Task is the beginning of the task.
	Task string `json:"task,omitempty"`
	// Input is the beginning of the input, as JSON. It may end in the middle.
	Input       string     `json:"input,omitempty"`
	RequestedBy string     `json:"requested_by,omitempty"`
	Source      jig.Source `json:"source,omitempty"`
	ParentID    string     `json:"parent_session_id,omitempty"`
	ParentCall  string     `json:"parent_call,omitempty"`
	// Waiting counts the calls that wait for a person, in this session and in those that answer its calls.
	Waiting   int       `json:"waiting"`
	Reason    string    `json:"reason,omitempty"`
	Error     string    `json:"error,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// TranscriptRequest asks for a page of a session's transcript.
type TranscriptRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	// Cursor is where the previous page ended.
	Cursor string `json:"cursor,omitempty"`
}

// TranscriptPage is a page of a transcript, at most 128 KiB. Only the first page says what the session was started with.
type TranscriptPage struct {
	SessionID string            `json:"session_id"`
	ClientID  string            `json:"client_id,omitempty"`
	Opening   *Opening          `json:"opening,omitempty"`
	Entries   []TranscriptEntry `json:"entries"`
	Next      string            `json:"next,omitempty"`
}

// Opening says what a session was started with.
type Opening struct {
	Agent       string    `json:"agent"`
	Model       string    `json:"model,omitempty"`
	RequestedBy string    `json:"requested_by,omitempty"`
	At          time.Time `json:"at"`
	// Instructions are the agent's. They and Input are cut to 32 KiB; Truncated reports that.
	Instructions string          `json:"instructions,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	Truncated    bool            `json:"truncated,omitempty"`
}

// EntryKind is the kind of an entry of a transcript.
type EntryKind string

// The kinds of entries.
const (
	// EntryMessage is the task, or what somebody wrote to the session.
	EntryMessage EntryKind = "message"
	// EntryTurn holds the model's words.
	EntryTurn EntryKind = "turn"
	// EntryCall is a call, with its outcome so far.
	EntryCall EntryKind = "call"
)

// TranscriptEntry is one thing that was asked, said or done in a session.
type TranscriptEntry struct {
	Kind EntryKind `json:"kind"`
	Pass int       `json:"pass"`
	At   time.Time `json:"at,omitzero"`
	// By wrote a message. Model gave a turn.
	By    string `json:"by,omitempty"`
	Model string `json:"model,omitempty"`
	// Text is that of a message or a turn, cut to 32 KiB; Truncated reports that something was cut.
	Text      string `json:"text,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	// The following fields are those of a call. Input and Result are previews; the command result shows them in full.
	Call     string          `json:"call,omitempty"`
	Tool     string          `json:"tool,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	EditedBy string          `json:"edited_by,omitempty"`
	Status   jig.CallStatus  `json:"status,omitempty"`
	Summary  string          `json:"summary,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *jig.Error      `json:"error,omitempty"`
	Child    string          `json:"child_session_id,omitempty"`
}
