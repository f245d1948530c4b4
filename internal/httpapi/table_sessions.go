package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/protocol"
)

// Other statuses of success.
func again() map[int]string {
	return map[int]string{http.StatusOK: "The same request was made before; nothing was started"}
}

func running() map[int]string { return map[int]string{http.StatusAccepted: "Not ended yet"} }

// registerSessions adds the operations on sessions and their events.
func (a *API) registerSessions() {
	add(a, operation{
		id: "start-session", method: http.MethodPost, path: "/v1/sessions", tag: tagSessions, scope: apikey.ScopeRun, record: recordSession,
		status: http.StatusCreated, also: again(),
		does: "Start a session of an agent",
		details: "Repeating a request with its id or its Idempotency-Key returns the existing session. A different request with a used id is a conflict " +
			"(409); one with a used Idempotency-Key is refused (422).",
		fails: []int{404, 409},
	}, a.startSession)
	add(a, operation{
		id: "list-sessions", method: http.MethodGet, path: "/v1/sessions", tag: tagSessions, scope: apikey.ScopeRead,
		does: "List sessions, the newest first",
	}, a.listSessions)
	add(a, operation{
		id: "get-session", method: http.MethodGet, path: "/v1/sessions/{session}", tag: tagSessions, scope: apikey.ScopeRead, embeds: embedsSession,
		does: "Get the state of a session, with its calls and what waits for people", fails: []int{404},
	}, a.getSession)
	add(a, operation{
		id: "get-result", method: http.MethodGet, path: "/v1/sessions/{session}/result", tag: tagSessions, scope: apikey.ScopeRead, embeds: embedsSession, also: running(),
		does: "Get the result of a session", details: "With wait, the response comes when the session has ended or the time is up.", fails: []int{404},
	}, a.getResult)
	add(a, operation{
		id: "get-transcript", method: http.MethodGet, path: "/v1/sessions/{session}/transcript", tag: tagSessions, scope: apikey.ScopeRead, embeds: embedsSession,
		does: "Get what was asked, said and done in a session, oldest first", fails: []int{404},
	}, a.getTranscript)
	add(a, operation{
		id: "get-events", method: http.MethodGet, path: "/v1/sessions/{session}/events", tag: tagSessions, scope: apikey.ScopeRead, embeds: embedsSession,
		does: "Get the events of a session, as a page or as a stream",
		details: "With Accept: text/event-stream, the events are server-sent events whose id is the event's sequence number. Events named delta have no id: " +
			"their data is a piece of the text that a model is writing, best effort. The stream ends after the last " +
			"event of an ended session, and a further request after that event returns 204, so that clients stop reconnecting. Otherwise the response is a page.",
		also:  map[int]string{http.StatusNoContent: "The session has ended, and no event follows"},
		fails: []int{404},
	}, a.getEvents)
	describeStream[eventsPage](a, "/v1/sessions/{session}/events", "EventsPage")
	add(a, operation{
		id: "get-tenant-events", method: http.MethodGet, path: "/v1/events", tag: tagSessions, scope: apikey.ScopeRead,
		does: "Get the events of all sessions that change a session's state or concern people, as a page or as a stream",
		details: "For inboxes and badges: approvals, questions, and the starts and ends of sessions. Get the cursor (without after), read the lists, then follow " +
			"from the cursor. With Accept: text/event-stream, the events are server-sent events whose id is the cursor after them. No event is skipped, even " +
			"if its transaction commits late. Events are ordered by transaction, and within a session by sequence number. A cursor " +
			"from before the database was restored is refused with 410.",
		fails: []int{410},
	}, a.getTenantEvents)
	describeStream[protocol.TenantEvents](a, "/v1/events", "TenantEvents")
	add(a, operation{
		id: "send-message", method: http.MethodPost, path: "/v1/sessions/{session}/messages", tag: tagSessions, scope: apikey.ScopeRun, record: recordSession,
		status: http.StatusAccepted, does: "Send a message to a session",
		details: "A working session reads it in its next pass; an ended one starts another pass. A session accepts only one message with the same id.",
		fails:   []int{404, 409},
	}, a.sendMessage)
	add(a, operation{
		id: "send-event", method: http.MethodPost, path: "/v1/sessions/{session}/events", tag: tagSessions, scope: apikey.ScopeRun, record: recordSession,
		status: http.StatusAccepted, does: "Send an event to a session, for which its compositions may wait",
		details: "For the call that a session was started with, all events of the session count, also those from before it began. Otherwise an event counts for the " +
			"compositions that have been asked for and have not ended; if there is none, the session's log has an event decision.refused. A session accepts only one event with the same id.",
		fails: []int{404, 409},
	}, a.sendEvent)
	add(a, operation{
		id: "cancel-session", method: http.MethodPost, path: "/v1/sessions/{session}/cancel", tag: tagSessions, scope: apikey.ScopeRun, record: recordTemporal,
		status: http.StatusAccepted, does: "Ask a session to stop", fails: []int{404, 409},
	}, a.cancelSession)
	add(a, operation{
		id: "pause-session", method: http.MethodPost, path: "/v1/sessions/{session}/pause", tag: tagSessions, scope: apikey.ScopeRun, or: apikey.ScopeDecide, record: recordAudit,
		does:    "Hold back the calls and passes of a session that have not begun",
		details: "Running calls finish, and people can still decide.", fails: []int{404},
	}, a.pauseSession)
	add(a, operation{
		id: "resume-session", method: http.MethodPost, path: "/v1/sessions/{session}/resume", tag: tagSessions, scope: apikey.ScopeRun, or: apikey.ScopeDecide, record: recordAudit,
		does: "Resume a paused session", fails: []int{404},
	}, a.resumeSession)
	add(a, operation{
		id: "retry-session", method: http.MethodPost, path: "/v1/sessions/{session}/retry", tag: tagSessions, scope: apikey.ScopeRun, record: recordCall, also: running(),
		does: "Retry a failed or canceled session in a new session",
		details: "This is a call of the tool sessions.retry, under the same rules and approvals. If calls of the session may have taken effect, " +
			"may_have_happened must confirm that this is known.",
		fails: []int{404, 409},
	}, a.retrySession)
}
