package httpapi

import (
	"net/http"
	"strings"

	"github.com/jig-run/jig"
)

// Headers of pages of other origins that have an embed token: what they may send, and what they may read.
var (
	sharedRequest = strings.Join([]string{"Authorization", "Content-Type", headerKey, headerLastEvent, "Prefer"}, ", ")
	sharedAnswer  = strings.Join([]string{headerRequestID, "Idempotent-Replayed", "Location", "Preference-Applied", "Retry-After"}, ", ")
)

// preflightLasts is how many seconds a browser may remember the answer to a preflight request.
const preflightLasts = "600"

// shareWith lets pages of an origin read an answer.
func shareWith(h http.Header, origin string) {
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", sharedAnswer)
}

// preflight tells a browser whether a page of another origin may make a request. It may if the operation takes embed tokens and there is a token
// for the origin. Browsers send no credential with the question; the request itself is checked as every other one.
func (a *API) preflight(w http.ResponseWriter, r *http.Request) {
	origins, method := r.Header.Values("Origin"), r.Header.Get("Access-Control-Request-Method")
	if len(origins) != 1 || method == "" {
		a.unknown(w, r)
		return
	}
	asked := r.Clone(r.Context())
	asked.Method = method
	_, pattern := a.mux.Handler(asked)
	known := a.embeddable[pattern]
	if known {
		var err error
		if known, err = a.options.Credentials.EmbedOrigin(r.Context(), origins[0]); err != nil {
			a.refuse(w, r, a.problemOf(r.Context(), err))
			return
		}
	}
	h := w.Header()
	if !known {
		h.Add("Vary", "Origin")
		a.options.Observer.Refused(reasonOrigin)
		a.refuse(w, r, failed(http.StatusForbidden, jig.Errorf(jig.CodeNotPermitted, "pages of other origins need an embed token").WithReason(reasonOrigin)))
		return
	}
	shareWith(h, origins[0])
	h.Set("Access-Control-Allow-Methods", method)
	h.Set("Access-Control-Allow-Headers", sharedRequest)
	h.Set("Access-Control-Max-Age", preflightLasts)
	w.WriteHeader(http.StatusNoContent)
}
