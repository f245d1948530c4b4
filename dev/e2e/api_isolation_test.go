package e2e_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// described is an operation of the OpenAPI document.
type described struct {
	ID         string `json:"operationId"` //nolint:tagliatelle // OpenAPI's own name
	Scope      string `json:"x-scope"`     //nolint:tagliatelle // names of extensions begin with x-
	method     string
	path       string
	Parameters []struct {
		Name, In string
		Required bool
	}
}

// operations reads the operations from the document that a server serves.
func operations(c caller) []described {
	c.t.Helper()
	document := get[struct {
		Paths map[string]map[string]described
	}](c, "/openapi.json")
	var list []described
	for path, methods := range document.Paths {
		for method, op := range methods {
			op.method, op.path = strings.ToUpper(method), path
			list = append(list, op)
		}
	}
	require.GreaterOrEqual(c.t, len(list), 16)
	return list
}

// bodies returns the smallest valid body of each operation that takes one.
func bodies() map[string]any {
	return map[string]any{
		"start-session": map[string]any{"agent": "dependency-review"}, "call-tool": map[string]any{"input": map[string]any{}},
		"send-message": map[string]any{"text": "hello"}, "decide": map[string]any{"call": "1.1", "answer": "approve", "digest": "d"},
	}
}

// request makes a request of an operation about a session.
func (c caller) request(op described, session string) (heard, string) {
	path := strings.NewReplacer("{session}", session, "{tool}", "file.read").Replace(op.path)
	for _, p := range op.Parameters {
		if p.In == "query" && p.Required {
			path += "?" + p.Name + "=1.1"
		}
	}
	answer, body := c.send(op.method, path, bodies()[op.ID])
	return answer, regexp.MustCompile(`"request_id":"[^"]*"`).ReplaceAllString(string(body), "")
}

// Every operation of the OpenAPI document answers another tenant's session exactly like one that does not exist, and refuses credentials
// that do not count.
func TestAPI_TenantsAreSeparated(t *testing.T) {
	t.Parallel()
	d := join(t)
	server := d.serve()
	victim := "victim-" + d.name[:8]
	owner, thief := caller{server, d.apiKey(victim, everything()...)}, caller{server, d.apiKey("thief-"+d.name[:8], everything()...)}
	answer, body := owner.send(http.MethodPost, "/v1/sessions", map[string]any{"id": "one", "document": writer()})
	require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	own := victim + ".one"
	owner.waits(own)
	_, body = owner.send(http.MethodPost, "/v1/sessions", map[string]any{"document": writer()})
	var made struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal(body, &made))
	owner.waits(made.SessionID)

	gone := caller{server, d.apiKey(victim)}
	require.Zero(t, d.jig("api-key", "revoke", "--tenant", victim, strings.Split(gone.key, "_")[1]).code)
	nobodies := map[string]caller{
		"no key": {server, ""}, "no such key": {server, "jig_aaaaaaaaaaaaaaaa_" + strings.Repeat("a", 52)}, "revoked": gone,
		"another secret": {server, owner.key[:len(owner.key)-4] + "aaaa"}, "not a key": {server, "secret"},
	}
	scoped := map[string]caller{}
	for _, scope := range []string{"read", "run", "decide"} {
		scoped[scope] = caller{server, d.apiKey(victim, "--scope", scope)}
	}
	for _, op := range operations(owner) {
		for name, c := range nobodies {
			answer, body := c.request(op, own)
			require.Equal(t, http.StatusUnauthorized, answer.StatusCode, "%s %s: %s", op.ID, name, body)
			require.Contains(t, body, `"reason":"unauthenticated"`)
		}
		for scope, c := range scoped {
			if scope == op.Scope {
				continue
			}
			answer, body := c.request(op, own)
			require.Equal(t, http.StatusForbidden, answer.StatusCode, "%s with %s: %s", op.ID, scope, body)
		}
		if !strings.Contains(op.path, "{session}") {
			continue
		}
		for id, nothing := range map[string]string{own: victim + ".two", made.SessionID: jig.NewSessionID()} {
			foreign, said := thief.request(op, id)
			unknown, expected := thief.request(op, nothing)
			require.Equal(t, http.StatusNotFound, unknown.StatusCode, "%s: %s", op.ID, expected)
			require.Equal(t, unknown.StatusCode, foreign.StatusCode, "%s: %s", op.ID, said)
			require.Equal(t, expected, said, op.ID)
		}
	}
	for _, path := range []string{"/v1/sessions", "/v1/sessions?children=true", "/v1/approvals", "/v1/approvals?session=" + own} {
		_, body := thief.send(http.MethodGet, path, nil)
		require.NotContains(t, string(body), "one")
		require.NotContains(t, string(body), made.SessionID)
	}
	require.Equal(t, jig.StatusInputRequired, get[jig.SessionView](owner, "/v1/sessions/one").Status, "nothing was changed")
}

const apiPage = "docs/api.md"

// Every command on the page does what the page says and prints what the page shows.
func TestAPIPage(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &manual{office: office{tenant: jig.DefaultTenant, desk: open(t, "PATH="+programs, "HOME="+t.TempDir(), "NO_COLOR=1")}}
	server := m.serve()
	c := caller{server, m.apiKey(m.tenant, everything()...)}
	m.env = append(m.env, "JIG_URL="+server.url, "JIG_API_KEY="+c.key)
	m.put("go.mod", "module example.com/m\n\ngo 1.26\n\nrequire github.com/stretchr/testify v1.12.1\n")
	for _, f := range fences(t, apiPage) {
		switch f.language {
		case "text":
			m.shows(f)
		case "sh":
			if f.section == "Decide" {
				c.waits("review-1")
			}
			m.run(f.body, "", 0)
			require.NotContains(t, m.said.out, "null", "every member that the page reads is there:\n%s", f.body)
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	review := get[jig.SessionView](c, "/v1/sessions/review-1")
	require.Equal(t, jig.StatusCompleted, review.Status)
}
