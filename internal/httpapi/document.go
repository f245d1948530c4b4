package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/jig-run/jig/internal/identity"
)

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

// serveDocument serves the document to everybody.
func (a *API) serveDocument() {
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
