package httpapi

import (
	"net/http"
	"net/url"
	"strings"
)

// alias is a second address of an operation. Both paths may contain {tool}, which then stands for the same name.
type alias struct{ method, path, toMethod, toPath string }

// aliases are the addresses that clients of other tool catalogs use. A reload only reads, because a registered document takes effect at once.
func aliases() []alias {
	const spec = "/v1/documents/spec/{tool}"
	return []alias{
		{http.MethodGet, "/api/tools", http.MethodGet, "/v1/tools"},
		{http.MethodPost, "/api/tools", http.MethodPost, "/v1/documents"},
		{http.MethodGet, "/api/tools/{tool}", http.MethodGet, "/v1/tools/{tool}"},
		{http.MethodPatch, "/api/tools/{tool}", http.MethodPut, spec},
		{http.MethodDelete, "/api/tools/{tool}", http.MethodDelete, spec},
		{http.MethodGet, "/api/tools/{tool}/versions", http.MethodGet, spec + "/versions"},
		{http.MethodPost, "/api/tools/{tool}/test", http.MethodPost, "/v1/tools/{tool}/calls"},
		{http.MethodPost, "/admin/reload-catalog", http.MethodGet, "/v1/tools"},
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
