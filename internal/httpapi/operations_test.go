package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/selfcheck"
)

// asked keeps the requests of plain reads.
type asked struct {
	names    []string
	requests []any
	err      error
}

func (a *asked) Ask(_ context.Context, name string, request, _ any) error {
	a.names, a.requests = append(a.names, name), append(a.requests, request)
	return a.err
}

// A plain read is asked for the tenant of the credential, whatever the client sends, and a list of nothing is [].
func TestRead_IsForTheTenantOfTheCredential(t *testing.T) {
	t.Parallel()
	engine := &asked{}
	s := newSiteWith(t, func(o *httpapi.Options) { o.Engine.Asker = engine })
	answer, body := s.send(http.MethodGet, "/v1/sessions?agent=writer&parent=order-7&children=true&limit=3", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.JSONEq(t, `{"sessions":[]}`, body)
	require.Equal(t, []string{string(protocol.ReadSessions)}, engine.names)
	require.Equal(t, protocol.SessionsRequest{
		Tenant: "acme", SessionFilter: protocol.SessionFilter{Agent: "writer", ParentID: "acme.order-7", Children: true}, Limit: 3,
	}, engine.requests[0])
	for _, query := range []string{"tenant=other", "Tenant=other", "parent_session_id=x", "SessionFilter.Agent=x"} {
		answer, body = s.send(http.MethodGet, "/v1/sessions?"+query, "")
		require.Equal(t, http.StatusUnprocessableEntity, problem(t, answer, body).Status, query)
	}
	require.Len(t, engine.requests, 1)
	engine.err = jig.Errorf(jig.CodeNotFound, "there is no session")
	answer, body = s.send(http.MethodGet, "/v1/sessions/order-7/transcript", "")
	require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status)
	require.Equal(t, protocol.TranscriptRequest{Tenant: "acme", SessionID: "acme.order-7"}, engine.requests[1])
}

// Every operation that is declared is served.
func TestOperations_AreServed(t *testing.T) {
	t.Parallel()
	text, err := httpapi.Document()
	require.NoError(t, err)
	document, err := selfcheck.Parse(text)
	require.NoError(t, err)
	served := map[string]string{}
	for _, op := range document.Operations() {
		served[op.ID] = op.Method + " " + op.Path
	}
	for _, op := range api.All() {
		o := op.Describe()
		require.Equal(t, o.Method+" "+o.Path, served[o.Name])
	}
}
