package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/dev/internal/port"
	"github.com/jig-run/jig/internal/protocol"
)

// serverProcess is a running server process.
type serverProcess struct {
	t   *testing.T
	url string
	cmd *exec.Cmd
}

// serve starts a server for the environment's workers and returns once it is ready. settings are further variables of its environment.
func (d *testEnv) serve(settings ...string) *serverProcess {
	d.t.Helper()
	address, err := port.Claim(d.t.Context(), "127.0.0.1:0")
	require.NoError(d.t, err)
	return d.serveAt(address, settings...)
}

func (d *testEnv) serveAt(address string, settings ...string) *serverProcess {
	d.t.Helper()
	log, err := os.Create(filepath.Join(d.t.TempDir(), "server.log"))
	require.NoError(d.t, err)
	r := &serverProcess{t: d.t, url: "http://" + address, cmd: exec.Command(shared.cli.path(d.t), "server")}
	r.cmd.Env, r.cmd.Dir = append(slices.Concat(d.env, settings), "JIG_HTTP_ADDR="+address), d.dir
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(d.t, r.cmd.Start())
	d.t.Cleanup(func() {
		r.kill()
		if out, err := os.ReadFile(log.Name()); err == nil && d.t.Failed() {
			d.t.Logf("the server's log:\n%s", tail(string(out), 3000))
		}
		_ = log.Close()
	})
	require.True(d.t, eventually(d.t.Context(), patience, func() bool {
		answer, err := http.Get(r.url + "/readyz")
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}), "the server is not ready")
	return r
}

// kill kills the server, like a power failure would.
func (r *serverProcess) kill() {
	if r.cmd.Process != nil {
		_ = r.cmd.Process.Kill() //nolint:errcheck // it may have ended
		_ = r.cmd.Wait()         //nolint:errcheck // it was killed, which Wait reports
	}
}

// apiClient makes requests with a credential.
type apiClient struct {
	*serverProcess
	key string
}

// apiKey makes an API key with the command line.
func (d *testEnv) apiKey(tenant string, more ...string) string {
	d.t.Helper()
	got := d.jig(append([]string{"api-key", "create", "--tenant", tenant, "--principal", "ana"}, more...)...)
	require.Zero(d.t, got.code, got.err)
	return strings.TrimSpace(got.out)
}

// everything are the flags of a key with all scopes.
func everything() []string {
	return []string{"--scope", "read", "--scope", "run", "--scope", "decide", "--scope", "author"}
}

// response is an answer without its body.
type response struct {
	StatusCode int
	Header     http.Header
}

// send makes a request and returns the answer with its whole body. The body of the request is JSON; nil sends none.
func (c apiClient) send(method, path string, body any, headers ...string) (response, []byte) {
	c.t.Helper()
	answer, content := c.open(method, path, body, headers...)
	text, err := io.ReadAll(content)
	require.NoError(c.t, err)
	return answer, text
}

// open makes a request and returns the answer, whose body is still to be read.
func (c apiClient) open(method, path string, body any, headers ...string) (response, io.Reader) {
	c.t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		require.NoError(c.t, err)
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, content)
	require.NoError(c.t, err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = answer.Body.Close() })
	return response{answer.StatusCode, answer.Header}, answer.Body
}

// get reads a JSON document, which must be there.
func get[T any](c apiClient, path string) T {
	c.t.Helper()
	answer, body := c.send(http.MethodGet, path, nil)
	require.Less(c.t, answer.StatusCode, 300, string(body))
	var into T
	require.NoError(c.t, json.Unmarshal(body, &into), string(body))
	return into
}

// approvalList is the part of a list of approvals that the tests use.
type approvalList struct{ Approvals []jig.Pending }

// waits returns the only call that waits in a session, once it does.
func (c apiClient) waits(session string) (asked jig.Pending) {
	c.t.Helper()
	require.True(c.t, eventually(c.t.Context(), patience, func() bool {
		list := get[approvalList](c, "/v1/approvals?session="+session).Approvals
		if len(list) == 1 {
			asked = list[0]
		}
		return len(list) == 1
	}))
	return asked
}

// eventReader reads a stream of events.
type eventReader struct {
	t      *testing.T
	answer response
	lines  *bufio.Scanner
}

func (c apiClient) follow(session string, last int64) *eventReader {
	c.t.Helper()
	answer, content := c.open(http.MethodGet, "/v1/sessions/"+session+"/events", nil, "Accept", "text/event-stream", "Last-Event-ID", strconv.FormatInt(last, 10))
	return &eventReader{t: c.t, answer: answer, lines: bufio.NewScanner(content)}
}

// next returns the next event; false at the end of the stream.
func (f *eventReader) next() (event jig.Event, more bool) {
	f.t.Helper()
	id := ""
	for f.lines.Scan() {
		line := f.lines.Text()
		if value, ok := strings.CutPrefix(line, "id: "); ok {
			id = value
		}
		if value, ok := strings.CutPrefix(line, "data: "); ok {
			require.NoError(f.t, json.Unmarshal([]byte(value), &event), value)
			require.Equal(f.t, strconv.FormatInt(event.Seq, 10), id)
			return event, true
		}
	}
	return event, false
}

// writer is an agent that writes a file, for which it needs an approval.
func writer() string {
	return agent(`["file.write"]`, `    - when: pass == 1
      calls: [{tool: file.write, input: {path: note.txt, content: hello}}]
    - answer: "it is written"
`)
}

// A server is killed between two events, and the client resumes on another one: no gap, nothing twice.
func TestAPI_StreamResumesOnAnotherServer(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	first, second := d.serve(), d.serve()
	key := d.apiKey(jig.DefaultTenant, everything()...)
	a, b := apiClient{first, key}, apiClient{second, key}
	start := map[string]any{"document": writer(), "task": "write"}
	answer, body := a.send(http.MethodPost, "/v1/sessions", start, "Idempotency-Key", "resume-"+d.name)
	require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	var started struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal(body, &started))
	again, body := b.send(http.MethodPost, "/v1/sessions", start, "Idempotency-Key", "resume-"+d.name)
	require.Equal(t, http.StatusOK, again.StatusCode, string(body))
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	require.Contains(t, string(body), started.SessionID)
	start["task"] = "another"
	other, body := b.send(http.MethodPost, "/v1/sessions", start, "Idempotency-Key", "resume-"+d.name)
	require.Equal(t, http.StatusUnprocessableEntity, other.StatusCode, string(body))

	seen := int64(0)
	before := a.follow(started.SessionID, 0)
	require.Equal(t, "text/event-stream", before.answer.Header.Get("Content-Type"))
	for seen < 2 {
		event, more := before.next()
		require.True(t, more)
		seen++
		require.Equal(t, seen, event.Seq)
	}
	first.kill()
	for { // what had arrived before the server was killed counts
		event, more := before.next()
		if !more {
			break
		}
		seen++
		require.Equal(t, seen, event.Seq)
	}

	after := b.follow(started.SessionID, seen)
	asked := b.waits(started.SessionID)
	stale, body := b.send(http.MethodPost, "/v1/approvals/"+started.SessionID+"/decision", map[string]any{"call": asked.Call, "answer": "approve", "digest": "stale"})
	require.Equal(t, http.StatusConflict, stale.StatusCode, string(body))
	require.Contains(t, string(body), `"outcome":"refused"`)
	shown := get[protocol.ShownCall](b, "/v1/approvals/"+started.SessionID+"?call="+asked.Call)
	require.Contains(t, string(shown.Input), "hello")
	decided, body := b.send(http.MethodPost, "/v1/approvals/"+started.SessionID+"/decision", map[string]any{"call": asked.Call, "answer": "approve", "digest": asked.Digest})
	require.Equal(t, http.StatusOK, decided.StatusCode, string(body))
	require.Contains(t, string(body), `"outcome":"accepted"`)
	var last jig.Event
	for {
		event, more := after.next()
		if !more {
			break
		}
		seen++
		require.Equal(t, seen, event.Seq, "nothing is missing, nothing comes twice")
		last = event
	}
	require.Equal(t, jig.EventSessionCompleted, last.Type, "the stream ends after the last event")
	require.Equal(t, http.StatusNoContent, b.follow(started.SessionID, seen).answer.StatusCode)
	result := get[protocol.SessionResult](b, "/v1/sessions/"+started.SessionID+"/result?wait=30")
	require.Equal(t, jig.StatusCompleted, result.Status)
	require.Equal(t, "it is written", result.Answer)
	require.Equal(t, "hello", d.content("note.txt"))
	require.Len(t, d.events(started.SessionID), int(seen))
}

// A call waits for its result if the client prefers that, and its whole record can be read.
func TestAPI_CallsTools(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	d.put("a.txt", "x")
	c := apiClient{d.serve(), d.apiKey(jig.DefaultTenant, everything()...)}
	answer, body := c.send(http.MethodPost, "/v1/tools/file.read/calls", map[string]any{"input": map[string]any{"path": "a.txt"}}, "Prefer", "wait=60")
	require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
	var result protocol.CallResult
	require.NoError(t, json.Unmarshal(body, &result))
	require.Equal(t, jig.CallSucceeded, result.Status)
	record := get[protocol.CallRecord](c, answer.Header.Get("Location"))
	require.Contains(t, string(record.Input), `"path":"a.txt"`)

	answer, body = c.send(http.MethodPost, "/v1/tools/file.write/calls",
		map[string]any{"id": "w-" + d.name, "input": map[string]any{"path": "b.txt", "content": "y"}}, "Prefer", "wait=60")
	require.Equal(t, http.StatusAccepted, answer.StatusCode, string(body))
	result = protocol.CallResult{}
	require.NoError(t, json.Unmarshal(body, &result))
	require.Equal(t, jig.CallWaiting, result.Status)
	require.Len(t, result.Pending, 1)
	canceled, body := c.send(http.MethodPost, "/v1/sessions/w-"+d.name+"/cancel", nil)
	require.Equal(t, http.StatusAccepted, canceled.StatusCode, string(body))
	ended := get[protocol.SessionResult](c, "/v1/sessions/w-"+d.name+"/result?wait=60")
	require.Equal(t, jig.StatusCanceled, ended.Status)

	d.kill() // without a worker a call is kept, and reading works
	answer, body = c.send(http.MethodPost, "/v1/tools/file.read/calls", map[string]any{"id": "r-" + d.name, "input": map[string]any{"path": "a.txt"}}, "Prefer", "wait=1")
	require.Equal(t, http.StatusAccepted, answer.StatusCode, string(body))
	require.Equal(t, jig.StatusWorking, get[jig.SessionView](c, "/v1/sessions/r-"+d.name).Status)
	stream := c.follow("r-"+d.name, 0)
	require.Equal(t, http.StatusOK, stream.answer.StatusCode, "a session that waits for a worker can be followed")
	d.start()
	event, more := stream.next()
	require.True(t, more)
	require.Equal(t, jig.EventSessionStarted, event.Type)
}

// A key that is revoked stops working at once, also for a stream that is open.
func TestAPI_RevokedKeyEndsItsStreams(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	server := d.serve()
	owner := apiClient{server, d.apiKey(jig.DefaultTenant, everything()...)}
	reader := apiClient{server, d.apiKey(jig.DefaultTenant, "--scope", "read", "--name", d.name)}
	_, body := owner.send(http.MethodPost, "/v1/sessions", map[string]any{"id": "s-" + d.name, "document": writer()})
	require.Contains(t, string(body), "s-"+d.name)
	owner.waits("s-" + d.name)
	stream := reader.follow("s-"+d.name, 0)
	_, more := stream.next()
	require.True(t, more)
	forbidden, body := reader.send(http.MethodPost, "/v1/sessions/s-"+d.name+"/cancel", nil)
	require.Equal(t, http.StatusForbidden, forbidden.StatusCode, string(body))
	id := strings.Split(reader.key, "_")[1]
	got := d.jig("api-key", "revoke", id)
	require.Zero(t, got.code, got.err)
	for more {
		_, more = stream.next() // ends although the session has not
	}
	refused, body := reader.send(http.MethodGet, "/v1/me", nil)
	require.Equal(t, http.StatusUnauthorized, refused.StatusCode, string(body))
	require.Equal(t, jig.StatusInputRequired, get[jig.SessionView](owner, "/v1/sessions/s-"+d.name).Status)
	listed := d.jig("api-key", "list")
	require.Regexp(t, id+` .*revoked`, listed.out)
}

// A server that stops ends its streams and then itself.
func TestAPI_StopDrains(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	server := d.serve()
	c := apiClient{server, d.apiKey(jig.DefaultTenant, everything()...)}
	_, body := c.send(http.MethodPost, "/v1/sessions", map[string]any{"id": "d-" + d.name, "document": writer()})
	require.Contains(t, string(body), "d-"+d.name)
	c.waits("d-" + d.name)
	stream := c.follow("d-"+d.name, 0)
	_, more := stream.next()
	require.True(t, more)
	require.NoError(t, server.cmd.Process.Signal(syscall.SIGTERM))
	for more {
		_, more = stream.next()
	}
	require.NoError(t, server.cmd.Wait(), "it ends without an error")
}
