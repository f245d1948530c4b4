package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/tenancy"
)

// madeKey is the answer to the creation of a key.
type madeKey struct {
	credential.Credential
	Text string `json:"key"`
}

// makes creates an API key.
func (s *site) makes(body string) madeKey {
	s.t.Helper()
	answer, content := s.send(http.MethodPost, "/v1/api-keys", body)
	require.Equal(s.t, http.StatusCreated, answer.StatusCode, content)
	var made madeKey
	require.NoError(s.t, json.Unmarshal([]byte(content), &made))
	return made
}

func TestAPIKeys_CreateAndRevoke(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gives("owner", "finance")
	s.signIn("248", time.Hour, "finance-team")
	owner := s.key
	made := s.makes(`{"name":"nightly build"}`)
	require.Equal(t, []string{"acme", issuer + "#248", issuer + "#248", "nightly build"}, []string{made.Tenant, made.Principal, made.CreatedBy, made.Name})
	require.Equal(t, credential.DefaultScopes(), made.Scopes)
	program := s.makes(`{"principal":"ci","scopes":["read"]}`)
	require.Equal(t, "ci", program.Principal)

	s.key = made.Text
	answer, body := s.send(http.MethodGet, "/v1/api-keys", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Contains(t, body, program.ID)
	require.NotContains(t, body, program.Text)
	answer, body = s.send(http.MethodPost, "/v1/api-keys/"+program.ID+"/revoke", "")
	require.Equal(t, "scope", problem(t, answer, body).Reason)
	s.key = s.keys.add("umbrella", credential.Scopes()...)
	answer, body = s.send(http.MethodPost, "/v1/api-keys/"+program.ID+"/revoke", "")
	require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status, "it is another tenant's")
	s.key = owner
	answer, body = s.send(http.MethodPost, "/v1/api-keys/"+program.ID+"/revoke", "")
	require.Equal(t, http.StatusNoContent, answer.StatusCode, body)
	s.key = program.Text
	answer, body = s.send(http.MethodGet, "/v1/me", "")
	require.Equal(t, "unauthenticated", problem(t, answer, body).Reason)
}

// Nobody gets more with a key than they have, nor the name of another person.
func TestAPIKeys_GiveNothingMore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.tenants.change(func(all *tenancy.Settings) {
		all.Logins = map[tenancy.Login]string{{Issuer: issuer, Subject: "1"}: "ben"}
		all.Directory.People = []tenancy.DirectoryPerson{{Principal: "cleo", Keys: []tenancy.DirectoryKey{{ID: "cleo-2026"}}}}
		all.People = []jig.Principal{{ID: "dora", Groups: []string{"finance"}}}
		all.Owners = &tenancy.Owners{Approvers: jig.Approvers{People: []string{"emil"}}}
	})
	before := len(s.keys.list)
	s.key = s.keys.add("acme", credential.ScopeManage, credential.ScopeRead, credential.ScopeDecide)
	for body, field := range map[string]string{
		`{"scopes":["run"]}`:                                            "scopes",
		`{"principal":"ci"}`:                                            "scopes",
		`{"principal":"ci","scopes":["decide"]}`:                        "principal",
		`{"principal":"ben","scopes":["read"]}`:                         "principal",
		`{"principal":"cleo","scopes":["read"]}`:                        "principal",
		`{"principal":"dora","scopes":["read"]}`:                        "principal",
		`{"principal":"emil","scopes":["read"]}`:                        "principal",
		`{"principal":"https://login.example.com#2","scopes":["read"]}`: "principal",
		`{"scopes":["read"],"expires_at":"2020-01-01T00:00:00Z"}`:       "expires_at",
		`{"scopes":["everything"]}`:                                     "scopes",
		`{"scopes":["read"],"principal":"a\nb"}`:                        "principal",
		`{"scopes":["read"],"principal":"ci "}`:                         "principal",
		`{"scopes":["read"],"principal":"c\u200bi"}`:                    "principal",
		`{"scopes":["read"],"principal":"d\u043era"}`:                   "principal",
		`{"scopes":["read"],"principal":"Dora"}`:                        "principal",
		`{"scopes":["read"],"tenant":"umbrella"}`:                       "body.tenant",
		`{"scopes":["read"],"created_by":"ben"}`:                        "body.created_by",
	} {
		answer, content := s.send(http.MethodPost, "/v1/api-keys", body)
		require.Equal(t, field, problem(t, answer, content).Field, "%s: %s", body, content)
	}
	require.Len(t, s.keys.list, before+1)
	require.Equal(t, "ana", s.makes(`{"scopes":["decide"]}`).Principal)
	require.Equal(t, "ci", s.makes(`{"scopes":["read"],"principal":"ci"}`).Principal, "the document does not know it")
}

// A key that ends makes no keys that last longer. People do, because their keys are for programs.
func TestAPIKeys_EndWithTheKeyThatMakesThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	text, id, hash := credential.KeyForm.New()
	ends := time.Now().Add(time.Hour).UTC()
	s.keys.put(hash, credential.Credential{ID: id, Kind: identity.KindAPIKey, Tenant: "acme", Principal: "ana", Scopes: credential.Scopes(), ExpiresAt: &ends})
	s.key = text
	require.WithinDuration(t, ends, *s.makes(`{}`).ExpiresAt, 0)
	earlier := ends.Add(-time.Minute)
	require.WithinDuration(t, earlier, *s.makes(`{"expires_at":"` + earlier.Format(time.RFC3339Nano) + `"}`).ExpiresAt, 0)
	answer, body := s.send(http.MethodPost, "/v1/api-keys", `{"expires_at":"`+ends.Add(time.Second).Format(time.RFC3339Nano)+`"}`)
	require.Equal(t, "expires_at", problem(t, answer, body).Field)
	s.gives("owner", "finance")
	s.signIn("248", time.Hour, "finance-team")
	require.Nil(t, s.makes(`{}`).ExpiresAt)
}
