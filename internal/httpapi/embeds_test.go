package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

const shop = "https://shop.example.com"

// caller is an engine for single calls.
type caller struct {
	httpapi.Calls

	mu    sync.Mutex
	asked []protocol.CallInput
	ids   []string
}

func (c *caller) StartCall(_ context.Context, input protocol.CallInput, id string) (client.Started, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	existing := slices.Contains(c.ids, id)
	c.asked, c.ids = append(c.asked, input), append(c.ids, id)
	return client.Started{SessionID: jig.SessionID(input.Tenant, id), ClientID: id, Existing: existing}, nil
}

func (c *caller) Record(_ context.Context, _, session, call string) (protocol.CallRecord, error) {
	return protocol.CallRecord{SessionID: session, Call: call, Status: jig.CallSucceeded}, nil
}

// newEmbedSite is a site with embed tokens.
func newEmbedSite(t *testing.T) (*site, *credentials, *caller) {
	t.Helper()
	calls := &caller{}
	s := newSiteWith(t, func(o *httpapi.Options) { o.Engine.Calls = calls })
	return s, s.keys, calls
}

// madeEmbed is the answer to the creation of an embed token.
type madeEmbed struct {
	credential.Credential
	Text string `json:"embed_token"`
}

// embeds creates an embed token for shop with the site's key.
func (s *site) embeds(what, id string) madeEmbed {
	s.t.Helper()
	answer, body := s.send(http.MethodPost, "/v1/embed-tokens", fmt.Sprintf(`{%q:%q,"origin":%q}`, what, id, shop))
	require.Equal(s.t, http.StatusCreated, answer.StatusCode, body)
	var made madeEmbed
	require.NoError(s.t, json.Unmarshal([]byte(body), &made))
	return made
}

// from makes a request with an embed token from a page of an origin.
func (s *site) from(origin, token, method, path, body string, headers ...string) (reply, string) {
	s.t.Helper()
	headers = append(headers, "Authorization", "Bearer "+token)
	if origin != "" {
		headers = append(headers, "Origin", origin)
	}
	return s.send(method, path, body, headers...)
}

func TestEmbed_ShowsItsSession(t *testing.T) {
	t.Parallel()
	s, list, _ := newEmbedSite(t)
	s.log.add(jig.EventPassStarted)
	made := s.embeds("session", "known")
	require.Equal(t, []string{"acme", "ana", "acme.known", shop}, []string{made.Tenant, made.Principal, made.Session, made.Origin})
	for _, path := range []string{"/v1/sessions/known/result", "/v1/sessions/acme.known/events"} {
		answer, body := s.from(shop, made.Text, http.MethodGet, path, "")
		require.Less(t, answer.StatusCode, 300, body)
		require.Equal(t, shop, answer.Header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "Origin", answer.Header.Get("Vary"))
		require.Empty(t, answer.Header.Get("Access-Control-Allow-Credentials"))
	}
	// Other sessions are answered like unknown ones.
	_, unknown := s.from(shop, made.Text, http.MethodGet, "/v1/sessions/nobody/result", "")
	for _, id := range []string{"known0", "acme.s2", "umbrella.known", "acme.embed-" + made.ID + "-a", "ses_1"} {
		answer, body := s.from(shop, made.Text, http.MethodGet, "/v1/sessions/"+id+"/result", "")
		p := problem(t, answer, body)
		require.Equal(t, http.StatusNotFound, p.Status)
		require.Equal(t, strings.ReplaceAll(unknown, requestID(t, unknown), ""), strings.ReplaceAll(body, p.RequestID, ""))
	}
	answer, body := s.from(shop, list.other(t), http.MethodGet, "/v1/sessions/known/result", "")
	require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status, "it exists")
}

// other stores a token for a session that is not known, and returns its text.
func (s *credentials) other(t *testing.T) string {
	t.Helper()
	text, id, hash := credential.EmbedForm.New()
	_, err := s.CreateCredential(t.Context(), credential.New{Credential: credential.Credential{
		Tenant: "acme", ID: id, Kind: identity.KindEmbed, Session: "acme.other", Origin: shop, Principal: "ana", Scopes: credential.EmbedScopes(""), MadeWith: identity.CredentialRef{Kind: "api_key", ID: "k"},
	}, Hash: hash})
	require.NoError(t, err)
	return text
}

func requestID(t *testing.T, body string) string {
	t.Helper()
	var p described
	require.NoError(t, json.Unmarshal([]byte(body), &p), body)
	return p.RequestID
}

// A token does nothing but what it is for, in no operation.
func TestEmbed_NothingElse(t *testing.T) {
	t.Parallel()
	s, _, _ := newEmbedSite(t)
	one, page := s.embeds("session", "known"), s.embeds("tool", "orders.pay")
	document, err := httpapi.Document()
	require.NoError(t, err)
	var described struct {
		Paths map[string]map[string]struct {
			ID    string `json:"operationId"` //nolint:tagliatelle // OpenAPI's own name
			Embed string `json:"x-embed"`     //nolint:tagliatelle // names of extensions begin with x-
			// Security is empty if everybody may use the operation.
			Security []any
		}
	}
	require.NoError(t, json.Unmarshal(document, &described))
	takes := map[string][]string{}
	for path, methods := range described.Paths {
		for method, op := range methods {
			if op.Embed != "" {
				takes[op.Embed] = append(takes[op.Embed], op.ID)
			}
			for kind, text := range map[string]string{"session": one.Text, "tool": page.Text} {
				if kind == op.Embed || len(op.Security) == 0 {
					continue
				}
				body := ""
				if method != "get" {
					body = "{}"
				}
				answer, content := s.from(shop, text, strings.ToUpper(method), strings.NewReplacer("{session}", "known", "{tool}", "orders.pay").Replace(path), body)
				require.Equal(t, http.StatusForbidden, answer.StatusCode, "%s: %s", op.ID, content)
				require.Equal(t, "scope", problem(t, answer, content).Reason)
			}
		}
	}
	require.ElementsMatch(t, []string{"get-session", "get-result", "get-transcript", "get-events"}, takes["session"])
	require.ElementsMatch(t, []string{"call-tool", "get-call"}, takes["tool"])
}

func TestEmbed_CallsItsTool(t *testing.T) {
	t.Parallel()
	s, _, calls := newEmbedSite(t)
	page := s.embeds("tool", "orders.pay")
	answer, body := s.from(shop, page.Text, http.MethodPost, "/v1/tools/orders.pay/calls", `{"input":{},"source":"cli"}`, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusAccepted, answer.StatusCode, body)
	asked := calls.asked[0]
	require.Equal(t, "ana", asked.Principal.ID)
	require.Equal(t, jig.SourceWeb, asked.Source, "nobody typed it")
	require.Empty(t, asked.Key, "keys of pages are their own")
	var got struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.True(t, strings.HasPrefix(got.SessionID, "acme.embed-"+page.ID+"-"))
	answer, body = s.from(shop, page.Text, http.MethodPost, "/v1/tools/orders.pay/calls", `{"input":{}}`, "Idempotency-Key", "k1")
	require.Equal(t, "true", answer.Header.Get("Idempotent-Replayed"), body)
	answer, body = s.from(shop, page.Text, http.MethodGet, "/v1/sessions/"+got.SessionID+"/call?call=1.1", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)

	for path, code := range map[string]jig.Code{
		"/v1/tools/orders.refund/calls": jig.CodeToolNotFound, "/v1/tools/nothing/calls": jig.CodeToolNotFound, "/v1/tools/Not a tool/calls": jig.CodeToolNotFound,
	} {
		answer, body := s.from(shop, page.Text, http.MethodPost, strings.ReplaceAll(path, " ", "%20"), `{"input":{}}`)
		p := problem(t, answer, body)
		require.Equal(t, []string{"404", string(code)}, []string{fmt.Sprint(p.Status), p.Code}, path)
	}
	other := s.embeds("tool", "orders.pay")
	for _, id := range []string{"s1", got.SessionID, "nobody"} {
		answer, body := s.from(shop, other.Text, http.MethodGet, "/v1/sessions/"+id+"/call?call=1.1", "")
		require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status, id)
	}
	answer, body = s.from(shop, page.Text, http.MethodPost, "/v1/tools/orders.pay/calls", `{"id":"s1","input":{}}`)
	require.Equal(t, "id", problem(t, answer, body).Field)
}

// A stolen token is worth nothing to pages of other origins, and none is taken from the address or a cookie.
func TestEmbed_OfAnotherOrigin(t *testing.T) {
	t.Parallel()
	s, _, _ := newEmbedSite(t)
	made := s.embeds("session", "known")
	for _, origin := range []string{"", "null", "https://evil.example.com", shop + ":8443", shop + "/", "http://shop.example.com", strings.ToUpper(shop), shop + ", " + shop} {
		answer, body := s.from(origin, made.Text, http.MethodGet, "/v1/sessions/known/result", "")
		p := problem(t, answer, body)
		require.Equal(t, []any{http.StatusForbidden, "cross_origin"}, []any{p.Status, p.Reason}, origin)
		require.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"), origin)
	}
	answer, body := s.from(shop, made.Text, http.MethodGet, "/v1/sessions/known/result?access_token="+made.Text, "")
	require.Equal(t, http.StatusUnprocessableEntity, problem(t, answer, body).Status)
	s.key = ""
	for _, name := range []string{"token", "access_token", "embed_token"} {
		answer, body := s.send(http.MethodGet, "/v1/sessions/known/result?"+name+"="+made.Text, "", "Origin", shop, "Cookie", "__Host-jig_login="+made.Text)
		require.Equal(t, "unauthenticated", problem(t, answer, body).Reason)
		require.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"))
	}
}

// Nobody gives a page more than they have, and what they lose, the page loses.
func TestEmbed_GivesNothingMore(t *testing.T) {
	t.Parallel()
	s, list, _ := newEmbedSite(t)
	all := s.key
	for _, scope := range []string{credential.ScopeRead, credential.ScopeRun, credential.ScopeDecide, credential.ScopeManage} {
		s.key = s.keys.add("acme", scope)
		answer, body := s.send(http.MethodPost, "/v1/embed-tokens", `{"session":"known","origin":"`+shop+`"}`)
		require.Equal(t, "scope", problem(t, answer, body).Reason, scope)
	}
	s.key = s.keys.add("acme", credential.ScopeRead, credential.ScopeRun)
	require.Nil(t, list.until)
	s.embeds("session", "known")
	s.key = all
	for body, field := range map[string]string{
		`{"origin":"https://shop.example.com"}`:                                             "session",
		`{"origin":"https://shop.example.com","session":"known","tool":"orders.pay"}`:       "tool",
		`{"origin":"https://shop.example.com/","session":"known"}`:                          "origin",
		`{"origin":"*","tool":"orders.pay"}`:                                                "origin",
		`{"origin":"https://shop.example.com","session":"known","tenant":"umbrella"}`:       "body.tenant",
		`{"origin":"https://shop.example.com","session":"known","expires_at":"2030-01-01"}`: "body.expires_at",
	} {
		answer, content := s.send(http.MethodPost, "/v1/embed-tokens", body)
		require.Equal(t, field, problem(t, answer, content).Field, "%s: %s", body, content)
	}

	s.gives("author", "finance")
	s.signIn("248", time.Hour, "finance-team")
	page := s.embeds("tool", "orders.pay")
	require.Equal(t, (*s.issued)[s.key].ExpiresAt, *list.until, "it ends with the access token")
	answer, body := s.from(shop, page.Text, http.MethodPost, "/v1/tools/orders.pay/calls", `{"input":{}}`)
	require.Equal(t, http.StatusAccepted, answer.StatusCode, body)
	s.tenants.change(func(all *tenancy.Settings) { all.Roles = nil })
	answer, body = s.from(shop, page.Text, http.MethodPost, "/v1/tools/orders.pay/calls", `{"input":{}}`)
	require.Equal(t, "scope", problem(t, answer, body).Reason)
	s.tenants.change(func(all *tenancy.Settings) { all.Disabled = []string{issuer + "#248"} })
	answer, body = s.from(shop, page.Text, http.MethodPost, "/v1/tools/orders.pay/calls", `{"input":{}}`)
	require.Equal(t, "disabled", problem(t, answer, body).Reason)
}

func TestEmbed_Revoked(t *testing.T) {
	t.Parallel()
	s, _, _ := newEmbedSite(t)
	s.log.add(jig.EventPassStarted)
	owner, made := s.key, s.embeds("session", "known")
	answer, body := s.send(http.MethodGet, "/v1/embed-tokens", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Contains(t, body, made.ID)
	require.NotContains(t, body, made.Text)
	s.key = made.Text
	open := s.follow("Origin", shop)
	open.until(t, "event: pass.started")
	s.key = s.keys.add("umbrella", credential.Scopes()...)
	answer, body = s.send(http.MethodPost, "/v1/embed-tokens/"+made.ID+"/revoke", "")
	require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status, "it is another tenant's")
	s.key = owner
	answer, body = s.send(http.MethodPost, "/v1/embed-tokens/"+made.ID+"/revoke", "")
	require.Equal(t, http.StatusNoContent, answer.StatusCode, body)
	open.rest(t) // it ends
	answer, body = s.from(shop, made.Text, http.MethodGet, "/v1/sessions/known/result", "")
	require.Equal(t, "unauthenticated", problem(t, answer, body).Reason)
}

// A browser asks before it sends a token. It gets a yes for what tokens can do, whether or not there is a token for its origin.
func TestEmbed_Preflight(t *testing.T) {
	t.Parallel()
	s, _, _ := newEmbedSite(t)
	ask := func(origin, method, path string) reply {
		t.Helper()
		s.key = ""
		answer, _ := s.send(http.MethodOptions, path, "", "Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", "authorization")
		return answer
	}
	s.embeds("session", "known")
	for path, method := range map[string]string{"/v1/sessions/known/events": http.MethodGet, "/v1/tools/orders.pay/calls": http.MethodPost} {
		for _, origin := range []string{shop, "https://other.example.com", "null"} {
			answer := ask(origin, method, path)
			require.Equal(t, http.StatusNoContent, answer.StatusCode)
			require.Equal(t, origin, answer.Header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, method, answer.Header.Get("Access-Control-Allow-Methods"))
			require.Contains(t, answer.Header.Get("Access-Control-Allow-Headers"), "Authorization")
			require.Empty(t, answer.Header.Get("Access-Control-Allow-Credentials"))
		}
	}
	for _, no := range [][3]string{
		{shop, http.MethodPost, "/v1/embed-tokens"},
		{shop, http.MethodPost, "/v1/approvals/s1/decision"},
		{shop, http.MethodPost, "/v1/sessions"},
		{shop, http.MethodGet, "/v1/nothing"},
		{shop, http.MethodPut, "/v1/sessions/known/events"},
		{shop, "*", "/v1/sessions/known/events"},
	} {
		answer := ask(no[0], no[1], no[2])
		require.Equal(t, http.StatusForbidden, answer.StatusCode, no)
		require.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"), no)
	}
	answer, _ := s.send(http.MethodOptions, "/v1/sessions/known/events", "")
	require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode, "it is not a question of a browser")
}
