package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// counter takes calls of the tool crm.note that have an input, in the session known.
type counter struct {
	httpapi.Calls

	called []protocol.CallInput
	// patience is how long a request was ready to wait.
	patience time.Duration
	// slow makes calls wait until nobody waits for them.
	slow bool
}

func (c *counter) StartCall(_ context.Context, input protocol.CallInput, _ string) (client.Started, error) {
	if input.Tool != "crm.note" {
		return client.Started{}, jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool")
	}
	if len(input.Input) == 0 {
		return client.Started{}, jig.Errorf(jig.CodeMissingParam, "text is missing").WithField("input")
	}
	c.called = append(c.called, input)
	return client.Started{SessionID: "acme.known"}, nil
}

func (c *counter) AwaitCall(ctx context.Context, _, id string) (protocol.CallResult, error) {
	until, _ := ctx.Deadline()
	c.patience = time.Until(until)
	if c.slow {
		<-ctx.Done()
		return protocol.CallResult{}, ctx.Err()
	}
	return protocol.CallResult{SessionID: id, Call: "1.1", Status: jig.CallSucceeded}, nil
}

func (*counter) Record(context.Context, string, string, string) (protocol.CallRecord, error) {
	return protocol.CallRecord{}, jig.Errorf(jig.CodeNotFound, "no worker has picked it up")
}

func counterSite(t *testing.T) (*site, *counter) {
	t.Helper()
	c := &counter{}
	return newSiteWith(t, func(o *httpapi.Options) { o.Engine.Calls = c }), c
}

const noted = `{"input":{"text":"hi"}}`

// A test waits for the result without being asked, and the client may shorten that.
func TestToolTest_WaitsForTheResult(t *testing.T) {
	t.Parallel()
	s, c := counterSite(t)
	answer, body := s.send(http.MethodPost, "/v1/tools/crm.note/test", noted)
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Empty(t, answer.Header.Get("Preference-Applied"))
	require.JSONEq(t, `{"session_id":"acme.known","call":"1.1","status":"succeeded"}`, body)
	require.Greater(t, c.patience, 50*time.Second)
	require.LessOrEqual(t, c.patience, time.Minute)
	require.Equal(t, protocol.CallInput{
		Tenant: "acme", Tool: "crm.note", Input: json.RawMessage(`{"text":"hi"}`), Principal: jig.Principal{ID: "ana", Claimed: true}, Source: jig.SourceAPI, Check: true,
	}, c.called[0], "it is the call of call-tool")

	c.slow = true
	answer, body = s.send(http.MethodPost, "/v1/tools/crm.note/test", noted, "Prefer", "wait=1")
	require.Equal(t, http.StatusAccepted, answer.StatusCode, body)
	require.Equal(t, "wait=1", answer.Header.Get("Preference-Applied"))
	require.Equal(t, "/v1/sessions/acme.known/call?call=1.1", answer.Header.Get("Location"))
}

// The stream begins with the names of the session and the call, has the events of the call as they are written, and ends with the call.
func TestToolTest_StreamsTheCall(t *testing.T) {
	t.Parallel()
	s, c := counterSite(t)
	s.log.session = jig.Session{Tenant: "acme", ID: "acme.known", Agent: jig.Agent{Name: jig.CallAgent}, Principal: jig.Principal{ID: "ana"}, Source: jig.SourceAPI}
	s.log.add(jig.EventSessionStarted, jig.EventToolNeedsApproval)
	answer, content := s.open(http.MethodPost, "/v1/tools/crm.note/test/stream", noted)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	stream := &stream{bufio.NewScanner(content), answer}
	require.Equal(t, []string{"retry: 2000", ""}, stream.until(t, "event: call"))
	require.JSONEq(t, `{"session_id":"acme.known","call":"1.1","status":"reserved"}`, strings.TrimPrefix(stream.lines(t, 1)[0], "data: "))
	require.Equal(t, []string{""}, stream.until(t, "id: 2"), "the start of the session is no event of a call")
	require.Equal(t, "event: tool.needs_approval", stream.lines(t, 1)[0])
	stream.until(t, "")
	s.log.mu.Lock()
	s.log.ran("1.1", jig.ToolResult{Success: true, Data: json.RawMessage(`{"text":"hello"}`)}, nil)
	s.log.mu.Unlock()
	s.log.add(jig.EventPassStarted, jig.EventSessionCompleted)
	rest := stream.rest(t)
	require.Contains(t, rest, "id: 3\nevent: tool.started\n")
	require.Contains(t, rest, "id: 4\nevent: tool.completed\n")
	require.NotContains(t, rest, "event: pass.")
	require.NotContains(t, rest, "event: session.")
	_, run, found := strings.Cut(rest, "event: run\ndata: ")
	require.True(t, found, rest)
	require.JSONEq(t, `{
		"id": "acme.known/1.1", "tenant_id": "acme", "tool_slug": "file.read", "user_id": "ana", "input": {"path": "a"}, "output": {"text": "hello"},
		"status": "success", "error": null, "duration_ms": 2000, "source": "api", "chat_id": null, "session_id": "acme.known"
	}`, run)
	require.Len(t, c.called, 1)
}

// A call that was refused has not run. The other address of the operation streams, too.
func TestToolTest_StreamsRefusedCalls(t *testing.T) {
	t.Parallel()
	s, _ := counterSite(t)
	s.log.ran("1.1", jig.Failure(jig.Errorf(jig.CodeDenied, "no")), func(c *jig.Call) { c.StartedAt = nil })
	s.log.add(jig.EventToolDenied, jig.EventSessionCompleted)
	for _, path := range []string{"/v1/tools/crm.note/test/stream", "/api/tools/crm.note/test/stream"} {
		_, body := s.send(http.MethodPost, path, noted)
		require.Contains(t, body, "event: tool.denied\n")
		require.NotContains(t, body, "event: run")
	}
}

// A stream that ends because the server stops does not claim that the call has ended.
func TestToolTest_StreamEndsWithTheServer(t *testing.T) {
	t.Parallel()
	s, _ := counterSite(t)
	s.log.ran("1.1", jig.ToolResult{Success: true}, nil)
	s.log.add(jig.EventToolHeld)
	answer, content := s.open(http.MethodPost, "/v1/tools/crm.note/test/stream", noted)
	stream := &stream{bufio.NewScanner(content), answer}
	stream.until(t, "id: 3")
	s.api.Drain()
	rest := stream.rest(t)
	require.Contains(t, rest, "retry: 500")
	require.NotContains(t, rest, "event: run")
}

// What is wrong with a request is said before anything is called or streamed. A test needs both scopes.
func TestToolTest_RefusesBeforeItBegins(t *testing.T) {
	t.Parallel()
	s, c := counterSite(t)
	both := s.keys.add("acme", credential.ScopeAuthor, credential.ScopeRun)
	for name, bad := range map[string]struct {
		key, tool, body string
		status          int
		field           string
	}{
		"an unknown tool":          {both, "crm.other", noted, http.StatusNotFound, "tool"},
		"a name that no tool has":  {both, "Crm..note", noted, http.StatusNotFound, "tool"},
		"a wrong input":            {both, "crm.note", `{}`, http.StatusUnprocessableEntity, "input"},
		"an unknown member":        {both, "crm.note", `{"principal":"ben"}`, http.StatusUnprocessableEntity, "body.principal"},
		"no JSON":                  {both, "crm.note", `{`, http.StatusBadRequest, ""},
		"without the scope run":    {s.keys.add("acme", credential.ScopeAuthor), "crm.note", noted, http.StatusForbidden, ""},
		"without the scope author": {s.keys.add("acme", credential.ScopeRun), "crm.note", noted, http.StatusForbidden, ""},
		"without a key":            {"", "crm.note", noted, http.StatusUnauthorized, ""},
	} {
		s.key = bad.key
		for _, path := range []string{"/test", "/test/stream"} {
			answer, body := s.send(http.MethodPost, "/v1/tools/"+bad.tool+path, bad.body, "Accept", "text/event-stream")
			p := problem(t, answer, body)
			require.Equal(t, bad.status, p.Status, "%s: %s", name, body)
			require.Equal(t, bad.field, p.Field, "%s: %s", name, body)
		}
	}
	require.Empty(t, c.called)
}
