package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/protocol"
)

// documents has a name of its own, because the interface has a method of that name.
type documents = httpapi.Documents

// library has two versions of the agent tidy, and takes calls.
type library struct {
	documents
	httpapi.Calls

	called protocol.CallInput
}

func (l *library) Documents(context.Context, string, string) ([]protocol.DocumentState, error) {
	return nil, nil
}

func (l *library) DocumentVersions(_ context.Context, _, kind, name string) ([]protocol.DocumentState, error) {
	if kind != "agent" || name != "tidy" {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no document %s", name)
	}
	return []protocol.DocumentState{{Kind: kind, Name: name, Version: "v2", Current: true}, {Kind: kind, Name: name, Version: "v1"}}, nil
}

func (l *library) DocumentAt(_ context.Context, _, _, _, version string) ([]byte, error) {
	return []byte("Tidy up.\n" + version + "\n"), nil
}

func (l *library) StartCall(_ context.Context, input protocol.CallInput, _ string) (client.Started, error) {
	l.called = input
	return client.Started{SessionID: "ses_1"}, nil
}

func librarySite(t *testing.T) (*site, *library) {
	t.Helper()
	l := &library{}
	return newSiteWith(t, func(o *httpapi.Options) { o.Engine.Documents, o.Engine.Calls = l, l }), l
}

func TestDocuments_AreReadBackByVersion(t *testing.T) {
	t.Parallel()
	s, _ := librarySite(t)
	var d struct{ Text, Version, Difference string }
	read := func(query string) string {
		answer, body := s.send(http.MethodGet, "/v1/documents/agent/tidy"+query, "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.NoError(t, json.Unmarshal([]byte(body), &d))
		return answer.Header.Get("ETag")
	}
	require.Equal(t, `"v2"`, read(""))
	require.Equal(t, "Tidy up.\nv2\n", d.Text)
	require.Equal(t, `"v1"`, read("?version=v1"))
	require.Equal(t, "Tidy up.\nv1\n", d.Text)
	read("/difference?from=v1")
	require.Equal(t, "@@ -1,2 +1,2 @@\n Tidy up.\n-v1\n+v2", d.Difference)
	read("/difference?from=v1&to=v1")
	require.Empty(t, d.Difference)
	for _, path := range []string{"/v1/documents/agent/tidy?version=v9", "/v1/documents/agent/other", "/v1/documents/agent/other/versions", "/v1/documents/agent/tidy/difference?from=v9"} {
		answer, body := s.send(http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status, path)
	}
}

// A change names the version that the client has seen. The call that makes the change names it, too.
func TestDocuments_ChangeOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	const put = `{"text":"Tidy up well."}`
	for _, c := range []struct {
		method, path, body, match string
		status                    int
		tool, input               string
	}{
		{method: "PUT", path: "agent/tidy", body: put, status: 428},
		{method: "PUT", path: "agent/tidy", body: put, match: `"v1"`, status: 412},
		{method: "PUT", path: "agent/tidy", body: put, match: `W/"v2"`, status: 412},
		{method: "PUT", path: "agent/new", body: put, match: `*`, status: 412},
		{
			method: "PUT", path: "agent/tidy", body: put, match: `"v1", "v2"`, status: 202, tool: "catalog.put",
			input: `{"documents":[{"path":"tidy.md","body":"Tidy up well.","replaces":{"kind":"agent","name":"tidy","version":"v2"}}]}`,
		},
		{
			method: "PUT", path: "policy/new", body: put, status: 202, tool: "catalog.put",
			input: `{"documents":[{"path":"new.yaml","body":"Tidy up well.","replaces":{"kind":"policy","name":"new"}}]}`,
		},
		{method: "DELETE", path: "agent/tidy", status: 428},
		{method: "DELETE", path: "agent/new", status: 404},
		{
			method: "DELETE", path: "agent/tidy", match: `*`, status: 202, tool: "catalog.remove",
			input: `{"documents":[{"kind":"agent","name":"tidy","version":"v2"}]}`,
		},
		{method: "POST", path: "agent/tidy/restore", body: `{"version":"v9"}`, match: `*`, status: 404},
		{method: "POST", path: "agent/tidy/restore", body: `{"version":"v1"}`, status: 428},
		{
			method: "POST", path: "agent/tidy/restore", body: `{"version":"v1"}`, match: `"v2"`, status: 202, tool: "catalog.put",
			input: `{"documents":[{"path":"tidy.md","body":"Tidy up.\nv1\n","replaces":{"kind":"agent","name":"tidy","version":"v2"}}]}`,
		},
	} {
		s, l := librarySite(t)
		headers := []string{}
		if c.match != "" {
			headers = append(headers, "If-Match", c.match)
		}
		answer, body := s.send(c.method, "/v1/documents/"+c.path, c.body, headers...)
		require.Equal(t, c.status, answer.StatusCode, "%s %s: %s", c.method, c.path, body)
		require.Equal(t, c.tool, l.called.Tool)
		if c.tool != "" {
			require.JSONEq(t, c.input, string(l.called.Input))
			require.Equal(t, jig.Principal{ID: "ana", Claimed: true}, l.called.Principal)
		}
	}
}
