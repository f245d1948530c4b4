package selfcheck_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/selfcheck"
)

// document is the OpenAPI document of the servers in this test.
const document = `{"paths": {
	"/v1/me": {"get": {"operationId": "get-me"}},
	"/v1/sessions": {"get": {"operationId": "list-sessions", "parameters": [
		{"name": "cursor", "in": "query", "schema": {"type": "string"}}, {"name": "limit", "in": "query", "schema": {"type": "integer"}}]}},
	"/v1/sessions/{session}": {"get": {"operationId": "get-session", "parameters": [{"name": "session", "in": "path", "schema": {"type": "string"}}]}},
	"/v1/tools/{tool}": {"get": {"operationId": "get-tool", "parameters": [{"name": "tool", "in": "path", "schema": {"type": "string"}}]}},
	"/v1/types": {"get": {"operationId": "list-types"}},
	"/v1/types/{type}": {"get": {"operationId": "get-type", "parameters": [{"name": "type", "in": "path", "schema": {"type": "string"}}]}},
	"/v1/entities": {"get": {"operationId": "list-entities", "parameters": [{"name": "type", "in": "query", "required": true, "schema": {"type": "string"}}]}},
	"/v1/entities/{entity}": {"patch": {"operationId": "change-entity", "x-record": "call",
		"parameters": [{"name": "entity", "in": "path", "schema": {"type": "string"}}]}},
	"/v1/approvals:decide": {"post": {"operationId": "decide-several", "requestBody": {"content": {"application/json": {"schema": {
		"type": "object", "required": ["decisions"], "properties": {"decisions": {"type": "array", "minItems": 1, "items": {
			"type": "object", "required": ["session_id"], "properties": {"session_id": {"type": "string"}}}}}}}}}}},
	"/v1/documents": {"post": {"operationId": "register-documents", "requestBody": {"content": {"application/json": {"schema": {
		"type": "object", "required": ["documents"], "properties": {"documents": {"type": "array", "minItems": 1, "items": {
			"type": "object", "required": ["body"], "properties": {"body": {"type": "string"}, "replaces": {
				"type": "object", "required": ["kind", "name"], "properties": {"kind": {"type": "string"}, "name": {"type": "string"}}}}}}}}}}}}}
}}`

// leaky is a server of two tenants that keeps them apart, except for one leak.
type leaky struct {
	leak     string
	mu       sync.Mutex
	sessions map[string]string // tenants by session
}

const (
	ownDocument = "document-of-the-owner"
	ownTool     = "tool.of_the_owner"
	ownType     = "type_of_the_owner"
	ownEntity   = "ent_of_the_owner"
)

func (l *leaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) //nolint:errcheck // the client is gone
	}
	tenant := map[string]string{"Bearer credential-owner": "owner", "Bearer credential-other": "other"}[r.Header.Get("Authorization")]
	if r.URL.Path == "/openapi.json" {
		answer(http.StatusOK, json.RawMessage(document))
		return
	}
	if tenant == "" || len(r.Header.Values("Authorization")) > 1 {
		answer(http.StatusUnauthorized, nil)
		return
	}
	var body struct {
		Decisions []struct {
			Session string `json:"session_id"`
		}
		Documents []struct{ Replaces struct{ Name string } }
	}
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&body) //nolint:errcheck // requests of the suite are JSON
	}
	session := strings.TrimPrefix(r.URL.Path, "/v1/sessions/")
	switch own := tenant == "owner"; {
	case r.URL.Path == "/v1/tools/"+ownTool && (own || l.leak == "tool"):
		answer(http.StatusOK, map[string]any{"name": ownTool})
	case r.URL.Path == "/v1/types":
		list := []map[string]any{}
		if own {
			list = append(list, map[string]any{"name": ownType})
		}
		answer(http.StatusOK, map[string]any{"types": list})
	case r.URL.Path == "/v1/types/"+ownType && own:
		answer(http.StatusOK, map[string]any{"name": ownType})
	case r.URL.Path == "/v1/entities" && r.URL.Query().Get("type") == ownType && (own || l.leak == "type"):
		answer(http.StatusOK, map[string]any{"entities": []map[string]any{{"entity_id": ownEntity}}})
	case r.Method == http.MethodPatch && (own || l.leak != "entity" || r.URL.Path != "/v1/entities/"+ownEntity): // a call, which fails later
		answer(http.StatusAccepted, nil)
	case r.URL.Path == "/v1/me":
		answer(http.StatusOK, map[string]any{"tenant": tenant})
	case strings.HasSuffix(r.URL.Path, "/calls"):
		id := "session-" + tenant + "-" + strconv.Itoa(len(l.sessions))
		l.sessions[id] = tenant
		answer(http.StatusAccepted, map[string]any{"session_id": id, "call": "1.1"})
	case r.URL.Path == "/v1/sessions":
		of := tenant
		if cursor := r.URL.Query().Get("cursor"); l.leak == "cursor" && cursor != "" {
			of = cursor
		}
		list := []map[string]any{}
		for id, owner := range l.sessions {
			if owner == of {
				list = append(list, map[string]any{"session_id": id})
			}
		}
		answer(http.StatusOK, map[string]any{"sessions": list, "next_cursor": of})
	case session != r.URL.Path && l.sessions[session] == tenant:
		answer(http.StatusOK, map[string]any{"status": "completed"})
	case r.URL.Path == "/v1/approvals:decide":
		outcome := map[string]any{"session_id": body.Decisions[0].Session, "outcome": "failed"} // repeats what was asked about
		if l.leak == "decisions" && l.sessions[body.Decisions[0].Session] != "" {
			outcome["outcome"] = "refused"
		}
		answer(http.StatusOK, map[string]any{"results": []any{outcome}})
	case r.URL.Path == "/v1/documents":
		if l.leak == "replaces" && body.Documents[0].Replaces.Name == ownDocument {
			answer(http.StatusConflict, nil)
			return
		}
		answer(http.StatusAccepted, nil)
	default:
		answer(http.StatusNotFound, nil)
	}
}

// The suite finds ids that leak from deep in a body, and lists that leak by a cursor; it finds nothing where nothing leaks.
func TestIsolation_FindsLeaks(t *testing.T) {
	t.Parallel()
	for leak, want := range map[string]string{
		"":          "",
		"cursor":    "list-sessions: the answer about a foreign cursor has session-owner-0 of the owner",
		"decisions": "decide-several: session session-owner-0 of another tenant is not answered like an unknown one",
		"tool":      "get-tool: tool " + ownTool + " of another tenant is not answered like an unknown one",
		"type":      "list-entities: the answer about a foreign type has " + ownEntity + " of the owner",
		"entity":    "change-entity: entity " + ownEntity + " of another tenant is not answered like an unknown one",
		"replaces":  "register-documents: document " + ownDocument + " of another tenant is not answered like an unknown one",
	} {
		t.Run(leak, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&leaky{leak: leak, sessions: map[string]string{}})
			t.Cleanup(server.Close)
			report, err := selfcheck.Isolation{
				URL: server.URL, Owner: "credential-owner", Other: "credential-other", Tool: "todo.write", Input: json.RawMessage(`{}`),
				IDs: map[string][]string{"call": {"1.1"}, "document": {ownDocument}, "tool": {ownTool}},
			}.Run(t.Context())
			require.NoError(t, err)
			if want == "" {
				require.Empty(t, report.Findings)
				return
			}
			require.Contains(t, strings.Join(report.Findings, "\n"), want)
			operation, _, _ := strings.Cut(want, ":")
			for _, finding := range report.Findings {
				require.Contains(t, finding, operation+":", "it finds the leak, and nothing else")
			}
		})
	}
}
