package e2e_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

const (
	shop = "https://shop.example.com"
	evil = "https://evil.example.com"
)

// embeddedPage is a page of another site with an embed token.
type embeddedPage struct {
	apiClient

	origin string
}

// madeToken is the answer to the creation of an embed token.
type madeToken struct {
	ID   string
	Text string `json:"embed_token"`
}

// embeds creates an embed token for the pages of shop.
func (c apiClient) embeds(what, id string) madeToken {
	c.t.Helper()
	answer, body := c.send(http.MethodPost, "/v1/embed-tokens", map[string]any{what: id, "origin": shop})
	require.Equal(c.t, http.StatusCreated, answer.StatusCode, string(body))
	var made madeToken
	require.NoError(c.t, json.Unmarshal(body, &made))
	return made
}

// answers makes sure that a request of the page is answered with a status.
func (p embeddedPage) answers(status int, method, path string, body any, headers ...string) string {
	p.t.Helper()
	answer, content := p.send(method, path, body, append(headers, "Origin", p.origin)...)
	require.Equal(p.t, status, answer.StatusCode, "%s %s: %s", method, path, content)
	return string(content)
}

// A page of another site shows one session or calls one tool, on every server, with a token that is worth nothing elsewhere and ends at once.
func TestEmbed_PagesOfOthers(t *testing.T) {
	t.Parallel()
	o := joinTenantEnv(t)
	one, two := o.serve(), o.serve()
	ana := apiClient{one, o.apiKey(o.tenant, everything()...)}
	for _, id := range []string{"s1", "s2"} {
		answer, body := ana.send(http.MethodPost, "/v1/sessions", map[string]any{"id": id, "document": writer()})
		require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	}
	asked := ana.waits("s1")

	made := ana.embeds("session", "s1")
	shown := embeddedPage{apiClient{two, made.Text}, shop}
	for _, path := range []string{"", "/events", "/transcript"} {
		shown.answers(http.StatusOK, http.MethodGet, "/v1/sessions/s1"+path, nil)
	}
	shown.answers(http.StatusAccepted, http.MethodGet, "/v1/sessions/"+o.tenant+".s1/result", nil)
	preflight := func(origin string) response {
		t.Helper()
		answer, _ := apiClient{two, ""}.send(http.MethodOptions, "/v1/sessions/s1/events", nil, "Origin", origin, "Access-Control-Request-Method", "GET")
		return answer
	}
	require.Equal(t, shop, preflight(shop).Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, evil, preflight(evil).Header.Get("Access-Control-Allow-Origin"), "it does not tell who has a token")

	// Another origin, another session, another tenant, a query, and everything that changes something.
	require.Contains(t, embeddedPage{shown.apiClient, evil}.answers(http.StatusForbidden, http.MethodGet, "/v1/sessions/s1", nil), `"reason":"cross_origin"`)
	shown.answers(http.StatusNotFound, http.MethodGet, "/v1/sessions/s2", nil)
	shown.answers(http.StatusNotFound, http.MethodGet, "/v1/sessions/nobody", nil)
	stranger := apiClient{one, o.apiKey(o.tenant+"x", everything()...)}
	answer, body := stranger.send(http.MethodPost, "/v1/embed-tokens", map[string]any{"session": o.tenant + ".s1", "origin": shop})
	require.Equal(t, http.StatusNotFound, answer.StatusCode, string(body))
	embeddedPage{apiClient{two, stranger.embeds("tool", "file.list").Text}, shop}.answers(http.StatusNotFound, http.MethodGet, "/v1/sessions/"+o.tenant+".s1/call?call=1.1", nil)
	embeddedPage{apiClient{two, ""}, shop}.answers(http.StatusUnauthorized, http.MethodGet, "/v1/sessions/s1?embed_token="+url.QueryEscape(made.Text), nil)
	shown.answers(http.StatusForbidden, http.MethodPost, "/v1/approvals/s1/decision", map[string]any{"call": asked.Call, "answer": "approve", "digest": asked.Digest})
	shown.answers(http.StatusForbidden, http.MethodPost, "/v1/embed-tokens", map[string]any{"session": "s1", "origin": shop})
	shown.answers(http.StatusForbidden, http.MethodPost, "/v1/api-keys", map[string]any{})
	shown.answers(http.StatusForbidden, http.MethodPost, "/v1/sessions/s1/messages", map[string]any{"text": "hello"})
	shown.answers(http.StatusForbidden, http.MethodGet, "/v1/sessions", nil)
	require.Equal(t, asked, ana.waits("s1"), "nothing was changed")

	// A page calls its tool and reads the call, and no other.
	form := embeddedPage{apiClient{two, ana.embeds("tool", "file.list").Text}, shop}
	var called struct {
		SessionID string `json:"session_id"`
		Status    jig.CallStatus
	}
	got := form.answers(http.StatusOK, http.MethodPost, "/v1/tools/file.list/calls", map[string]any{"input": map[string]any{"path": "."}}, "Prefer", "wait=20", "Idempotency-Key", "k1")
	require.NoError(t, json.Unmarshal([]byte(got), &called))
	require.Equal(t, jig.CallSucceeded, called.Status)
	form.answers(http.StatusOK, http.MethodGet, "/v1/sessions/"+called.SessionID+"/call?call=1.1", nil)
	form.answers(http.StatusNotFound, http.MethodGet, "/v1/sessions/s1/call?call=1.1", nil)
	form.answers(http.StatusNotFound, http.MethodPost, "/v1/tools/file.read/calls", map[string]any{"input": map[string]any{"path": "a"}})
	second := embeddedPage{apiClient{one, ana.embeds("tool", "file.list").Text}, shop}
	second.answers(http.StatusNotFound, http.MethodGet, "/v1/sessions/"+called.SessionID+"/call?call=1.1", nil)

	// Revoking it on one server ends its stream on the other one.
	stream, content := shown.open(http.MethodGet, "/v1/sessions/s1/events", nil, "Accept", "text/event-stream", "Origin", shop)
	require.Equal(t, http.StatusOK, stream.StatusCode)
	lines := bufio.NewScanner(content)
	require.True(t, lines.Scan())
	answer, body = ana.send(http.MethodPost, "/v1/embed-tokens/"+made.ID+"/revoke", nil)
	require.Equal(t, http.StatusNoContent, answer.StatusCode, string(body))
	for lines.Scan() {
	}
	require.NoError(t, lines.Err(), "the server ends it")
	shown.answers(http.StatusUnauthorized, http.MethodGet, "/v1/sessions/s1", nil)

	// A token ends with the key that made it.
	brief := apiClient{one, o.apiKey(o.tenant, append(everything(), "--expires", "2s")...)}
	last := embeddedPage{apiClient{two, brief.embeds("session", "s1").Text}, shop}
	require.True(t, eventually(t.Context(), patience, func() bool {
		answer, _ := last.send(http.MethodGet, "/v1/sessions/s1", nil, "Origin", shop)
		return answer.StatusCode == http.StatusUnauthorized
	}))
}
