package httpapi_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/httpapi"
)

// installed are bundles by tenant.
type installed map[string][]bundle.Bundle

func (i installed) Bundles(_ context.Context, tenant string) ([]bundle.Bundle, error) {
	return i[tenant], nil
}

func TestBundles_AreReadBack(t *testing.T) {
	t.Parallel()
	shelf := installed{}
	s := newSiteWith(t, func(o *httpapi.Options) { o.Bundles = shelf })
	answer, body := s.send(http.MethodGet, "/v1/bundles", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.JSONEq(t, `{"bundles": []}`, body)

	shelf["acme"] = []bundle.Bundle{{
		Manifest: bundle.Manifest{Name: "reading", Version: "1.0.0", Title: "Reading list"}, Hash: "h1",
		Documents: []bundle.DocumentVersion{{Kind: "policy", Name: "reading-rules", Version: "v1"}}, InstalledAt: time.Unix(0, 0).UTC(), InstalledBy: "ana",
	}}
	shelf["umbrella"] = []bundle.Bundle{{Manifest: bundle.Manifest{Name: "secrets", Version: "1.0.0"}}}
	const reading = `{"name": "reading", "version": "1.0.0", "title": "Reading list", "hash": "h1",
		"documents": [{"kind": "policy", "name": "reading-rules", "version": "v1"}], "installed_at": "1970-01-01T00:00:00Z", "installed_by": "ana"}`
	_, body = s.send(http.MethodGet, "/v1/bundles", "")
	require.JSONEq(t, `{"bundles": [`+reading+`]}`, body)
	_, body = s.send(http.MethodGet, "/v1/bundles/reading", "")
	require.JSONEq(t, reading, body)
	for _, name := range []string{"secrets", "unknown"} {
		answer, body = s.send(http.MethodGet, "/v1/bundles/"+name, "")
		require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status, name)
	}
}
