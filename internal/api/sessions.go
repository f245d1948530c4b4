package api

import (
	"encoding/json"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// sessions lists the operations on sessions and their events.
func sessions() []Any {
	return []Any{
		StartSession, ListSessions, GetSession, GetResult, GetTranscript, GetEvents, GetTenantEvents, SendMessage, SendEvent, CancelSession, PauseSession,
		ResumeSession, RetrySession, UndoSession,
	}
}

// StartSessionRequest starts a session of an agent.
type StartSessionRequest struct {
	Idempotent
	Body struct {
		Origin
		ID           string            `json:"id,omitempty" doc:"An id of your own, unique in the tenant, such as order-7"`
		Agent        string            `json:"agent,omitempty" names:"agent" doc:"The name of a registered agent"`
		Document     string            `json:"document,omitempty" doc:"The document of an agent that is not registered, instead of a name"`
		DocumentName string            `json:"document_name,omitempty" maxLength:"512" doc:"The file name of the document, for messages"`
		Task         string            `json:"task,omitempty" doc:"The first message to the agent"`
		Input        json.RawMessage   `json:"input,omitempty" doc:"The input, an object that fits the agent's schema"`
		Pairs        map[string]string `json:"pairs,omitempty" doc:"More inputs, as strings that the agent's schema converts"`
		Model        string            `json:"model,omitempty" doc:"A model instead of the agent's own"`
	} `nameHint:"StartSession"`
}

// StartedSession is a session that a request started, or had started before.
type StartedSession struct {
	SessionID string     `json:"session_id"`
	ClientID  string     `json:"client_id,omitempty" doc:"The id that the client chose"`
	Status    jig.Status `json:"status" enum:"working,input_required,completed,failed,canceled"`
}

// StartSession starts a session of an agent.
var StartSession = Op[StartSessionRequest, StartedSession]{Operation: Operation{
	Name: "start-session", Method: http.MethodPost, Path: "/v1/sessions", Tag: Sessions, Scope: credential.ScopeRun, Record: RecordSession,
	Status: http.StatusCreated, Also: repeated(),
	Summary: "Start a session of an agent",
	Details: "Repeating a request with its id or its Idempotency-Key returns the existing session. A different request with a used id is a conflict " +
		"(409); one with a used Idempotency-Key is refused (422).",
	Fails: []int{404, 409},
}}

// ListSessions lists sessions.
var ListSessions = Op[protocol.SessionsRequest, protocol.SessionList]{Engine: protocol.ReadSessions, Operation: Operation{
	Name: "list-sessions", Method: http.MethodGet, Path: "/v1/sessions", Tag: Sessions, Scope: credential.ScopeRead,
	Summary: "List sessions, the newest first",
}}

// GetSession gets the state of a session.
var GetSession = Op[SessionPath, jig.SessionView]{Operation: Operation{
	Name: "get-session", Method: http.MethodGet, Path: "/v1/sessions/{session}", Tag: Sessions, Scope: credential.ScopeRead, Embed: EmbedSession,
	Summary: "Get the state of a session, with its calls and what waits for people", Fails: []int{404},
}}

// ResultRequest asks for the result of a session.
type ResultRequest struct {
	SessionPath
	Wait int `query:"wait" minimum:"0" maximum:"60" doc:"How many seconds to wait for the end"`
}

// GetResult gets the result of a session.
var GetResult = Op[ResultRequest, protocol.SessionResult]{Operation: Operation{
	Name: "get-result", Method: http.MethodGet, Path: "/v1/sessions/{session}/result", Tag: Sessions, Scope: credential.ScopeRead, Embed: EmbedSession, Also: Running(),
	Summary: "Get the result of a session", Details: "With wait, the response comes when the session has ended or the time is up.", Fails: []int{404},
}}

// GetTranscript gets what was asked, said and done in a session.
var GetTranscript = Op[protocol.TranscriptRequest, protocol.Transcript]{Engine: protocol.ReadTranscript, Operation: Operation{
	Name: "get-transcript", Method: http.MethodGet, Path: "/v1/sessions/{session}/transcript", Tag: Sessions, Scope: credential.ScopeRead, Embed: EmbedSession,
	Summary: "Get what was asked, said and done in a session, oldest first", Fails: []int{404},
}}

// EventsRequest asks for events of a session.
type EventsRequest struct {
	SessionPath
	After  int64  `query:"after" minimum:"0" doc:"The sequence number of the last event that the client has"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"200" doc:"The maximum number of events on a page; streams have no limit"`
	Wait   int    `query:"wait" minimum:"0" maximum:"20" doc:"How many seconds a page waits for its first event"`
	Text   string `query:"text" maxLength:"200" doc:"With wait: start, or text_position of the previous page, to also get the text that a model is writing"`
	Last   int64  `header:"Last-Event-Id" minimum:"0" doc:"The id of the last event of an interrupted stream; it overrides after"`
	Accept string `header:"Accept" maxLength:"500" doc:"text/event-stream for a stream"`
}

// EventsPage is a page of events.
type EventsPage struct {
	Events []jig.Event `json:"events"`
	Status jig.Status  `json:"status" enum:"working,input_required,completed,failed,canceled" doc:"The status of the session"`
	// Draft and Position are there if the request asked for text.
	Draft    *protocol.Draft `json:"draft,omitempty" doc:"Text that a model was writing before the events"`
	Position string          `json:"text_position,omitempty" doc:"The value of text for the next request"`
}

// GetEvents gets the events of a session.
var GetEvents = Op[EventsRequest, EventsPage]{Operation: Operation{
	Name: "get-events", Method: http.MethodGet, Path: "/v1/sessions/{session}/events", Tag: Sessions, Scope: credential.ScopeRead, Embed: EmbedSession,
	Media: EventStream, Form: pageEvents,
	Summary: "Get the events of a session, as a page or as a stream",
	Details: "With Accept: text/event-stream, the events are server-sent events whose id is the event's sequence number. Events named delta have no id: " +
		"their data is a piece of the text that a model is writing, best effort. The stream ends after the last " +
		"event of an ended session, and a further request after that event returns 204, so that clients stop reconnecting. Otherwise the response is a page.",
	Also:  map[int]string{http.StatusNoContent: "The session has ended, and no event follows"},
	Fails: []int{404},
}}

// TenantEventsRequest asks for events of all sessions.
type TenantEventsRequest struct {
	After  string `query:"after" maxLength:"1000" doc:"The cursor of the last event that the client has. Without it, the page is empty, and the stream begins now"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"100" doc:"The maximum number of events on a page; streams have no limit"`
	Wait   int    `query:"wait" minimum:"0" maximum:"60" doc:"How many seconds a page waits for its first event"`
	Last   string `header:"Last-Event-Id" maxLength:"1000" doc:"The id of the last event of an interrupted stream; it overrides after"`
	Accept string `header:"Accept" maxLength:"500" doc:"text/event-stream for a stream"`
}

// GetTenantEvents gets the events of all sessions.
var GetTenantEvents = Op[TenantEventsRequest, protocol.TenantEvents]{Operation: Operation{
	Name: "get-tenant-events", Method: http.MethodGet, Path: "/v1/events", Tag: Sessions, Scope: credential.ScopeRead,
	Media: EventStream, Form: pageEvents,
	Summary: "Get the events of all sessions that change a session's state or concern people, as a page or as a stream",
	Details: "For inboxes and badges: approvals, questions, and the starts and ends of sessions. Get the cursor (without after), read the lists, then follow " +
		"from the cursor. With Accept: text/event-stream, the events are server-sent events whose id is the cursor after them. No event is skipped, even " +
		"if its transaction commits late. Events are ordered by transaction, and within a session by sequence number. A cursor " +
		"from before the database was restored is refused with 410.",
	Fails: []int{410},
}}

// MessageRequest sends a message to a session.
type MessageRequest struct {
	SessionPath
	Body struct {
		Text string `json:"text" minLength:"1"`
		ID   string `json:"id,omitempty" maxLength:"256" doc:"An id of your own: the session accepts only one message with it"`
	} `nameHint:"SendMessage"`
}

// MessageAccepted confirms that a message was passed on to a session.
type MessageAccepted struct {
	SessionID string `json:"session_id"`
	Note      string `json:"note,omitempty" doc:"Present if nobody but the author could approve the calls that follow, unless a policy says otherwise"`
}

// SendMessage sends a message to a session.
var SendMessage = Op[MessageRequest, MessageAccepted]{Operation: Operation{
	Name: "send-message", Method: http.MethodPost, Path: "/v1/sessions/{session}/messages", Tag: Sessions, Scope: credential.ScopeRun, Record: RecordSession,
	Status: http.StatusAccepted, Summary: "Send a message to a session",
	Details: "A working session reads it in its next pass; an ended one starts another pass. A session accepts only one message with the same id.",
	Fails:   []int{404, 409},
}}

// EventRequest sends an event to a session.
type EventRequest struct {
	SessionPath
	Body struct {
		Name string          `json:"name" minLength:"1" maxLength:"128" doc:"The name for which a composition waits"`
		Data json.RawMessage `json:"data,omitempty" doc:"Any JSON, at most 32 KiB"`
		ID   string          `json:"id,omitempty" maxLength:"256" doc:"An id of your own: the session accepts only one event with it"`
	} `nameHint:"SendEvent"`
}

// Accepted confirms that a request was passed on to a session.
type Accepted struct {
	SessionID string `json:"session_id"`
}

// SendEvent sends an event to a session.
var SendEvent = Op[EventRequest, Accepted]{Operation: Operation{
	Name: "send-event", Method: http.MethodPost, Path: "/v1/sessions/{session}/events", Tag: Sessions, Scope: credential.ScopeRun, Record: RecordSession,
	Status: http.StatusAccepted, Summary: "Send an event to a session, for which its compositions may wait",
	Details: "For the call that a session was started with, all events of the session count, also those from before it began. Otherwise an event counts for the " +
		"compositions that have been asked for and have not ended; if there is none, the session's log has an event decision.refused. A session accepts only one event with the same id.",
	Fails: []int{404, 409},
}}

// CancelRequest asks a session to stop.
type CancelRequest struct {
	SessionPath
	Body *Cancel
}

// Cancel is the body of a request to cancel a session.
type Cancel struct {
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why, for people who look at the session's workflow"`
}

// CancelSession asks a session to stop.
var CancelSession = Op[CancelRequest, Accepted]{Operation: Operation{
	Name: "cancel-session", Method: http.MethodPost, Path: "/v1/sessions/{session}/cancel", Tag: Sessions, Scope: credential.ScopeRun, Record: RecordTemporal,
	Status: http.StatusAccepted, Summary: "Ask a session to stop", Fails: []int{404, 409},
}}

// Because holds the body of requests that pause or resume something.
type Because struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why, for people"`
	Token  string `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
}

// PauseSessionRequest pauses or resumes a session.
type PauseSessionRequest struct {
	SessionPath
	Body *Because `nameHint:"PauseSession"`
}

// PauseSession pauses a session.
var PauseSession = Op[PauseSessionRequest, protocol.PauseResult]{Operation: Operation{
	Name: "pause-session", Method: http.MethodPost, Path: "/v1/sessions/{session}/pause", Tag: Sessions, Scope: credential.ScopeRun, OrScope: credential.ScopeDecide,
	Record:  RecordAudit,
	Summary: "Hold back the calls and passes of a session that have not begun",
	Details: "Running calls finish, and people can still decide.", Fails: []int{404},
}}

// ResumeSession resumes a paused session.
var ResumeSession = Op[PauseSessionRequest, protocol.PauseResult]{Operation: Operation{
	Name: "resume-session", Method: http.MethodPost, Path: "/v1/sessions/{session}/resume", Tag: Sessions, Scope: credential.ScopeRun, OrScope: credential.ScopeDecide,
	Record:  RecordAudit,
	Summary: "Resume a paused session", Fails: []int{404},
}}

// RetryRequest retries a session.
type RetryRequest struct {
	SessionPath
	CallHeaders
	Body *struct {
		MayHaveHappened bool `json:"may_have_happened,omitempty" doc:"Retry even if calls of the session may have taken effect; the effects may then happen twice"`
	} `nameHint:"Retry"`
}

// RetrySession retries a session in a new one.
var RetrySession = Op[RetryRequest, CalledCall]{Operation: Operation{
	Name: "retry-session", Method: http.MethodPost, Path: "/v1/sessions/{session}/retry", Tag: Sessions, Scope: credential.ScopeRun, Record: RecordCall, Also: Running(),
	Summary: "Retry a failed or canceled session in a new session",
	Details: "This is a call of the tool sessions.retry, under the same rules and approvals. If calls of the session may have taken effect, " +
		"may_have_happened must confirm that this is known.",
	Fails: []int{404, 409},
}}

// UndoRequest undoes what a session has changed.
type UndoRequest struct {
	SessionPath
	CallHeaders
	Body *Undo
}

// Undo says which calls of a session are undone.
type Undo struct {
	Calls []string `json:"calls,omitempty" names:"call" maxItems:"100" doc:"Only these calls, e.g. 2.1, with the calls that were made inside them. Default: all"`
}

// UndoSession undoes what a session has changed, in a session of its own.
var UndoSession = Op[UndoRequest, CalledCall]{Operation: Operation{
	Name: "undo-session", Method: http.MethodPost, Path: "/v1/sessions/{session}/undo", Tag: Sessions, Scope: credential.ScopeRun, Record: RecordCall, Also: Running(),
	Summary: "Undo what an ended session has changed, the newest call first",
	Details: "This is a call of the tool sessions.undo, under the same rules and approvals. It calls the undo that each tool declares; each of these calls is " +
		"admitted like any other, and none is ever undone twice. The result lists what is undone, and what is not and why.",
	Fails: []int{404, 409},
}}
