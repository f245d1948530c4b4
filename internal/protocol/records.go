package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

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
