package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// alias is a second address of an operation: requests with method and path are answered as those with toMethod and toPath. Both paths may
// contain {tool}, which stands for the same name in both.
type alias struct{ id, method, path, toMethod, toPath string }

// aliases lists the addresses that clients of other tool catalogs use. Reloading the catalog only lists the tools, because a registered document
// takes effect at once.
func aliases() []alias {
	const spec = "/v1/documents/spec/{tool}"
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
