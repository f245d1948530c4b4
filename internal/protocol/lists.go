package protocol

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
)

// SessionFilter narrows a list of sessions. Empty fields do not filter, except that sessions that other sessions started are left out.
type SessionFilter struct {
	Status jig.Status `json:"status,omitempty" query:"status" enum:"working,input_required,completed,failed,canceled"`
	// Agent is the name of an agent, or call for single calls of tools and compositions.
	Agent       string `json:"agent,omitempty" query:"agent" names:"agent" maxLength:"200" doc:"Only sessions of this agent; call selects single calls"`
	RequestedBy string `json:"requested_by,omitempty" query:"requested_by" names:"person" maxLength:"200" doc:"Only sessions that this principal started"`
	// Reason is why sessions ended or, if they have not, why they wait, such as partial.
	Reason string `json:"reason,omitempty" query:"reason" maxLength:"200" doc:"Only sessions with this reason, e.g. partial for extractions that failed in part"`
	// ParentID keeps the sessions that this session started. Without it, Children includes those that any session started.
	ParentID string `json:"parent_session_id,omitempty" query:"parent" names:"session" maxLength:"192" doc:"Only sessions that this session started"`
	Children bool   `json:"children,omitempty" query:"children" doc:"Include sessions that other sessions started"`
	// Before and After bound the time of the start, exclusively: older than Before, newer than After.
	Before time.Time `json:"before,omitzero" query:"before" doc:"Only sessions that were started before this time"`
	After  time.Time `json:"after,omitzero" query:"after" doc:"Only sessions that were started after this time"`
}

// SessionsRequest asks for a page of a tenant's sessions.
type SessionsRequest struct {
	Tenant string `json:"tenant" caller:"tenant"`
	SessionFilter
	// Cursor is where the previous page ended. It belongs to the filter of that page.
	Cursor string `json:"cursor,omitempty" query:"cursor" maxLength:"2000" doc:"next_cursor of the previous page, with the same filter"`
	// Limit is the maximum number of sessions. The default is 50 (40 over HTTP), the maximum 100.
	Limit int `json:"limit,omitempty" query:"limit" minimum:"1" maximum:"100" default:"40" doc:"The maximum number of entries. A page may have fewer even if more follow"`
}

// SessionList is a page of sessions, the newest first. It may be incomplete, even empty, although more follow.
type SessionList struct {
	Sessions []SessionItem `json:"sessions"`
	Next     string        `json:"next_cursor,omitempty"`
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
	Tenant    string `json:"tenant" caller:"tenant"`
	SessionID string `json:"session_id" path:"session" names:"session" maxLength:"192" doc:"The id of the session"`
	// Cursor is where the previous page ended.
	Cursor string `json:"cursor,omitempty" query:"cursor" maxLength:"2000" doc:"next_cursor of the previous page"`
}

// Transcript is a page of a transcript, at most 128 KiB. Only the first page says what the session was started with.
type Transcript struct {
	SessionID string            `json:"session_id"`
	ClientID  string            `json:"client_id,omitempty"`
	Opening   *Opening          `json:"opening,omitempty" doc:"What the session was started with; only on the first page"`
	Entries   []TranscriptEntry `json:"entries"`
	Next      string            `json:"next_cursor,omitempty"`
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

// Progress counts the tasks of an extraction, or the entities of an extraction of many.
type Progress struct {
	// Done counts tasks that have a value, including one that was kept; for entities, those whose
	// extraction ended as completed or partial.
	Done    int `json:"done"`
	Running int `json:"running"`
	// Failed also counts tasks, or entities, that were denied, expired or canceled.
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Total grows page by page when many entities are filled.
	Total int `json:"total"`
}

// ToolReadRequest asks a worker to read with a built-in tool, as a principal. No session is started, and nothing is recorded.
type ToolReadRequest struct {
	Tenant    string          `json:"tenant"`
	Principal jig.Principal   `json:"principal"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
}

// ToolReading holds the data that the tool returned, at most 128 KiB.
type ToolReading struct {
	Data json.RawMessage `json:"data"`
}
