package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/jig-run/jig/internal/identity/apikey"
)

// operation describes an operation. What it takes and returns follows from its function.
type operation struct {
	id, method, path, tag string
	// scope is the scope that a credential needs; empty if every valid one will do.
	scope string
	// does and details are the summary and the description in the OpenAPI document.
	does, details string
	// status is the usual status of success, and also are the other ones. default: 200.
	status int
	also   map[int]string
	// fails lists the statuses of the operation's own errors, besides those of every operation.
	fails []int
}

// Groups of operations in the OpenAPI document.
const (
	tagSessions  = "Sessions"
	tagCalls     = "Calls"
	tagApprovals = "Approvals"
	tagTools     = "Tools"
	tagIdentity  = "Identity"
)

// register adds all operations.
func (a *API) register() {
	again := map[int]string{http.StatusOK: "The same request was made before; nothing was started"}
	running := map[int]string{http.StatusAccepted: "It has not ended yet"}

	add(a, operation{
		id: "start-session", method: http.MethodPost, path: "/v1/sessions", tag: tagSessions, scope: apikey.ScopeRun, status: http.StatusCreated, also: again,
		does: "Start a session of an agent",
		details: "Repeating a request with its id or its Idempotency-Key returns the existing session. Another request with a used id is a conflict " +
			"(409), and with a used Idempotency-Key it is refused (422).",
		fails: []int{404, 409},
	}, a.startSession)
	add(a, operation{
		id: "list-sessions", method: http.MethodGet, path: "/v1/sessions", tag: tagSessions, scope: apikey.ScopeRead,
		does: "List sessions, the newest first",
	}, a.listSessions)
	add(a, operation{
		id: "get-session", method: http.MethodGet, path: "/v1/sessions/{session}", tag: tagSessions, scope: apikey.ScopeRead,
		does: "Get the state of a session, with its calls and what waits for people", fails: []int{404},
	}, a.getSession)
	add(a, operation{
		id: "get-result", method: http.MethodGet, path: "/v1/sessions/{session}/result", tag: tagSessions, scope: apikey.ScopeRead, also: running,
		does: "Get what a session has come to", details: "With wait, the answer comes when the session has ended or the time is over.", fails: []int{404},
	}, a.getResult)
	add(a, operation{
		id: "get-transcript", method: http.MethodGet, path: "/v1/sessions/{session}/transcript", tag: tagSessions, scope: apikey.ScopeRead,
		does: "Get what was asked, said and done in a session, oldest first", fails: []int{404},
	}, a.getTranscript)
	add(a, operation{
		id: "get-events", method: http.MethodGet, path: "/v1/sessions/{session}/events", tag: tagSessions, scope: apikey.ScopeRead,
		does: "Get the events of a session, as a page or as a stream",
		details: "With Accept: text/event-stream, the events are server-sent events whose id is the event's sequence number. The stream ends after the last " +
			"event of an ended session, and another request for what follows answers 204, so that clients do not connect again. Otherwise the answer is a page.",
		also:  map[int]string{http.StatusNoContent: "The session has ended, and no event follows"},
		fails: []int{404},
	}, a.getEvents)
	describeEvents(a.huma.OpenAPI())
	add(a, operation{
		id: "send-message", method: http.MethodPost, path: "/v1/sessions/{session}/messages", tag: tagSessions, scope: apikey.ScopeRun,
		status: http.StatusAccepted, does: "Send a message to a session",
		details: "A working session reads it in its next pass; an ended one starts another pass. A session accepts one message with the same id.",
		fails:   []int{404, 409},
	}, a.sendMessage)
	add(a, operation{
		id: "cancel-session", method: http.MethodPost, path: "/v1/sessions/{session}/cancel", tag: tagSessions, scope: apikey.ScopeRun,
		status: http.StatusAccepted, does: "Ask a session to stop", fails: []int{404, 409},
	}, a.cancelSession)
	add(a, operation{
		id: "get-call", method: http.MethodGet, path: "/v1/sessions/{session}/call", tag: tagCalls, scope: apikey.ScopeRead,
		does: "Get a call with its whole input and result", fails: []int{404, 409},
	}, a.getCall)
	add(a, operation{
		id: "call-tool", method: http.MethodPost, path: "/v1/tools/{tool}/calls", tag: tagCalls, scope: apikey.ScopeRun, also: running,
		does: "Call a tool without a model",
		details: "The call is admitted, approved, recorded and run once, like a call of an agent. With the header Prefer: wait=SECONDS, the answer comes when " +
			"the call has its result or waits for a person. Repeated requests are recognized as for sessions.",
		fails: []int{404, 409},
	}, a.callTool)
	add(a, operation{
		id: "list-approvals", method: http.MethodGet, path: "/v1/approvals", tag: tagApprovals, scope: apikey.ScopeRead,
		does: "List the calls that wait for people, oldest first",
	}, a.listApprovals)
	add(a, operation{
		id: "get-approval", method: http.MethodGet, path: "/v1/approvals/{session}", tag: tagApprovals, scope: apikey.ScopeRead,
		does: "Get a call that waits for a person, with its whole input", fails: []int{404, 409},
	}, a.getApproval)
	add(a, operation{
		id: "decide", method: http.MethodPost, path: "/v1/approvals/{session}/decision", tag: tagApprovals, scope: apikey.ScopeDecide,
		does:    "Approve or deny a call",
		details: "The digest says what was decided about: it must be that of the waiting call. A refused decision is an answer, too: its outcome is refused.",
		fails:   []int{404, 409},
	}, a.decide)
	add(a, operation{
		id: "list-tools", method: http.MethodGet, path: "/v1/tools", tag: tagTools, scope: apikey.ScopeRead,
		does: "List the tools and the names of the registered documents",
	}, a.listTools)
	add(a, operation{
		id: "get-tool", method: http.MethodGet, path: "/v1/tools/{tool}", tag: tagTools, scope: apikey.ScopeRead, does: "Get the contract of a tool", fails: []int{404},
	}, a.getTool)
	add(a, operation{
		id: "get-me", method: http.MethodGet, path: "/v1/me", tag: tagIdentity,
		does: "Get the tenant, the principal with its roles, and what the credential allows",
	}, a.getMe)
}

// everywhere lists the statuses with which every operation may fail.
func everywhere() []int { return []int{400, 401, 403, 421, 422, 429, 500, 503, 504} }

// add registers an operation with its function.
func add[I, O any](a *API, o operation, do func(ctx context.Context, in *I) (*O, error)) {
	op := huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Tags: []string{o.tag}, Summary: o.does, Description: o.details, DefaultStatus: o.status,
		MaxBodyBytes: MaxBody, BodyReadTimeout: bodyTimeout, Errors: everywhere(), Responses: map[string]*huma.Response{},
		Security:    []map[string][]string{{kindAPIKey: {}}, {kindAccessToken: {}}},
		Middlewares: huma.Middlewares{a.authenticate(o.scope)},
	}
	if o.scope != "" {
		op.Extensions = map[string]any{"x-scope": o.scope}
	}
	op.Errors = append(op.Errors, o.fails...)
	if o.method == http.MethodPost {
		op.Errors = append(op.Errors, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	slices.Sort(op.Errors)
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, a.problemOf(ctx, err)
		}
		return out, nil
	})
	describeAlso(a.huma.OpenAPI().Paths[o.path], o)
}

// describeAlso adds the other statuses of success, which have the same body as the usual one.
func describeAlso(path *huma.PathItem, o operation) {
	described := path.Get
	if o.method == http.MethodPost {
		described = path.Post
	}
	usual := described.Responses[statusText(o.status)]
	for status, description := range o.also {
		other := &huma.Response{Description: description}
		if status != http.StatusNoContent {
			other.Content, other.Headers = usual.Content, usual.Headers
		}
		described.Responses[statusText(status)] = other
	}
}

// describeEvents adds the two forms of the answer of get-events, which its function writes itself.
func describeEvents(document *huma.OpenAPI) {
	page := document.Components.Schemas.Schema(reflect.TypeFor[eventsPage](), true, "EventsPage")
	document.Paths["/v1/sessions/{session}/events"].Get.Responses[statusText(0)].Content = map[string]*huma.MediaType{
		"application/json": {Schema: page},
		eventStream:        {Schema: &huma.Schema{Type: huma.TypeString, Description: "Server-sent events. The data of each is an event of the page."}},
	}
}
