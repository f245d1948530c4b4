package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// operation describes an operation. What it takes and returns follows from its function. The tables in this package are the only places where
// operations are declared: the OpenAPI document, and the tests that go through all operations, follow from them.
type operation struct {
	id, method, path, tag string
	// scope is the scope that a credential needs; empty if every valid one will do.
	scope string
	// or is a scope that does as well; empty if there is none.
	or string
	// embeds is the kind of embed token that may be used, within what it is for; mostly empty: none.
	embeds string
	// record says where a change is recorded; empty for operations that only read.
	record record
	// does and details are the summary and the description in the OpenAPI document.
	does, details string
	// status is the usual status of success, and also are the other ones. default: 200.
	status int
	also   map[int]string
	// fails lists the statuses of the operation's own errors, besides those of every operation.
	fails []int
}

// record says where a change is recorded.
type record string

// The records. A change by a call is recorded as a call is: in the log and the ledger of its session, with its approvals in the audit.
const (
	recordSession record = "session"
	recordAudit   record = "audit"
	recordCall    record = "call"
	// recordTemporal is the history of the workflow or the schedule in Temporal.
	recordTemporal record = "temporal"
	// recordKey is the API key itself, which says who created and who revoked it.
	recordKey record = "api_key"
	// recordEmbed is the embed token, in the same way.
	recordEmbed record = "embed_token"
)

// Groups of operations in the OpenAPI document.
const (
	tagSessions  = "Sessions"
	tagCalls     = "Calls"
	tagApprovals = "Approvals"
	tagTools     = "Tools"
	tagDocuments = "Documents"
	tagPolicies  = "Policies"
	tagEntities  = "Entities"
	tagOperate   = "Operations"
	tagSchedules = "Schedules"
	tagIdentity  = "Identity"
	tagAliases   = "Aliases"
)

// register adds all operations.
func (a *API) register() {
	a.registerSessions()
	a.registerCalls()
	a.registerApprovals()
	a.registerCatalog()
	a.registerOperations()
	a.registerSchedules()
	a.registerIdentity()
	describeMembers(a.huma.OpenAPI().Components.Schemas)
}

// everywhere lists the statuses with which every operation may fail.
func everywhere() []int { return []int{400, 401, 403, 421, 422, 429, 500, 503, 504} }

// add registers an operation with its function.
func add[I, O any](a *API, o operation, do func(ctx context.Context, in *I) (*O, error)) {
	op := huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Tags: []string{o.tag}, Summary: o.does, Description: o.details, DefaultStatus: o.status,
		MaxBodyBytes: MaxBody, BodyReadTimeout: bodyTimeout, Errors: everywhere(), Responses: map[string]*huma.Response{},
		Security:    []map[string][]string{{kindAPIKey: {}}, {kindAccessToken: {}}, {kindLogin: {}}},
		Middlewares: huma.Middlewares{a.authenticate(o)},
	}
	if o.scope != "" {
		op.Extensions = map[string]any{"x-scope": o.scope}
	}
	if o.or != "" {
		op.Extensions["x-or-scope"] = o.or
	}
	if o.record != "" {
		op.Extensions["x-record"] = string(o.record)
	}
	if o.embeds != "" {
		op.Extensions["x-embed"] = o.embeds
		op.Security = append(op.Security, map[string][]string{kindEmbed: {}})
		a.embeddable[o.method+" "+o.path] = true
	}
	op.Errors = append(op.Errors, o.fails...)
	if o.method != http.MethodGet && o.method != http.MethodDelete {
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
	path := a.huma.OpenAPI().Paths[o.path]
	describeParameters(methods(path)[o.method], reflect.TypeFor[I]())
	describeAlso(path, o)
}

// describeAlso adds the other statuses of success, which have the same body as the usual one.
func describeAlso(path *huma.PathItem, o operation) {
	described := methods(path)[o.method]
	usual := described.Responses[statusText(o.status)]
	for status, description := range o.also {
		other := &huma.Response{Description: description}
		if status != http.StatusNoContent {
			other.Content, other.Headers = usual.Content, usual.Headers
		}
		described.Responses[statusText(status)] = other
	}
}

// methods returns the operations of a path by method.
func methods(path *huma.PathItem) map[string]*huma.Operation {
	return map[string]*huma.Operation{
		http.MethodGet: path.Get, http.MethodPost: path.Post, http.MethodPut: path.Put, http.MethodPatch: path.Patch, http.MethodDelete: path.Delete,
	}
}

// describeSent adds the answer of an operation that always answers with server-sent events.
func describeSent(a *API, path, description string) {
	a.huma.OpenAPI().Paths[path].Post.Responses[statusText(0)].Content = map[string]*huma.MediaType{
		eventStream: {Schema: &huma.Schema{Type: huma.TypeString, Description: description}},
	}
}

// describeStream adds the two forms of the answer of an operation that writes it itself: a page, or a stream of server-sent events.
func describeStream[P any](a *API, path, name string) {
	document := a.huma.OpenAPI()
	page := document.Components.Schemas.Schema(reflect.TypeFor[P](), true, name)
	document.Paths[path].Get.Responses[statusText(0)].Content = map[string]*huma.MediaType{
		"application/json": {Schema: page},
		eventStream:        {Schema: &huma.Schema{Type: huma.TypeString, Description: "Server-sent events. The data of each is an event of the page."}},
	}
}
