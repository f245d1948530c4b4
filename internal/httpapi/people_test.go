package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/tenancy"
)

const issuer = "https://login.example.com"

// signIn makes a token that is valid for a time, and has the site use it.
func (s *site) signIn(subject string, lasts time.Duration, groups ...string) {
	(*s.issued)["token of "+subject] = openid.Identity{
		Tenant: "acme", Issuer: issuer, Subject: subject, Name: "Ana Ferreira", Groups: groups, ExpiresAt: time.Now().Add(lasts).UTC(),
	}
	s.key = "token of " + subject
}

// gives gives a role to the members of a group.
func (s *site) gives(role, group string) {
	permissions, ok := tenancy.ShippedRole(role)
	require.True(s.t, ok)
	s.tenants.change(func(all *tenancy.Settings) {
		all.Roles = append(all.Roles, tenancy.Role{Name: role, Permissions: permissions, Groups: []string{group}})
		all.LoginGroups = append(all.LoginGroups, tenancy.LoginGroup{Issuer: issuer, Value: group + "-team", Group: group})
	})
}

func TestMe_OfAnAccessToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gives("reviewer", "finance")
	s.signIn("248", time.Hour, "finance-team", "others")
	answer, body := s.send(http.MethodGet, "/v1/me", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	expires, err := json.Marshal((*s.issued)[s.key].ExpiresAt)
	require.NoError(t, err)
	require.JSONEq(t, `{"tenant":"acme","principal":"https://login.example.com#248","name":"Ana Ferreira","groups":["finance"],"roles":["reviewer"],
		"permissions":["api.decide","api.read"],"proof":"claimed","installation":"ins_1",
		"credential":{"kind":"access_token","id":"https://login.example.com#248","scopes":["decide","read"],"expires_at":`+string(expires)+`}}`, body)
	s.key = "another token"
	answer, body = s.send(http.MethodGet, "/v1/me", "")
	require.Equal(t, "unauthenticated", problem(t, answer, body).Reason)
}

// What people may do follows from their roles now. Sessions get the groups of the token, and workers add the rest.
func TestRoles_SayWhatPeopleMayDo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var got jig.Principal
	s.engine.start = func(o client.StartOptions) (client.Started, error) {
		got = o.Principal
		return client.Started{SessionID: "acme.one"}, nil
	}
	s.signIn("248", time.Hour, "makers-team")
	answer, body := s.send(http.MethodPost, "/v1/sessions", `{"agent":"a"}`)
	p := problem(t, answer, body)
	require.Equal(t, []any{http.StatusForbidden, "scope"}, []any{p.Status, p.Reason})
	require.Contains(t, p.Detail, "api.run")
	require.Contains(t, p.Hint, "author, operator, owner")
	answer, _ = s.send(http.MethodGet, "/v1/me", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, "everybody may ask who they are")

	s.gives("author", "makers")
	answer, body = s.send(http.MethodPost, "/v1/sessions", `{"agent":"a"}`)
	require.Equal(t, http.StatusCreated, answer.StatusCode, body)
	require.Equal(t, jig.Principal{ID: issuer + "#248", Groups: []string{"makers"}, Claimed: true}, got)
	answer, body = s.send(http.MethodPost, "/v1/approvals/other/decision", `{"call":"1.1","answer":"approve","digest":"d"}`)
	require.Equal(t, "scope", problem(t, answer, body).Reason)
}

// A principal whom the document disables is refused, whatever the credential is, and its streams end.
func TestDisabled_EndsEverything(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted)
	stream := s.follow()
	stream.until(t, "")
	s.tenants.change(func(all *tenancy.Settings) { all.Disabled = []string{"ana"} })
	stream.rest(t)
	answer, body := s.send(http.MethodGet, "/v1/me", "")
	p := problem(t, answer, body)
	require.Equal(t, []any{http.StatusForbidden, "disabled"}, []any{p.Status, p.Reason})
	s.tenants.change(func(all *tenancy.Settings) { all.Disabled = nil })
	answer, _ = s.send(http.MethodGet, "/v1/me", "")
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func TestDisabled_EndsTheStreamsOfSignedInPeople(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gives("reader", "finance")
	s.log.add(jig.EventSessionStarted)
	s.signIn("248", time.Hour, "finance-team")
	stream := s.follow()
	stream.until(t, "")
	s.tenants.change(func(all *tenancy.Settings) { all.Disabled = []string{"https://login.example.com#248"} })
	stream.rest(t)
}

func TestPeople_AreListed(t *testing.T) {
	t.Parallel()
	s, library := librarySite(t)
	s.tenants.change(func(all *tenancy.Settings) {
		all.Directory = tenancy.Directory{People: []tenancy.DirectoryPerson{{Principal: "ben", Disabled: true}}}
	})
	_, body := s.send(http.MethodGet, "/v1/people", "")
	require.Contains(t, body, `"principal":"ben","disabled":true`)

	for path, input := range map[string]string{
		"/v1/people:disable": `{"person":"ben","disabled":true}`, "/v1/people:enable": `{"person":"ben","disabled":false}`,
	} {
		answer, body := s.send(http.MethodPost, path, `{"person":"ben"}`)
		require.Contains(t, []int{http.StatusOK, http.StatusAccepted}, answer.StatusCode, body)
		require.Equal(t, "tenants.set_disabled", library.called.Tool)
		require.JSONEq(t, input, string(library.called.Input))
	}
}

// A stream ends with the token that it was opened with.
func TestStream_EndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gives("reader", "finance")
	s.log.add(jig.EventSessionStarted)
	s.signIn("248", time.Second, "finance-team")
	stream := s.follow()
	require.Equal(t, http.StatusOK, stream.answer.StatusCode)
	stream.rest(t)
}

// Until a worker has opened a session, nobody knows for whom it acts, so nobody can tell whether a decision is about one's own session.
func TestDecide_NotBeforeTheSessionIsKnown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for path, body := range map[string]string{
		"decision": `{"call":"1.1","answer":"approve","digest":"d"}`, "delegate": `{"call":"1.1","to":"ben"}`,
	} {
		answer, said := s.send(http.MethodPost, "/v1/approvals/just-started/"+path, body)
		require.Equal(t, "session", problem(t, answer, said).Field)
		require.Equal(t, http.StatusNotFound, answer.StatusCode)
	}
	_, said := s.send(http.MethodPost, "/v1/approvals:decide", `{"decisions":[{"session_id":"just-started","call":"1.1","answer":"approve","digest":"d"}]}`)
	require.Contains(t, said, `"code":"NOT_FOUND"`)
	require.Empty(t, s.engine.decided)
}

// A stream ends when its principal loses the permission for it, and when the login becomes another person's. API keys do not depend on roles.
func TestStream_LosesItsRole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted)
	programs := s.follow()
	programs.until(t, "")
	s.gives("reader", "finance")
	s.signIn("248", time.Hour, "finance-team")
	stream := s.follow()
	stream.until(t, "id: 1")
	s.tenants.change(func(all *tenancy.Settings) {
		all.Logins = map[tenancy.Login]string{{Issuer: issuer, Subject: "248"}: "ana"}
	})
	stream.rest(t)
	stream = s.follow()
	stream.until(t, "id: 1")
	s.tenants.change(func(all *tenancy.Settings) { all.Roles = nil })
	stream.rest(t)
	answer, _ := s.open(http.MethodGet, "/v1/sessions/known/events", "", "Accept", "text/event-stream")
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	s.log.add(jig.EventSessionCompleted)
	require.Contains(t, programs.rest(t), "id: 2")
}
