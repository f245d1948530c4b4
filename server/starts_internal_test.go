package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/credential"
)

// The server's role cannot read the audit, so workers answer what needs it.
func TestReads_OfDecisionsNeedNoRightsOfTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.waiting(t, "acme")
	key := r.key(t, "acme", 0, credential.DefaultScopes()...).Name
	for _, path := range []string{"/v1/approvals/" + id + "?call=1.1", "/v1/approvals?decided=true"} {
		status, body := r.does(t, key, http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, status, "%s: %s", path, body)
	}
}

func TestStarts_AreLimitedByTenant(t *testing.T) {
	t.Parallel()
	read, err := ReadSettings(client.SettingsRequest{Environ: []string{EnvRateStarts + "=1"}})
	require.NoError(t, err)
	r := newRig(t, func(s *Settings) { s.StartsPerTenant = read.StartsPerTenant })
	keys := map[string]string{}
	for _, tenant := range []string{"acme", "globex"} {
		keys[tenant] = r.key(t, tenant, 0, credential.DefaultScopes()...).Name
	}
	start := func(tenant string, n int) int {
		body := strings.NewReader(fmt.Sprintf(`{"id":"note-%d","document":"---\nname: a\ndescription: A.\nmodel: script/a\ntools: []\nscript:\n  rules: [{answer: done}]\n---\nA.\n","document_name":"a.md"}`, n))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL()+"/v1/sessions", body)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+keys[tenant])
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	var got []int
	for n := range 3 {
		got = append(got, start("acme", n))
	}
	require.Equal(t, []int{http.StatusCreated, http.StatusCreated, http.StatusTooManyRequests}, got)
	require.Equal(t, http.StatusCreated, start("globex", 0))
}
