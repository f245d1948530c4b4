package server

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/store/storetest"
)

// Each document of a bundle can be read in the bundle's version, also after the tenant has replaced it.
func TestBundles_DocumentsAreReadBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tenant := storetest.Tenant(t)
	key := r.key(t, tenant, 0, credential.ScopeRead).Name
	r.install(t, tenant, "notes", "notes-agent")
	require.NoError(t, r.worker.PutDocument(t.Context(), tenant, "agent", "notes-agent", "v2", []byte("own")))
	read := func(path string, answer any) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL()+path, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode, string(body))
		require.NoError(t, json.Unmarshal(body, answer))
	}
	var list struct{ Bundles []bundle.Bundle }
	read("/v1/bundles", &list)
	require.Len(t, list.Bundles, 1)
	var got bundle.Bundle
	read("/v1/bundles/"+list.Bundles[0].Name, &got)
	require.Equal(t, list.Bundles[0], got)
	require.Equal(t, "1.0.0", got.Version)
	require.Equal(t, "ana", got.InstalledBy)
	require.Len(t, got.Documents, 1)
	for _, d := range got.Documents {
		var document struct{ Text string }
		read("/v1/documents/"+d.Kind+"/"+d.Name+"?version="+d.Version, &document)
		require.Equal(t, "of the bundle", document.Text)
	}
}
