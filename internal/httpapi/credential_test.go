package httpapi_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/identity/credential"
)

// with makes a request with exactly these Authorization headers.
func (s *site) with(path string, authorization ...string) (reply, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	require.NoError(s.t, err)
	request.Header["Authorization"] = authorization
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return reply{answer.StatusCode, answer.Header}, string(text)
}

// The answer to a credential that does not count does not say what is wrong with it.
func TestCredential_IsRefusedWithoutAReason(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other, _, _ := credential.KeyForm.New()
	answer, expected := s.with("/v1/me")
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.Equal(t, `Bearer realm="jig", resource_metadata="`+s.url+`/.well-known/oauth-protected-resource"`, answer.Header.Get("WWW-Authenticate"))
	expected = strings.ReplaceAll(expected, answer.Header.Get("X-Request-Id"), "")
	for name, headers := range map[string][]string{
		"an unknown key":         {"Bearer " + other},
		"another secret":         {"Bearer " + s.key[:len(s.key)-4] + "aaaa"},
		"another scheme":         {"Basic " + s.key},
		"a name and a password":  {"Basic " + base64.StdEncoding.EncodeToString([]byte("ana:"+s.key))},
		"no scheme":              {s.key},
		"two credentials":        {"Bearer " + s.key, "Bearer " + s.key},
		"something else":         {"Bearer secret"},
		"an empty one":           {""},
		"two keys in one header": {"Bearer " + s.key + ", Bearer " + s.key},
	} {
		answer, body := s.with("/v1/me", headers...)
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode, name)
		require.Equal(t, "unauthenticated", problem(t, answer, body).Reason, name)
		require.Equal(t, expected, strings.ReplaceAll(body, answer.Header.Get("X-Request-Id"), ""), name)
	}
	answer, _ = s.with("/v1/me", "bearer "+s.key)
	require.Equal(t, http.StatusOK, answer.StatusCode, "the name of the scheme has no case")
}

// Requests act in the tenant of the key, whatever else they name.
func TestCredential_DecidesTheTenant(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.key = s.keys.add("umbrella", credential.Scopes()...)
	answer, body := s.send(http.MethodGet, "/v1/me", "", "X-Tenant", "acme")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Contains(t, body, `"tenant":"umbrella"`)
	answer, body = s.send(http.MethodGet, "/v1/approvals", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Equal(t, []string{"umbrella"}, s.engine.listed)
	answer, _ = s.send(http.MethodGet, "/v1/approvals?tenant=acme", "")
	require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode, "no operation takes a tenant")
}

// A cursor continues only the list that it came from.
func TestApprovals_CursorBelongsToItsFilter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.engine.next = "row-40"
	_, body := s.send(http.MethodGet, "/v1/approvals?tool=file.*", "")
	require.Contains(t, body, `.row-40"`)
	cursor := body[strings.Index(body, `"next_cursor":"`)+len(`"next_cursor":"`) : strings.LastIndex(body, `"`)]
	answer, body := s.send(http.MethodGet, "/v1/approvals?tool=file.*&cursor="+cursor, "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Equal(t, "row-40", s.engine.from)
	for _, other := range []string{"/v1/approvals?cursor=", "/v1/approvals?tool=http.*&cursor=", "/v1/approvals?tool=file.*&can_decide=true&cursor="} {
		answer, body := s.send(http.MethodGet, other+cursor, "")
		require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode, body)
		require.Equal(t, "cursor", problem(t, answer, body).Field)
	}
	for _, second := range []string{"05", "06"} { // an hour ago is another time on each page
		answer, body := s.send(http.MethodGet, "/v1/approvals?tool=file.*&before=2026-11-27T10:00:"+second+"Z&cursor="+cursor, "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
	}
}

// Go's mux would answer an unclean path with a redirect whose page repeats it.
func TestUncleanPaths_DoNotExist(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"//v1/me", "/v1//hunter2", "/v1/./me", "/v1/me/../hunter2"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		require.NoError(t, err)
		answer, err := client.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusNotFound, answer.StatusCode, path)
		require.Empty(t, answer.Header.Get("Location"), path)
		require.NotContains(t, string(body), "hunter2")
	}
}
