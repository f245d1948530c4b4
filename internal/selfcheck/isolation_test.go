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
	"/v1/sessions": {
		"get": {"operationId": "list-sessions", "parameters": [
			{"name": "cursor", "in": "query", "schema": {"type": "string"}}, {"name": "limit", "in": "query", "schema": {"type": "integer"}}]},
		"post": {"operationId": "start-session", "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {
			"agent": {"type": "string", "x-names": "agent"}, "document": {"type": "string"}}}}}}}},
	"/v1/sessions/{session}": {"get": {"operationId": "get-session", "parameters": [
		{"name": "session", "in": "path", "schema": {"type": "string", "x-names": "session"}}]}},
	"/v1/tools/{tool}": {"get": {"operationId": "get-tool", "parameters": [{"name": "tool", "in": "path", "schema": {"type": "string", "x-names": "tool"}}]}},
	"/v1/calls": {"post": {"operationId": "run-composition", "x-record": "call", "requestBody": {"content": {"application/json": {"schema": {
		"type": "object", "properties": {"name": {"type": "string", "x-names": "tool"}}}}}}}},
	"/v1/types": {"get": {"operationId": "list-types"}},
	"/v1/types/{type}": {"get": {"operationId": "get-type", "parameters": [
		{"name": "type", "in": "path", "schema": {"type": "string", "x-names": "entity_type"}}]}},
	"/v1/entities": {"get": {"operationId": "list-entities", "parameters": [
		{"name": "type", "in": "query", "required": true, "schema": {"type": "string", "x-names": "entity_type"}},
		{"name": "workspace", "in": "query", "schema": {"type": "string", "x-names": "workspace"}}]}},
	"/v1/entities/{entity}": {"patch": {"operationId": "change-entity", "x-record": "call",
		"parameters": [{"name": "entity", "in": "path", "schema": {"type": "string", "x-names": "entity"}}]}},
	"/v1/entities/{entity}/relations": {"post": {"operationId": "create-relation", "x-record": "call",
		"parameters": [{"name": "entity", "in": "path", "schema": {"type": "string", "x-names": "entity"}}],
		"requestBody": {"content": {"application/json": {"schema": {
			"type": "object", "required": ["to"], "properties": {"to": {"type": "string", "x-names": "entity"}}}}}}}},
	"/v1/approvals:decide": {"post": {"operationId": "decide-several", "requestBody": {"content": {"application/json": {"schema": {
		"type": "object", "required": ["decisions"], "properties": {"decisions": {"type": "array", "minItems": 1, "items": {
			"type": "object", "required": ["session_id"], "properties": {"session_id": {"type": "string", "x-names": "session"},
				"grant": {"type": "object", "properties": {"agent": {"type": "string", "x-names": "agent"}}}}}}}}}}}}},
	"/v1/records": {"get": {"operationId": "list-records", "parameters": [
		{"name": "type", "in": "query", "required": true, "schema": {"type": "string", "x-names": "record"}},
		{"name": "after", "in": "query", "schema": {"type": "string"}}]}},
	"/v1/documents": {
		"get": {"operationId": "list-documents"},
		"post": {"operationId": "register-documents", "requestBody": {"content": {"application/json": {"schema": {
			"type": "object", "required": ["documents"], "properties": {"documents": {"type": "array", "minItems": 1, "items": {
				"type": "object", "required": ["body"], "properties": {"body": {"type": "string"}, "replaces": {
					"type": "object", "required": ["kind", "name"], "properties": {
						"kind": {"type": "string", "enum": ["policy", "agent"]}, "name": {"type": "string", "x-names": "{kind}"}}}}}}}}}}}}},
	"/v1/documents/{kind}/{name}": {"put": {"operationId": "change-document", "parameters": [
		{"name": "kind", "in": "path", "schema": {"type": "string", "enum": ["agent"]}},
		{"name": "name", "in": "path", "schema": {"type": "string", "x-names": "{kind}"}},
		{"name": "If-Match", "in": "header", "schema": {"type": "string", "x-names": "version"}}]}},
	"/v1/events": {"get": {"operationId": "get-tenant-events", "parameters": [
		{"name": "after", "in": "query", "schema": {"type": "string"}}, {"name": "Last-Event-Id", "in": "header", "schema": {"type": "string"}}]}},
	"/v1/policies:backtest": {"post": {"operationId": "backtest-policy", "requestBody": {"content": {"application/json": {"schema": {
		"type": "object", "required": ["document"], "properties": {"document": {"type": "string"}, "cursor": {"type": "string"}}}}}}}},
	"/v1/documents/{kind}/{name}/difference": {"get": {"operationId": "compare-versions", "parameters": [
		{"name": "kind", "in": "path", "schema": {"type": "string", "enum": ["agent"]}},
		{"name": "name", "in": "path", "schema": {"type": "string", "x-names": "{kind}"}},
		{"name": "from", "in": "query", "required": true, "schema": {"type": "string", "x-names": "version"}},
		{"name": "to", "in": "query", "schema": {"type": "string", "x-names": "version"}}]}},
	"/v1/people": {"get": {"operationId": "list-people"}},
	"/v1/people:disable": {"post": {"operationId": "disable-person", "x-record": "call", "requestBody": {"content": {"application/json": {"schema": {
		"type": "object", "properties": {"person": {"type": "string", "x-names": "person"}, "key": {"type": "string", "x-names": "signing_key"}}}}}}}},
	"/v1/pauses": {"post": {"operationId": "pause", "requestBody": {"content": {"application/json": {"schema": {
		"type": "object", "required": ["scope"], "properties": {
			"scope": {"type": "string", "enum": ["tenant", "tool", "session"]}, "target": {"type": "string", "x-names": "{scope}"}}}}}}}},
	"/v1/pauses:resume": {"post": {"operationId": "resume"}},
	"/v1/schedules": {"post": {"operationId": "create-schedule", "requestBody": {"content": {"application/json": {"schema": {
		"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "agent": {"type": "string", "x-names": "agent"}}}}}}}},
	"/v1/schedules/{schedule}": {"delete": {"operationId": "delete-schedule", "parameters": [
		{"name": "schedule", "in": "path", "schema": {"type": "string", "x-names": "schedule"}}]}}
}}`

// leaky is a server of two tenants that keeps them apart, except for one leak.
type leaky struct {
	leak     string
	mu       sync.Mutex
	sessions map[string]string // tenants by session
	paused   []string
	planned  map[string]bool // schedules by name
}

const (
	ownAgent     = "agent-of-the-owner"
	ownVersion   = "version-of-the-owner"
	ownTool      = "tool.of_the_owner"
	ownType      = "type_of_the_owner"
	ownEntity    = "ent_of_the_owner"
	ownWorkspace = "workspace-of-the-owner"
	ownPerson    = "person-of-the-owner"
	ownKey       = "key-of-the-owner"
)

// leakyBody holds the members of request bodies that the server looks at.
type leakyBody struct {
	Decisions []struct {
		Session string `json:"session_id"`
		Grant   struct{ Agent string }
	}
	Documents []struct{ Replaces struct{ Kind, Name string } }

	Agent, Name, To, Person, Key, Scope, Target, Cursor string
}

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
	var body leakyBody
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&body) //nolint:errcheck // requests of the suite are JSON
	}
	leaks := func(leak, value, foreign string) bool { return l.leak == leak && value == foreign }
	session := strings.TrimPrefix(r.URL.Path, "/v1/sessions/")
	switch own := tenant == "owner"; {
	case r.URL.Path == "/v1/tools/"+ownTool && (own || l.leak == "tool"):
		answer(http.StatusOK, map[string]any{"name": ownTool})
	case r.URL.Path == "/v1/tools/"+ownTool: // similar names are suggested
		answer(http.StatusNotFound, map[string]any{"code": "NOT_FOUND", "hint": "did you mean " + map[bool]string{true: ownAgent, false: "agent-of-other"}[l.leak == "suggestion"] + "?"})
	case r.URL.Path == "/v1/types":
		answer(http.StatusOK, map[string]any{"types": []map[string]any{{"name": "type_of_the_" + tenant}}})
	case r.URL.Path == "/v1/types/"+ownType && own:
		answer(http.StatusOK, map[string]any{"name": ownType})
	case r.URL.Path == "/v1/entities" && r.URL.Query().Get("type") == "type_of_the_"+tenant && leaks("workspace", r.URL.Query().Get("workspace"), ownWorkspace):
		answer(http.StatusConflict, nil)
	case r.URL.Path == "/v1/entities" && (r.URL.Query().Get("type") == "type_of_the_"+tenant || l.leak == "type" && r.URL.Query().Get("type") == ownType):
		answer(http.StatusOK, map[string]any{"entities": []map[string]any{{"entity_id": strings.Replace(r.URL.Query().Get("type"), "type_", "ent_", 1)}}})
	case r.Method == http.MethodPatch && leaks("result", r.URL.Path, "/v1/entities/"+ownEntity) && r.Header.Get("Prefer") != "":
		answer(http.StatusOK, nil)
	case r.Method == http.MethodPut:
		if leaks("version", r.Header.Get("If-Match"), `"`+ownVersion+`"`) {
			answer(http.StatusConflict, nil)
			return
		}
		answer(http.StatusPreconditionFailed, nil)
	case r.URL.Path == "/v1/events" || r.URL.Path == "/v1/policies:backtest":
		of := tenant
		if l.leak == "event" && r.Header.Get("Last-Event-Id") == "owner" || l.leak == "body" && body.Cursor == "owner" {
			of = "owner"
		}
		answer(http.StatusOK, map[string]any{"events": []string{"session-" + of + "-0"}, "next_cursor": of})
	case r.Method == http.MethodPatch && (own || l.leak != "entity" || r.URL.Path != "/v1/entities/"+ownEntity): // a call, which fails later
		answer(http.StatusAccepted, nil)
	case r.URL.Path == "/v1/me":
		answer(http.StatusOK, map[string]any{"tenant": tenant})
	case r.URL.Path == "/v1/tools/todo.write/calls":
		id := "session-" + tenant + "-" + strconv.Itoa(len(l.sessions))
		l.sessions[id] = tenant
		answer(http.StatusAccepted, map[string]any{"session_id": id, "call": "1.1"})
	case r.URL.Path == "/v1/sessions" && r.Method == http.MethodGet:
		of := tenant
		if cursor := r.URL.Query().Get("cursor"); l.leak == "cursor" && cursor != "" {
			of = cursor
		}
		list := []map[string]any{}
		for id, owner := range l.sessions {
			if owner == of {
				list = append(list, map[string]any{"session_id": id, "input": "an id that was sent: session-owner-0"})
			}
		}
		answer(http.StatusOK, map[string]any{"sessions": list, "next_cursor": of})
	case session != r.URL.Path && l.sessions[session] == tenant:
		answer(http.StatusOK, map[string]any{"status": "completed"})
	case r.URL.Path == "/v1/approvals:decide":
		outcome := map[string]any{"session_id": body.Decisions[0].Session, "outcome": "failed"} // repeats what was asked about
		if decision := body.Decisions[0]; l.leak == "decisions" && l.sessions[decision.Session] == "owner" ||
			leaks("grant", decision.Grant.Agent, ownAgent) && l.sessions[decision.Session] == tenant {
			outcome["outcome"] = "refused"
		}
		answer(http.StatusOK, map[string]any{"results": []any{outcome}})
	case r.URL.Path == "/v1/documents" && r.Method == http.MethodGet:
		list := []map[string]any{{"kind": "agent", "name": "agent-of-both", "version": "version-of-both"}, {"kind": "agent", "name": "agent-of-" + tenant, "version": "v"}}
		if own {
			list = append(list, map[string]any{"kind": "agent", "name": ownAgent, "version": ownVersion},
				map[string]any{"kind": "record", "name": "record-that-the-owner-may-not-read", "version": "v"})
		}
		answer(http.StatusOK, map[string]any{"documents": list})
	case r.URL.Path == "/v1/people":
		answer(http.StatusOK, map[string]any{
			"people": []map[string]any{{"principal": "person-of-the-" + tenant}}, "groups": []map[string]any{{"name": "group-of-the-" + tenant}},
			"keys": []map[string]any{{"id": "key-of-the-" + tenant, "algorithm": "ed25519"}},
		})
	case r.URL.Path == "/v1/documents":
		if replaces := body.Documents[0].Replaces; replaces.Kind == "agent" && leaks("replaces", replaces.Name, ownAgent) {
			answer(http.StatusConflict, nil)
			return
		}
		answer(http.StatusAccepted, nil)
	case r.URL.Path == "/v1/documents/agent/agent-of-both/difference":
		for leak, values := range map[string][]string{"from": r.URL.Query()["from"], "to": r.URL.Query()["to"]} {
			if len(values) > 0 && leaks(leak, values[0], ownVersion) {
				answer(http.StatusOK, nil)
				return
			}
		}
		answer(http.StatusNotFound, nil)
	case strings.HasSuffix(r.URL.Path, "/relations"):
		if r.URL.Path == "/v1/entities/ent_of_the_other/relations" && leaks("relation", body.To, ownEntity) {
			answer(http.StatusOK, nil)
			return
		}
		answer(http.StatusAccepted, nil)
	case r.URL.Path == "/v1/sessions" && leaks("agent", body.Agent, ownAgent), leaks("composition", body.Name, ownTool), leaks("person", body.Person, ownPerson), leaks("signing key", body.Key, ownKey):
		answer(http.StatusOK, nil)
	case r.URL.Path == "/v1/calls", r.URL.Path == "/v1/people:disable":
		answer(http.StatusAccepted, nil)
	case r.URL.Path == "/v1/pauses":
		if body.Scope == "tool" && leaks("pause", body.Target, ownTool) {
			answer(http.StatusConflict, nil)
			return
		}
		l.paused = append(l.paused, body.Target)
		answer(http.StatusOK, map[string]any{"pauses": l.paused})
	case r.URL.Path == "/v1/pauses:resume":
		l.paused = nil
		answer(http.StatusOK, nil)
	case r.URL.Path == "/v1/schedules":
		if l.planned[body.Name] || leaks("schedule", body.Agent, ownAgent) {
			answer(http.StatusConflict, nil)
			return
		}
		l.planned[body.Name] = true
		answer(http.StatusOK, nil)
	case r.Method == http.MethodDelete && l.planned["a"]:
		clear(l.planned)
		answer(http.StatusOK, nil)
	default:
		answer(http.StatusNotFound, map[string]any{"code": "NOT_FOUND"})
	}
}

// The suite finds ids and names that leak from wherever a request has them, and lists that leak by a cursor; it finds nothing where nothing leaks,
// although the other tenant's own sessions quote ids of the owner.
func TestIsolation_FindsLeaks(t *testing.T) {
	t.Parallel()
	for leak, want := range map[string]string{
		"":            "",
		"cursor":      "list-sessions: the answer about a foreign cursor has session-owner-0 of the owner",
		"event":       "get-tenant-events: the answer about a foreign cursor has session-owner-0 of the owner",
		"body":        "backtest-policy: the answer about a foreign cursor has session-owner-0 of the owner",
		"version":     "change-document: version " + ownVersion + " of another tenant is not answered like an unknown one",
		"result":      "change-entity: entity " + ownEntity + " of another tenant is not answered like an unknown one",
		"decisions":   "decide-several: session session-owner-0 of another tenant is not answered like an unknown one",
		"tool":        "get-tool: tool " + ownTool + " of another tenant is not answered like an unknown one",
		"suggestion":  "get-tool: tool " + ownTool + " of another tenant is not answered like an unknown one",
		"type":        "list-entities: the answer about a foreign entity_type has " + ownEntity + " of the owner",
		"entity":      "change-entity: entity " + ownEntity + " of another tenant is not answered like an unknown one",
		"replaces":    "register-documents: agent " + ownAgent + " of another tenant is not answered like an unknown one",
		"agent":       "start-session: agent " + ownAgent + " of another tenant is not answered like an unknown one",
		"composition": "run-composition: tool " + ownTool + " of another tenant is not answered like an unknown one",
		"person":      "disable-person: person " + ownPerson + " of another tenant is not answered like an unknown one",
		"signing key": "disable-person: signing_key " + ownKey + " of another tenant is not answered like an unknown one",
		"schedule":    "create-schedule: agent " + ownAgent + " of another tenant is not answered like an unknown one",
		"pause":       "pause: tool " + ownTool + " of another tenant is not answered like an unknown one",
		"workspace":   "list-entities: workspace " + ownWorkspace + " of another tenant is not answered like an unknown one",
		"relation":    "create-relation: entity " + ownEntity + " of another tenant is not answered like an unknown one",
		"grant":       "decide-several: agent " + ownAgent + " of another tenant is not answered like an unknown one",
		"from":        "compare-versions: version " + ownVersion + " of another tenant is not answered like an unknown one",
		"to":          "compare-versions: version " + ownVersion + " of another tenant is not answered like an unknown one",
	} {
		t.Run(leak, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&leaky{leak: leak, sessions: map[string]string{}, planned: map[string]bool{}})
			t.Cleanup(server.Close)
			report, err := selfcheck.Isolation{
				URL: server.URL, Owner: "credential-owner", Other: "credential-other", Tool: "todo.write", Input: json.RawMessage(`{}`),
				IDs: map[string][]string{"tool": {ownTool}, "workspace": {ownWorkspace}},
			}.Run(t.Context())
			require.NoError(t, err)
			if want == "" {
				require.Empty(t, report.Findings)
				require.Contains(t, report.NotTested, "list-records: the owner's credential may not list them")
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
