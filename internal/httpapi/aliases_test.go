package httpapi_test

import (
	"context"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// shelf has the document of one tool, and takes calls.
type shelf struct{ library }

func (*shelf) Catalog(context.Context, string) (client.Catalog, error) {
	return client.Catalog{Tools: []jig.Tool{{Name: "crm.note", Description: "Write a note."}}}, nil
}

func (*shelf) DocumentVersions(_ context.Context, tenant, kind, name, _ string) ([]protocol.DocumentState, error) {
	if tenant != "acme" || kind != "composition" || name != "crm.note" {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no document %s", name)
	}
	return []protocol.DocumentState{{Kind: kind, Name: name, Version: "v2", Current: true}}, nil
}

// Each alias answers exactly as its operation does and makes the same call, also when the request is refused.
func TestAliases_AnswerAsTheirOperations(t *testing.T) {
	t.Parallel()
	l := &shelf{}
	s := newSiteWith(t, func(o *httpapi.Options) { o.Engine.Documents, o.Engine.Calls = l, l })
	full, reader := s.key, s.keys.add("acme", credential.ScopeRead)
	documents, text, input := `{"documents":[{"path":"n.yaml","body":"kind: tool"}]}`, `{"text":"kind: tool"}`, `{"input":{"text":"hi"}}`
	ids := regexp.MustCompile(`req_[a-z0-9]+`)
	for _, c := range []struct {
		alias, operation [2]string
		body, match      string
		status           int
		called           string
	}{
		{[2]string{"GET", "/api/tools"}, [2]string{"GET", "/v1/tools"}, "", "", 200, ""},
		{[2]string{"GET", "/api/tools?since=yesterday"}, [2]string{"GET", "/v1/tools?since=yesterday"}, "", "", 422, ""},
		{[2]string{"POST", "/api/tools"}, [2]string{"POST", "/v1/documents"}, documents, "", 202, "catalog.put"},
		{[2]string{"POST", "/api/tools"}, [2]string{"POST", "/v1/documents"}, `{"documents":[]}`, "", 422, ""},
		{[2]string{"GET", "/api/tools/crm.note"}, [2]string{"GET", "/v1/tools/crm.note"}, "", "", 200, ""},
		{[2]string{"GET", "/api/tools/no-such-tool"}, [2]string{"GET", "/v1/tools/no-such-tool"}, "", "", 404, ""},
		{[2]string{"GET", "/api/tools/crm%2Fnote"}, [2]string{"GET", "/v1/tools/crm%2Fnote"}, "", "", 404, ""},
		{[2]string{"PATCH", "/api/tools/crm.note"}, [2]string{"PUT", "/v1/documents/composition/crm.note"}, text, `"v2"`, 202, "catalog.put"},
		{[2]string{"PATCH", "/api/tools/crm.note"}, [2]string{"PUT", "/v1/documents/composition/crm.note"}, text, "", 428, ""},
		{[2]string{"PATCH", "/api/tools/crm.note"}, [2]string{"PUT", "/v1/documents/composition/crm.note"}, text, `"v1"`, 412, ""},
		{[2]string{"DELETE", "/api/tools/crm.note"}, [2]string{"DELETE", "/v1/documents/composition/crm.note"}, "", `"v2"`, 202, "catalog.remove"},
		{[2]string{"DELETE", "/api/tools/other"}, [2]string{"DELETE", "/v1/documents/composition/other"}, "", "", 404, ""},
		{[2]string{"GET", "/api/tools/crm.note/versions"}, [2]string{"GET", "/v1/documents/composition/crm.note/versions"}, "", "", 200, ""},
		{[2]string{"POST", "/api/tools/crm.note/test"}, [2]string{"POST", "/v1/tools/crm.note/test"}, input, "", 202, "crm.note"},
		{[2]string{"POST", "/api/tools/Crm..note/test"}, [2]string{"POST", "/v1/tools/Crm..note/test"}, input, "", 404, ""},
		{[2]string{"POST", "/api/tools/Crm..note/test/stream"}, [2]string{"POST", "/v1/tools/Crm..note/test/stream"}, input, "", 404, ""},
		{[2]string{"POST", "/admin/reload-catalog"}, [2]string{"GET", "/v1/tools"}, "", "", 200, ""},
	} {
		for _, key := range []string{full, reader, ""} {
			s.key = key
			ask := func(at [2]string) (reply, string, protocol.CallInput) {
				l.called = protocol.CallInput{}
				answer, body := s.send(at[0], at[1], c.body, "If-Match", c.match)
				for _, header := range []string{"Date", "X-Request-Id"} {
					answer.Header.Del(header)
				}
				return answer, ids.ReplaceAllString(body, "req"), l.called
			}
			want, body, call := ask(c.operation)
			got, gotBody, gotCall := ask(c.alias)
			require.Equal(t, want, got, c.alias)
			require.Equal(t, body, gotBody, c.alias)
			require.Equal(t, call, gotCall, c.alias)
			switch {
			case key == full:
				require.Equal(t, c.status, got.StatusCode, gotBody)
				require.Equal(t, c.called, gotCall.Tool, c.alias)
			case key == "":
				require.Equal(t, http.StatusUnauthorized, got.StatusCode, gotBody)
			case c.operation[0] != http.MethodGet:
				require.Equal(t, http.StatusForbidden, got.StatusCode, "the scope is that of the operation")
			}
		}
	}
	s.key = full
	answer, body := s.send(http.MethodPut, "/api/tools/crm.note", text)
	require.Equal(t, http.StatusMethodNotAllowed, problem(t, answer, body).Status)
	require.Equal(t, []string{"GET", "PATCH", "DELETE"}, answer.Header.Values("Allow"))
	answer, body = s.send(http.MethodPatch, "/api/tools/crm.note", `{"text":"kind: tool"}`, "Idempotency-Key", "secret-of-ana", "If-Match", `"secret-of-ben"`)
	require.Equal(t, http.StatusPreconditionFailed, problem(t, answer, body).Status)
	require.NotContains(t, body, "secret-of", "no value of the request is repeated")
}
