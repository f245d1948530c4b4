// Package api declares the operations of jig's API, each of them once: its name, its address, the scope that it needs, where a change is recorded,
// its documentation, and the types of its request and its response. Everything that offers an operation follows from the declaration:
// internal/httpapi serves it and describes it in the OpenAPI document, internal/remote calls it, and the tests of both go through [All].
//
// A request is a struct. The tags path, query and header say where a member is sent, and the member Body is sent as JSON. Members with none of
// these tags are not part of the HTTP request. Those with the tag caller get their value from the credential: tenant or principal. The tag names
// holds the kind of thing that a member names, such as session; see internal/httpapi. The other tags are those of the OpenAPI document: doc, enum,
// minimum and so on.
//
// An operation with an Engine is a plain read: the engine answers the request itself, and neither side needs code of its own. To add one, declare
// it in the file of its subject, list it there, add what answers it in package activities, and serve it in internal/httpapi.
//
// The package does no I/O. Types that the engine shares are in internal/protocol. Begin with [Op] and [All].
package api

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// Operation describes an operation of the API.
type Operation struct {
	Name, Method, Path string
	Tag                Tag
	// Scope is the scope that a credential needs; empty if every valid one will do. OrScope is a scope that does as well; empty if there is none.
	Scope, OrScope string
	// Open operations are for everybody, without a credential: how people log in. Their parameters are not checked, because identity providers add some.
	Open bool
	// Embed is the kind of embed token that may be used, within what it is for; empty if no embed token will do.
	Embed Embed
	// Record says where a change is recorded; empty for operations that only read.
	Record Record
	// Summary and Details are the texts in the OpenAPI document.
	Summary, Details string
	// Media is the media type of a response that is not JSON, or not always: it has another form if the request accepts this type. Form describes it.
	Media, Form string
	// Status is the usual status of success, and Also describes the other ones. Default: 200.
	Status int
	Also   map[int]string
	// Fails lists the statuses of the operation's own errors, besides those of every operation.
	Fails []int
}

// Op is an operation with the types of its request and its response.
type Op[Request, Response any] struct {
	Operation
	// Engine is the read with which the engine answers the operation; empty if the server has code for it.
	Engine protocol.Read[Request, Response]
}

// Describe returns the operation without its types.
func (o Op[Request, Response]) Describe() Operation { return o.Operation }

// Types returns the types of the operation's request and response.
func (o Op[Request, Response]) Types() (request, response reflect.Type) {
	return reflect.TypeFor[Request](), reflect.TypeFor[Response]()
}

// Read returns the name of the read with which the engine answers the operation; empty if there is none.
func (o Op[Request, Response]) Read() string { return string(o.Engine) }

// Any is an operation of any types.
type Any interface {
	Describe() Operation
	Types() (request, response reflect.Type)
	Read() string
}

// All lists the operations.
func All() []Any {
	return slices.Concat(sessions(), calls(), approvals(), governance(), schedules(), entities(), credentials(), tools(), documents())
}

// Asker answers plain reads: the client of the engine, which asks it under the name, or the client of the HTTP API.
type Asker interface {
	Ask(ctx context.Context, name string, request, response any) error
}

// Ask makes a plain read.
func Ask[Request, Response any](ctx context.Context, a Asker, o Op[Request, Response], request Request) (response Response, err error) {
	err = a.Ask(ctx, o.Read(), request, &response)
	return response, err
}

// Tag is a group of operations in the OpenAPI document.
type Tag string

// The groups.
const (
	Sessions  Tag = "Sessions"
	Calls     Tag = "Calls"
	Approvals Tag = "Approvals"
	Tools     Tag = "Tools"
	Documents Tag = "Documents"
	Policies  Tag = "Policies"
	Entities  Tag = "Entities"
	Operate   Tag = "Operations"
	Schedules Tag = "Schedules"
	Identity  Tag = "Identity"
)

// Embed is a kind of embed token.
type Embed string

// The kinds.
const (
	EmbedSession Embed = "session"
	EmbedTool    Embed = "tool"
)

// Media types of responses that are not JSON.
const (
	EventStream = "text/event-stream"
	JSONLines   = "application/x-ndjson"
	// Binary is the type of downloads, which no browser interprets.
	Binary = "application/octet-stream"
)

// pageEvents describes the stream of an operation whose response is otherwise a page.
const pageEvents = "Server-sent events. The data of each is an event of the page."

// Record says where a change is recorded.
type Record string

// The records. A change by a call is recorded as a call is: in the log and the ledger of its session, with its approvals in the audit.
const (
	RecordSession Record = "session"
	RecordAudit   Record = "audit"
	RecordCall    Record = "call"
	// RecordTemporal is the history of the workflow or the schedule in Temporal.
	RecordTemporal Record = "temporal"
	// RecordKey is the API key itself, which says who created and who revoked it.
	RecordKey Record = "api_key"
	// RecordEmbed is the embed token, in the same way.
	RecordEmbed Record = "embed_token"
	// RecordEvents is the log of what happens with credentials.
	RecordEvents Record = "credential_events"
)

// reading returns an operation that reads.
func reading[Request, Response any](tag Tag, name, path, summary string, fails ...int) Op[Request, Response] {
	return Op[Request, Response]{Operation: Operation{
		Name: name, Method: http.MethodGet, Path: path, Tag: tag, Scope: credential.ScopeRead, Summary: summary, Fails: fails,
	}}
}

// repeated describes the status of a request that starts something and was made before.
func repeated() map[int]string {
	return map[int]string{http.StatusOK: "The same request was made before; nothing was started"}
}

// Running describes the status of a request whose session or call has not ended.
func Running() map[int]string { return map[int]string{http.StatusAccepted: "Not ended yet"} }

// Names of the tags of requests.
const (
	// tagCaller marks a member whose value comes from the credential.
	tagCaller = "caller"
	// TagNames marks a member that names something of a tenant. Its value is the kind of that thing, such as session. {member} means that another
	// member of the same object, or another parameter of the path, holds the kind.
	TagNames = "names"
)

// Bind sets the members of a request, which must be a pointer, that come from the credential, and completes the ids of sessions among its other
// members: a client may leave out the tenant's prefix.
func Bind(request any, tenant string, who jig.Principal) {
	value := reflect.ValueOf(request).Elem()
	for _, field := range reflect.VisibleFields(value.Type()) {
		if field.Anonymous || field.Type.Kind() != reflect.String {
			continue
		}
		member := value.FieldByIndex(field.Index)
		switch {
		case field.Tag.Get(tagCaller) == "tenant":
			member.SetString(tenant)
		case field.Tag.Get(tagCaller) == "principal":
			member.SetString(who.ID)
		case field.Tag.Get(TagNames) == "session" && member.String() != "":
			member.SetString(jig.SessionID(tenant, member.String()))
		}
	}
}

// Idempotent holds the header of requests that start something.
type Idempotent struct {
	Key string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~]+$" doc:"Repeating a request with the same key returns what the first one started. Use it instead of an id."`
}

// CallHeaders holds the headers of every operation that makes a call.
type CallHeaders struct {
	Idempotent
	Prefer string `header:"Prefer" maxLength:"200" doc:"wait=SECONDS waits up to that long for the result, at most 60 seconds"`
}

// SessionPath names a session in the path.
type SessionPath struct {
	Session string `path:"session" names:"session" maxLength:"192" doc:"The id of the session"`
}

// Page holds the parameters of lists.
type Page struct {
	Cursor string `query:"cursor" maxLength:"2000" doc:"next_cursor of the previous page, with the same filter"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"40" doc:"The maximum number of entries. A page may have fewer even if more follow"`
}

// Origin says how a client starts something.
type Origin struct {
	Source jig.Source `json:"source,omitempty" enum:"api,cli,web" doc:"The kind of client, as it claims. Default: api"`
}

// From returns the source, or its default.
func (o Origin) From() jig.Source { return cmp.Or(o.Source, jig.SourceAPI) }

// Problem is an error as a client sees it: problem details (RFC 9457) with the members of a [jig.Error]. It repeats no value of the request.
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
	Type   string   `json:"type" doc:"Always about:blank; the code says what is wrong"`
	Title  string   `json:"title" doc:"The text of the HTTP status"`
	Status int      `json:"status" doc:"The HTTP status"`
	Code   jig.Code `json:"code" doc:"The error code, the same as on the command line"`
	Detail string   `json:"detail,omitempty" doc:"What is wrong, in one sentence"`
	Reason string   `json:"reason,omitempty" doc:"A more specific code; of a decision that was refused, why"`
	Field  string   `json:"field,omitempty" doc:"The member or parameter that is wrong"`
	Hint   string   `json:"hint,omitempty" doc:"How to fix it"`
	// RequestID is the id of the request, which the server's log contains.
	RequestID string         `json:"request_id" doc:"The id of the request, as in the server's log"`
	Errors    []ProblemPlace `json:"errors,omitempty" doc:"The invalid places of the request, at most 50"`
	// Outcome and CallStatus are those of a decision that was refused. Its reason is a sentence.
	Outcome    string         `json:"outcome,omitempty" doc:"Of a decision that was refused: refused"`
	CallStatus jig.CallStatus `json:"call_status,omitempty" doc:"Of a decision that was refused: the state of the call"`
	// Headers are the headers of the answer.
	Headers http.Header `json:"-"`
}

// ProblemJSON is the media type of errors.
const ProblemJSON = "application/problem+json"

// Error implements error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus returns the status of the answer. It is one of the methods that internal/httpapi's router asks of an error.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers of the answer.
func (p *Problem) GetHeaders() http.Header { return p.Headers }

// ContentType returns the media type of the answer.
func (*Problem) ContentType(string) string { return ProblemJSON }

// ProblemPlace is one place of a request that is wrong.
type ProblemPlace struct {
	Location string `json:"location" doc:"Where, e.g. body.agent, or a JSON pointer into an input"`
	Message  string `json:"message" doc:"What is wrong with it"`
}

// Err returns the error that a problem describes, with the values of the request that it is about. The problem is its cause. retryAfter is how long
// the client should wait before it repeats the request; 0 if unknown.
func (p Problem) Err(sent *Values, retryAfter time.Duration) *jig.Error {
	e := jig.Errorf(p.Code, "%s", sent.Fill(cmp.Or(p.Detail, p.Title))).WithReason(p.Reason).WithField(p.Field).WithHint(sent.Fill(p.Hint))
	e.RetryAfter = retryAfter
	p.Reason = sent.Fill(p.Reason)
	e.Cause = &p
	for _, place := range p.Errors {
		e.Violations = append(e.Violations, jig.Violation{Pointer: place.Location, Message: sent.Fill(place.Message)})
	}
	return e
}
