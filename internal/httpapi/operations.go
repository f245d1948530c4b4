package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
)

// register adds all operations.
func (a *API) register() {
	a.serveSessions()
	a.serveCalls()
	a.serveApprovals()
	a.serveTools()
	a.serveDocuments()
	a.serveGovernance()
	a.serveSchedules()
	a.serveEntities()
	a.serveIdentity()
	describeMembers(a.huma.OpenAPI().Components.Schemas)
}

// everywhere lists the statuses with which every operation may fail.
func everywhere() []int { return []int{400, 401, 403, 421, 422, 429, 500, 503, 504} }

// read serves a plain read: the engine answers the request for the principal of the credential.
func read[Q, R any](a *API, op api.Op[Q, R]) {
	serve(a, op, func(ctx context.Context, in *Q) (R, error) {
		tenant, who := callerOf(ctx)
		api.Bind(in, tenant, who)
		if completed, ok := any(in).(interface{ SetDefaults(now time.Time) }); ok {
			completed.SetDefaults(time.Now())
		}
		return api.Ask(ctx, a.options.Engine, op, *in)
	})
}

// body is an answer with the usual status and no headers of its own.
type body[R any] struct{ Body R }

// serve serves an operation with a function that returns the response.
func serve[Q, R any](a *API, op api.Op[Q, R], do func(ctx context.Context, in *Q) (R, error)) {
	serveAs(a, op, func(ctx context.Context, in *Q) (*body[R], error) {
		response, err := do(ctx, in)
		noNull(&response)
		return &body[R]{response}, err
	})
}

// serveAs serves an operation with a function that also returns a status or headers, or that writes the response itself.
func serveAs[Q, R, O any](a *API, op api.Op[Q, R], do func(ctx context.Context, in *Q) (*O, error)) {
	add(a, op.Describe(), do)
}

// noNull replaces the lists of a response that are nil: in JSON, a list of nothing is [].
func noNull(response any) {
	value := reflect.ValueOf(response).Elem()
	if value.Kind() != reflect.Struct {
		return
	}
	for _, field := range reflect.VisibleFields(value.Type()) {
		if field.Type.Kind() == reflect.Slice && field.IsExported() && !strings.Contains(field.Tag.Get("json"), ",omit") {
			if list := value.FieldByIndex(field.Index); list.IsNil() {
				list.Set(reflect.MakeSlice(field.Type, 0, 0))
			}
		}
	}
}

// add registers an operation with its function.
func add[I, O any](a *API, o api.Operation, do func(ctx context.Context, in *I) (*O, error)) {
	op := huma.Operation{
		OperationID: o.Name, Method: o.Method, Path: o.Path, Tags: []string{string(o.Tag)}, Summary: o.Summary, Description: o.Details,
		DefaultStatus: o.Status, MaxBodyBytes: MaxBody, BodyReadTimeout: bodyTimeout, Errors: everywhere(), Responses: map[string]*huma.Response{},
		Security:    []map[string][]string{{identity.KindAPIKey: {}}, {identity.KindAccessToken: {}}, {identity.KindLogin: {}}},
		Middlewares: huma.Middlewares{a.authenticate(o)},
	}
	if o.Scope != "" {
		op.Extensions = map[string]any{"x-scope": o.Scope}
	}
	if o.OrScope != "" {
		op.Extensions["x-or-scope"] = o.OrScope
	}
	if o.Record != "" {
		op.Extensions["x-record"] = string(o.Record)
	}
	if o.Embed != "" {
		op.Extensions["x-embed"] = string(o.Embed)
		op.Security = append(op.Security, map[string][]string{identity.KindEmbed: {}})
		a.embeddable[o.Method+" "+o.Path] = true
	}
	op.Errors = append(op.Errors, o.Fails...)
	if o.Method != http.MethodGet && o.Method != http.MethodDelete {
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
	path := a.huma.OpenAPI().Paths[o.Path]
	describeParameters(methods(path)[o.Method], reflect.TypeFor[I]())
	describeAlso(path, o)
}

// describeAlso adds the other statuses of success, which have the same body as the usual one.
func describeAlso(path *huma.PathItem, o api.Operation) {
	described := methods(path)[o.Method]
	usual := described.Responses[statusText(o.Status)]
	for status, description := range o.Also {
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

// written is an answer that writes its body itself.
type written struct{ Body func(ctx huma.Context) }

// describe adds a form of the body of an operation that writes it itself.
func (a *API) describe(o api.Operation, mediaType string, form *huma.Schema) {
	answer := methods(a.huma.OpenAPI().Paths[o.Path])[o.Method].Responses[statusText(o.Status)]
	if answer.Content == nil {
		answer.Content = map[string]*huma.MediaType{}
	}
	answer.Content[mediaType] = &huma.MediaType{Schema: form}
}

// describeJSON adds the form that the response of an operation has in JSON.
func describeJSON[Q, R any](a *API, op api.Op[Q, R]) {
	a.describe(op.Operation, "application/json", a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[R](), true, ""))
}

// describeStream adds the two forms of the answer of an operation that writes it itself: a page, or a stream of server-sent events.
func describeStream[Q, R any](a *API, op api.Op[Q, R]) {
	describeJSON(a, op)
	a.describe(op.Operation, eventStream, &huma.Schema{Type: huma.TypeString, Description: "Server-sent events. The data of each is an event of the page."})
}
