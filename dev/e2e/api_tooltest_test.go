package e2e_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// streamed is a message of an event stream.
type streamed struct{ id, event, data string }

// message reads the next message of a stream that has data; false at the end of the stream.
func message(lines *bufio.Scanner) (m streamed, more bool) {
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data = value
			return m, true
		}
	}
	return m, false
}

// A test of a tool is a real call. The stream of a test shows that its call waits for a person, and how the call ends.
func TestAPI_TestsTools(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	d.put("a.txt", "x")
	c := apiClient{d.serve(), d.apiKey(jig.DefaultTenant, everything()...)}
	answer, body := c.send(http.MethodPost, "/v1/tools/file.read/test", map[string]any{"input": map[string]any{"path": "a.txt"}})
	require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
	var result protocol.CallResult
	require.NoError(t, json.Unmarshal(body, &result))
	require.Equal(t, jig.CallSucceeded, result.Status)

	for path, status := range map[string]int{"/v1/tools/file.nothing/test/stream": http.StatusNotFound, "/v1/tools/file.write/test/stream": http.StatusUnprocessableEntity} {
		answer, body = c.send(http.MethodPost, path, map[string]any{"input": map[string]any{"path": 7}})
		require.Equal(t, status, answer.StatusCode, string(body))
		require.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"))
	}

	test := func() io.Reader {
		body := map[string]any{"input": map[string]any{"path": "b.txt", "content": "y"}}
		answer, content := c.open(http.MethodPost, "/api/tools/file.write/test/stream", body, "Idempotency-Key", "test-1")
		require.Equal(t, http.StatusOK, answer.StatusCode)
		return content
	}
	lines := bufio.NewScanner(test())
	first, _ := message(lines)
	require.Equal(t, "call", first.event)
	var called protocol.CallResult
	require.NoError(t, json.Unmarshal([]byte(first.data), &called))
	asks, _ := message(lines)
	require.Equal(t, string(jig.EventToolNeedsApproval), asks.event)
	require.NoFileExists(t, filepath.Join(d.dir, "b.txt"), "nothing happens before the approval")
	waiting := c.waits(called.SessionID)
	answer, body = c.send(http.MethodPost, "/v1/approvals/"+called.SessionID+"/decision",
		map[string]any{"call": called.Call, "answer": "approve", "digest": waiting.Digest})
	require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
	var events []string
	var last streamed
	for m, more := message(lines); more; m, more = message(lines) {
		events, last = append(events, m.event), m
	}
	require.Equal(t, []string{string(jig.EventToolApproved), string(jig.EventToolStarted), string(jig.EventToolCompleted), "run"}, events)
	require.Empty(t, last.id)
	require.Contains(t, last.data, `"tool_slug":"file.write"`)
	require.Contains(t, last.data, `"status":"success"`)
	require.Equal(t, "y", d.content("b.txt"))
	_, body = c.send(http.MethodGet, "/v1/sessions/"+called.SessionID+"/events?after="+asks.id, nil)
	require.Contains(t, string(body), string(jig.EventToolCompleted), "the session has what follows after an interruption")

	d.put("b.txt", "since changed")
	lines = bufio.NewScanner(test())
	again, _ := message(lines)
	require.Contains(t, again.data, called.SessionID, "it is the same test")
	for m, more := message(lines); more; m, more = message(lines) {
		last = m
	}
	require.Equal(t, "run", last.event)
	require.Equal(t, "since changed", d.content("b.txt"), "it does not happen again")
}
