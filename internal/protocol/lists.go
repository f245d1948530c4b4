package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
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

// CheckRequest asks whether a session or a single call can start as requested. Exactly one of Start and Call is set.
type CheckRequest struct {
	Tenant    string        `json:"tenant"`
	SessionID string        `json:"session_id"`
	Start     *StartSession `json:"start,omitempty"`
	Call      *CallInput    `json:"call_input,omitempty"`
}

// RecordRequest asks for the record of a call, with a piece of its input.
type RecordRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	// Call is the call's id. Its JSON name differs from that in other requests, because a worker that does not know an activity takes a
	// request with the member "call" for a call to run.
	Call string `json:"call_id"`
	// Offset is where the piece of the input begins, in bytes.
	Offset int `json:"offset,omitempty"`
}

// RecordPage is the record of a call without its input, and a piece (at most 128 KiB) of the input. Pieces belong together if their
// records have the same Digest.
type RecordPage struct {
	Record CallRecord `json:"record"`
	Input  []byte     `json:"input"`
	// Size is the size of the complete input, in bytes.
	Size int `json:"size"`
}

// CallRecord is a call with its input and its result.
type CallRecord struct {
	SessionID string `json:"session_id"`
	// ClientID is the id that the client chose for the session.
	ClientID string `json:"client_id,omitempty"`
	Call     string `json:"call"`
	Tool     string `json:"tool"`
	Version  string `json:"version,omitempty"`
	// Frame is the call whose composition or extraction made this one; empty if there is none.
	Frame string `json:"frame,omitempty"`
	// Child is the session that the call started; empty if it started none.
	Child   string         `json:"child_session_id,omitempty"`
	Verdict jig.Verdict    `json:"verdict"`
	Reasons []string       `json:"reasons,omitempty"`
	Status  jig.CallStatus `json:"status"`
	// Digest is the digest of the call; it changes when a person changes the input.
	Digest string `json:"digest,omitempty"`
	// Attempt counts the attempts that have begun.
	Attempt int `json:"attempt,omitempty"`
	// EditedBy is the person who changed the input; empty if nobody did.
	EditedBy   string          `json:"edited_by,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	CreatedAt  time.Time       `json:"created_at"`
	StartedAt  *time.Time      `json:"started_at,omitempty"`
	FinishedAt *time.Time      `json:"finished_at,omitempty"`
	DurationMS int64           `json:"duration_ms"`
	// Result is set once the call has ended. On a page, a result that is too large is a preview whose last artifact is the whole result.
	Result *jig.ToolResult `json:"result,omitempty"`
}

// SessionResult says how a session ended, with its answer or output, or which calls it waits for.
type SessionResult struct {
	SessionID string     `json:"session_id"`
	ClientID  string     `json:"client_id,omitempty"`
	Status    jig.Status `json:"status"`
	// Answer is the answer of an agent. Output is the result data of a session that is a single call.
	Answer string          `json:"answer,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Passes int             `json:"passes"`
	// Calls counts the calls by status. The statuses succeeded, failed and denied are always present.
	Calls map[jig.CallStatus]int `json:"calls"`
	Error *jig.Error             `json:"error,omitempty"`
	// Pending lists the calls that wait for a person.
	Pending []WaitingCall `json:"pending,omitempty"`
}

// WaitingCall names a call that waits for a person, with the digest that a decision about it confirms.
type WaitingCall struct {
	SessionID string          `json:"session_id"`
	Call      string          `json:"call"`
	Tool      string          `json:"tool"`
	Kind      jig.PendingKind `json:"kind"`
	Digest    string          `json:"digest,omitempty"`
	// Via is the call of the session being read that waits for a child session; see [jig.Pending].
	Via string `json:"via,omitempty"`
}

// WaitingCalls returns the calls of a session's view that wait for a person.
func WaitingCalls(view jig.SessionView) []WaitingCall {
	list := make([]WaitingCall, len(view.Pending))
	for i, p := range view.Pending {
		session := p.SessionID
		if session == "" {
			session = view.SessionID
		}
		list[i] = WaitingCall{SessionID: session, Call: p.Call, Tool: p.Tool, Kind: p.Kind, Digest: p.Digest, Via: p.Via}
	}
	return list
}

// ResultOf returns what a session has come to by its view, which must have the whole answer and output.
func ResultOf(view jig.SessionView) SessionResult {
	r := SessionResult{
		SessionID: view.SessionID, ClientID: jig.ClientID(view.SessionID), Status: view.Status, Answer: view.Answer, Reason: view.Reason,
		Passes: view.Pass, Calls: Counts(view.Counts), Error: view.Error, Pending: WaitingCalls(view),
	}
	if view.Agent == jig.CallAgent && (len(view.Output) > 0 || view.Error != nil) { // its answer is only the summary of the call's result
		r.Output, r.Answer = view.Output, ""
	}
	return r
}

// Counts returns a copy of c that always contains the three outcomes that programs ask for, with 0 for those that c lacks.
func Counts(c map[jig.CallStatus]int) map[jig.CallStatus]int {
	all := map[jig.CallStatus]int{jig.CallSucceeded: 0, jig.CallFailed: 0, jig.CallDenied: 0}
	for status, n := range c {
		all[status] = n
	}
	return all
}

// Whole returns a call's result with all of its data. If the result was truncated, it fetches the artifact with the whole one.
func (r CallResult) Whole(fetch func(artifact string) ([]byte, error)) (*jig.ToolResult, error) {
	if r.Result == nil || len(r.Result.Artifacts) == 0 || !cutShort(r.Result.Data) {
		return r.Result, nil
	}
	raw, err := fetch(r.Result.Artifacts[len(r.Result.Artifacts)-1])
	if err != nil {
		return r.Result, err
	}
	var whole jig.ToolResult
	if err := json.Unmarshal(raw, &whole); err != nil {
		return r.Result, jig.Errorf(jig.CodeInternal, "reading the whole result: %w", err)
	}
	return &whole, nil
}

// cutShort reports whether data is only a preview of a larger value.
func cutShort(data json.RawMessage) bool {
	var p struct {
		Truncated bool    `json:"truncated"`
		Size      int     `json:"size"`
		Preview   *string `json:"preview"`
	}
	return json.Unmarshal(data, &p) == nil && p.Truncated && p.Preview != nil && p.Size > 0
}

// Locate returns the call to answer when a person answers a call of a session: the call itself if it waits, or the only call that waits in
// the sessions below it. waiting are the calls that wait in the session and below. If several wait below the call, the error is CONFLICT and
// names them. A call that does not wait at all is returned as it is, without a digest.
func Locate(waiting []WaitingCall, session, call string) (WaitingCall, error) {
	var below []WaitingCall
	for _, w := range waiting {
		if w.SessionID == session && w.Call == call {
			return w, nil
		}
		if w.Via == call {
			below = append(below, w)
		}
	}
	switch len(below) {
	case 0:
		return WaitingCall{SessionID: session, Call: call}, nil
	case 1:
		return below[0], nil
	}
	names := make([]string, len(below))
	for i, w := range below {
		names[i] = w.SessionID + " " + w.Call
	}
	return WaitingCall{}, jig.Errorf(jig.CodeConflict, "%d calls wait below call %s of session %s", len(below), call, session).
		WithField("call").WithHint(fmt.Sprintf("name one of them: %s", jig.Cut(strings.Join(names, ", "), 1000)))
}
