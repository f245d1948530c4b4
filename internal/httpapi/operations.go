package httpapi

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

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

// serveWith serves an operation with a handler.
func serveWith[Q, R any](a *API, op api.Op[Q, R], handle http.HandlerFunc) {
	serveAs(a, op, func(context.Context, *Q) (*written, error) {
		return &written{Body: func(c huma.Context) {
			r, w := humago.Unwrap(c)
			handle(w, r)
		}}, nil
	})
}

// serveAs serves an operation with a function that also returns a status or headers, or that writes the response itself.
func serveAs[Q, R, O any](a *API, op api.Op[Q, R], do func(ctx context.Context, in *Q) (*O, error)) {
	add(a, op.Operation, do)
	a.describeForms(op.Operation, reflect.TypeFor[R]())
}

// noNull replaces the lists of a response that are nil: in JSON, a list of nothing is []. Bytes, such as those of a [json.RawMessage], are no list.
func noNull(response any) {
	value := reflect.ValueOf(response).Elem()
	if value.Kind() != reflect.Struct {
		return
	}
	for _, field := range reflect.VisibleFields(value.Type()) {
		if isList(field.Type) && field.IsExported() && !strings.Contains(field.Tag.Get("json"), ",omit") {
			if list := value.FieldByIndex(field.Index); list.IsNil() {
				list.Set(reflect.MakeSlice(field.Type, 0, 0))
			}
		}
	}
}

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

// add registers an operation with its function.
func add[I, O any](a *API, o api.Operation, do func(ctx context.Context, in *I) (*O, error)) {
	op := huma.Operation{
		OperationID: o.Name, Method: o.Method, Path: o.Path, Tags: []string{string(o.Tag)}, Summary: o.Summary, Description: o.Details,
		DefaultStatus: o.Status, MaxBodyBytes: MaxBody, BodyReadTimeout: bodyTimeout, Errors: everywhere(), Responses: map[string]*huma.Response{},
		Security:    []map[string][]string{{identity.KindAPIKey: {}}, {identity.KindAccessToken: {}}, {identity.KindLogin: {}}},
		Middlewares: huma.Middlewares{a.authenticate(o)}, Extensions: map[string]any{},
	}
	if o.Open {
		op.Security, op.Middlewares, op.SkipValidateParams = []map[string][]string{}, nil, true
	}
	if o.Scope != "" {
		op.Extensions["x-scope"] = o.Scope
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
			return nil, a.problemOf(ctx, cmp.Or(yielded(ctx), err))
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

// describeForms adds the forms of a response that the operation's function writes itself: JSON, or the declared media type, or both.
func (a *API) describeForms(o api.Operation, response reflect.Type) {
	answer := methods(a.huma.OpenAPI().Paths[o.Path])[o.Method].Responses[statusText(o.Status)]
	if answer.Content == nil {
		answer.Content = map[string]*huma.MediaType{}
	}
	if response != reflect.TypeFor[struct{}]() && len(answer.Content) == 0 {
		answer.Content["application/json"] = &huma.MediaType{Schema: a.huma.OpenAPI().Components.Schemas.Schema(response, true, "")}
	}
	if o.Media != "" {
		form := &huma.Schema{Type: huma.TypeString, Description: o.Form}
		if o.Media == api.Binary {
			form.Format = "binary"
		}
		answer.Content[o.Media] = &huma.MediaType{Schema: form}
	}
}

// extensionNames has the value of the tag [api.TagNames] in the OpenAPI document. The isolation suite tries the ids of another tenant there.
const extensionNames = "x-names"

// describeParameters writes what the parameters of an operation name.
func describeParameters(op *huma.Operation, input reflect.Type) {
	for _, field := range reflect.VisibleFields(input) {
		kind, named := field.Tag.Lookup(api.TagNames)
		for _, p := range op.Parameters {
			if named && field.Tag.Get(p.In) == p.Name {
				p.Schema.Extensions = map[string]any{extensionNames: kind}
			}
		}
	}
}

// describeMembers adds what the members of all objects name to the document.
func describeMembers(all huma.Registry) {
	for name, schema := range all.Map() {
		object := all.TypeFromRef("#/components/schemas/" + name)
		for object.Kind() == reflect.Pointer {
			object = object.Elem()
		}
		if object.Kind() != reflect.Struct {
			continue
		}
		for _, field := range reflect.VisibleFields(object) {
			member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if kind, named := field.Tag.Lookup(api.TagNames); named && schema.Properties[member] != nil {
				schema.Properties[member].Extensions = map[string]any{extensionNames: kind}
			}
		}
	}
}

// version is the version of the interface, which is part of every path.
const version = "1"

// settings returns the settings of huma: OpenAPI 3.1, no pages that load scripts from elsewhere, no links in answers.
func settings() huma.Config {
	c := huma.DefaultConfig("jig", version)
	c.Info.Description = "Start agents, call tools, follow events, and decide on calls that wait for a person. " +
		"The credential determines the tenant and the principal. Session ids may be given with or without the tenant's prefix."
	c.Info.License = &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"}
	c.Servers = []*huma.Server{{URL: "/", Description: "The server that serves this document"}}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.RejectUnknownQueryParameters = true
	c.Formats = map[string]huma.Format{"application/json": jsonFormat(), "json": jsonFormat()}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		identity.KindAPIKey:      {Type: "http", Scheme: "bearer", Description: "An API key: jig_<id>_<secret>, created by `jig api-key create`."},
		identity.KindLogin:       {Type: "apiKey", In: "cookie", Name: cookieLogin, Description: "The cookie of a login with a browser. Pages of other origins cannot use it for changes."},
		identity.KindEmbed:       {Type: "http", Scheme: "bearer", Description: "An embed token: jig_embed_<id>_<secret>. It is valid only for the Origin that it was created for."},
		identity.KindAccessToken: {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "An access token of a configured identity provider, for the audience of this server."},
	}
	return c
}

// schemaName returns the name of a type in the OpenAPI document. The body of a request is named after its operation.
func schemaName(t reflect.Type, hint string) string {
	return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Body")
}

// Document returns the OpenAPI document, indented.
func Document() ([]byte, error) { return New(Options{}).document() }

func (a *API) document() ([]byte, error) {
	compact, err := a.huma.OpenAPI().MarshalJSON()
	if err != nil {
		return nil, err //nolint:wrapcheck // huma's own error says it
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		return nil, err //nolint:wrapcheck // cannot happen: it is JSON
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// llms lists the pages of the documentation for models. A test of the root package writes it.
//
//go:embed llms.txt
var llms []byte

// serveDocument serves the document, and the list of the documentation for models, to everybody.
func (a *API) serveDocument() {
	a.mux.HandleFunc("GET /llms.txt", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(llms) //nolint:errcheck // the client is gone
	})
	document, err := a.document()
	a.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			a.refuse(w, r, a.problemOf(r.Context(), err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) //nolint:errcheck // the client is gone
	})
}

// alias is a second address of an operation: requests with method and path are answered as those with toMethod and toPath. Both paths may
// contain {tool}, which stands for the same name in both.
type alias struct{ id, method, path, toMethod, toPath string }

// aliases lists the addresses that clients of other tool catalogs use. Reloading the catalog only lists the tools, because a registered document
// takes effect at once.
func aliases() []alias {
	const spec = "/v1/documents/composition/{tool}"
	return []alias{
		{"api-list-tools", http.MethodGet, "/api/tools", http.MethodGet, "/v1/tools"},
		{"api-register-tools", http.MethodPost, "/api/tools", http.MethodPost, "/v1/documents"},
		{"api-get-tool", http.MethodGet, "/api/tools/{tool}", http.MethodGet, "/v1/tools/{tool}"},
		{"api-change-tool", http.MethodPatch, "/api/tools/{tool}", http.MethodPut, spec},
		{"api-remove-tool", http.MethodDelete, "/api/tools/{tool}", http.MethodDelete, spec},
		{"api-list-tool-versions", http.MethodGet, "/api/tools/{tool}/versions", http.MethodGet, spec + "/versions"},
		{"api-test-tool", http.MethodPost, "/api/tools/{tool}/test", http.MethodPost, "/v1/tools/{tool}/test"},
		{"api-stream-tool-test", http.MethodPost, "/api/tools/{tool}/test/stream", http.MethodPost, "/v1/tools/{tool}/test/stream"},
		{"reload-catalog", http.MethodPost, "/admin/reload-catalog", http.MethodGet, "/v1/tools"},
	}
}

// serveAliases answers requests to aliases as the operations do, with the same credentials, scopes and errors.
func (a *API) serveAliases() {
	for _, other := range aliases() {
		a.mux.HandleFunc(other.method+" "+other.path, func(w http.ResponseWriter, r *http.Request) {
			tool := r.PathValue("tool")
			to := func(tool string) string { return strings.ReplaceAll(other.toPath, "{tool}", tool) }
			// The request itself changes, because the exchange looks up the request's values by the path of the operation.
			r.URL = &url.URL{Path: to(tool), RawPath: to(url.PathEscape(tool)), RawQuery: r.URL.RawQuery}
			if other.method != other.toMethod {
				r.Method = other.toMethod
			}
			a.mux.ServeHTTP(w, r)
		})
	}
}

// describeAliases adds the aliases to the OpenAPI document, each with what its operation takes and answers.
func (a *API) describeAliases() {
	document := a.huma.OpenAPI()
	tool := document.Paths["/v1/tools/{tool}"].Get.Parameters
	for _, other := range aliases() {
		_, pattern := a.mux.Handler(&http.Request{Method: other.toMethod, URL: &url.URL{Path: strings.ReplaceAll(other.toPath, "{tool}", "x")}})
		_, path, _ := strings.Cut(pattern, " ")
		described := *methods(document.Paths[path])[other.toMethod]
		described.Summary, described.Description = "The same as "+described.OperationID, "An alias for clients of other tool catalogs."
		described.OperationID, described.Method, described.Path, described.Tags = other.id, other.method, other.path, []string{"Aliases"}
		described.Parameters = slices.DeleteFunc(slices.Clone(described.Parameters), func(p *huma.Param) bool { return p.In == "path" })
		if strings.Contains(other.path, "{tool}") {
			described.Parameters = append(slices.Clone(tool), described.Parameters...)
		}
		document.AddOperation(&described)
	}
}
