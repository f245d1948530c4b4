package httpapi_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/tenancy"
)

// endedCredential is a credential that has ended, and why.
type endedCredential struct {
	credential.Credential
	reason string
}

// happened is a store of credential events.
type happened struct {
	mu     sync.Mutex
	events []identity.CredentialEvent
	// ended are the credentials that have ended, by hash.
	ended map[string]endedCredential
	// broken makes the record fail.
	broken bool
}

func (h *happened) RecordCredential(_ context.Context, e identity.CredentialEvent) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken {
		return jig.Errorf(jig.CodeUnavailable, "broken")
	}
	h.events = append(h.events, e)
	return nil
}

func (h *happened) EndedCredential(_ context.Context, id string, hash []byte) (credential.Credential, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.ended[string(hash)]; ok && e.ID == id {
		return e.Credential, e.reason, nil
	}
	return credential.Credential{}, "", jig.Errorf(jig.CodeNotFound, "none")
}

func (h *happened) CredentialEvents(_ context.Context, tenant, kind, principal, after string, limit int) (identity.CredentialEvents, error) {
	return identity.CredentialEvents{Events: []identity.CredentialEvent{{Tenant: tenant, Kind: kind, Principal: principal, Address: after, Count: int64(limit)}}}, nil
}

// taken returns what was recorded since the last time.
func (h *happened) taken() []identity.CredentialEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.events = nil }()
	return h.events
}

// refused makes sure that exactly one refusal was recorded.
func (s *site) refused(reason, kind, id, principal string) {
	s.t.Helper()
	taken := s.record.taken()
	require.Len(s.t, taken, 1)
	require.NotEmpty(s.t, taken[0].Source)
	taken[0].Source = ""
	require.Equal(s.t, identity.CredentialEvent{
		Tenant: "acme", Kind: identity.EventRefused, Reason: reason, CredentialKind: kind, CredentialID: id, Principal: principal, Address: "127.0.0.1",
	}, taken[0])
}

func TestCredentialEvents_OfRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	get := func(status int) {
		t.Helper()
		answer, body := s.send(http.MethodGet, "/v1/api-keys", "")
		require.Equal(t, status, answer.StatusCode, body)
	}
	get(http.StatusOK)
	require.Empty(t, s.record.taken())
	narrow := s.makes(`{"scopes":["run"]}`)
	s.key = narrow.Text
	get(http.StatusForbidden)
	s.refused("scope", "api_key", narrow.ID, "ana")

	ended, id, hash := credential.KeyForm.New()
	s.record.ended[string(hash)] = endedCredential{credential.Credential{Tenant: "acme", Kind: "api_key", ID: id, Principal: "ci"}, "expired"}
	s.key = ended
	get(http.StatusUnauthorized)
	s.refused("expired", "api_key", id, "ci")

	s.signIn("248", time.Hour)
	get(http.StatusForbidden)
	s.refused("scope", "access_token", issuer+"#248", issuer+"#248")
	s.tenants.change(func(all *tenancy.Settings) {
		all.Disabled = []string{"anna"}
		all.Logins = map[tenancy.Login]string{{Issuer: issuer, Subject: "248"}: "anna"}
	})
	get(http.StatusForbidden)
	s.refused("disabled", "access_token", issuer+"#248", "anna")

	cookie, id, hash := credential.LoginForm.New()
	s.record.ended[string(hash)] = endedCredential{credential.Credential{Tenant: "acme", Kind: "login", ID: id, Issuer: issuer, Subject: "248"}, "revoked"}
	answer, _ := s.cookied(http.MethodGet, "/v1/me", "", "__Host-jig_login="+cookie)
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	s.refused("revoked", "login", id, "anna")
}

func TestCredentialEvents_OfOtherOrigins(t *testing.T) {
	t.Parallel()
	s, _, _ := newEmbedSite(t)
	made := s.embeds("session", "known")
	answer, _ := s.from("https://other.example.com", made.Text, http.MethodGet, "/v1/sessions/known/result", "")
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	s.refused("cross_origin", "embed_token", made.ID, made.Principal)
	answer, _ = s.from(shop, made.Text, http.MethodGet, "/v1/sessions", "")
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	s.refused("scope", "embed_token", made.ID, made.Principal)

	s = newLoginSite(t, nil)
	cookie := s.logIn("1")
	answer, _ = s.cookied(http.MethodPost, "/v1/sessions", "{}", cookie, "Origin", "https://other.example.com")
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	e := s.record.taken()
	require.Len(t, e, 1)
	require.Equal(t, []string{"cross_origin", "login", issuer + "#248", "acme"}, []string{e[0].Reason, e[0].CredentialKind, e[0].Principal, e[0].Tenant})
}

// unsigned are identity providers that return what tokens claim although they do not count.
type unsigned struct{ httpapi.Providers }

func (unsigned) AccessToken(context.Context, string) (openid.Identity, error) {
	return openid.Identity{Tenant: "acme", Issuer: issuer, Subject: "248"}, jig.Errorf(jig.CodeNotPermitted, "the signature is wrong")
}

// Whoever does not have the secret of a credential, or a valid token, writes nothing into the record of a tenant.
func TestCredentialEvents_NotOfStrangers(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, func(o *httpapi.Options) { o.Providers = unsigned{} })
	ended, id, hash := credential.KeyForm.New()
	s.record.ended[string(hash)] = endedCredential{credential.Credential{Tenant: "acme", Kind: "api_key", ID: id, Principal: "ana"}, "revoked"}
	unknown, _, _ := credential.KeyForm.New()
	token, _, _ := credential.EmbedForm.New()
	cookie, _, _ := credential.LoginForm.New()
	otherSecret := ended[:len(ended)-4] + "aaaa"
	for _, text := range []string{unknown, otherSecret, s.key[:len(s.key)-4] + "aaaa", token, cookie, "eyJh.eyJ0.c2ln", ""} {
		answer, body := s.with("/v1/api-keys", "Bearer "+text)
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode, body)
		answer, body = s.cookied(http.MethodGet, "/v1/me", "", "__Host-jig_login="+text)
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode, body)
	}
	for _, headers := range [][]string{{"Bearer " + ended, "Bearer " + ended}, {"Basic " + ended}} {
		answer, body := s.with("/v1/me", headers...)
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode, body)
	}
	require.Empty(t, s.record.taken())
	_, _ = s.with("/v1/me", "Bearer "+ended)
	s.refused("revoked", "api_key", id, "ana")
}

// A request is refused in the same way if that cannot be recorded.
func TestCredentialEvents_CannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.record.broken = true
	s.key = s.keys.add("acme", credential.ScopeRun)
	answer, body := s.send(http.MethodGet, "/v1/api-keys", "")
	require.Equal(t, "scope", problem(t, answer, body).Reason)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
}

// doer is who did something, from which address.
type doer struct{ principal, address string }

// doers is what the store of credentials is told about who does what.
type doers struct {
	*credentials

	did  sync.Mutex
	said map[string]doer
}

func (d *doers) say(ctx context.Context, what, principal string) {
	d.did.Lock()
	defer d.did.Unlock()
	d.said[what] = doer{principal, identity.AddressOf(ctx)}
}

func (d *doers) CreateCredential(ctx context.Context, n credential.New) (credential.Credential, error) {
	d.say(ctx, "create "+n.Kind, n.CreatedBy)
	return d.credentials.CreateCredential(ctx, n)
}

func (d *doers) RevokeCredential(ctx context.Context, tenant string, c identity.CredentialRef, by string) error {
	d.say(ctx, "revoke "+c.Kind, by)
	return d.credentials.RevokeCredential(ctx, tenant, c, by)
}

// The store records changes itself. It is told who makes them, and the address of the client.
func TestCredentialEvents_OfChanges(t *testing.T) {
	t.Parallel()
	d := &doers{credentials: newCredentials(), said: map[string]doer{}}
	s := newSiteWith(t, func(o *httpapi.Options) { o.Credentials = d })
	s.key = d.add("acme", credential.Scopes()...)
	s.tenants.change(func(all *tenancy.Settings) {
		all.Logins = map[tenancy.Login]string{{Issuer: issuer, Subject: "248"}: "anna"}
	})
	made := s.makes(`{}`)
	_, _ = s.send(http.MethodPost, "/v1/api-keys/"+made.ID+"/revoke", "")
	answer, body := s.send(http.MethodPost, "/v1/embed-tokens", `{"tool":"file.list","origin":"`+shop+`"}`)
	require.Equal(t, http.StatusCreated, answer.StatusCode, body)
	var token credential.Credential
	require.NoError(t, json.Unmarshal([]byte(body), &token))
	_, _ = s.send(http.MethodPost, "/v1/embed-tokens/"+token.ID+"/revoke", "")
	cookie := s.logIn("1")
	answer, body, _ = s.visit(http.MethodPost, "/v1/logout", url.Values{}, "Cookie", cookie)
	require.Equal(t, http.StatusNoContent, answer.StatusCode, body)
	ana, anna := doer{"ana", "127.0.0.1"}, doer{"anna", "127.0.0.1"}
	require.Equal(t, map[string]doer{
		"create api_key": ana, "revoke api_key": ana, "create embed_token": ana, "revoke embed_token": ana, "create login": anna, "revoke login": anna,
	}, d.said, strings.Join(slices.Sorted(maps.Keys(d.said)), " "))
}

func TestCredentialEvents_List(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	answer, body := s.send(http.MethodGet, "/v1/credential-events?kind=refused&principal=ben&cursor=c&limit=7", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	var page identity.CredentialEvents
	require.NoError(t, json.Unmarshal([]byte(body), &page))
	require.Equal(t, []identity.CredentialEvent{{Tenant: "acme", Kind: "refused", Principal: "ben", Address: "c", Count: 7}}, page.Events)
	answer, body = s.send(http.MethodGet, "/v1/credential-events?kind=other", "")
	require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode, body)
	s.key = s.keys.add("acme", slices.DeleteFunc(credential.Scopes(), func(scope string) bool { return scope == credential.ScopeManage })...)
	answer, body = s.send(http.MethodGet, "/v1/credential-events", "")
	require.Equal(t, "scope", problem(t, answer, body).Reason)
}
