package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// transportRunner runs commands as ana, over one of the two transports, and keeps what each one said in a form that does not depend on the transport.
type transportRunner struct {
	*testEnv
	said map[string]string
}

// transportRunnerOn returns an environment whose commands use a transport: direct or http.
func transportRunnerOn(t *testing.T, transport string) *transportRunner {
	t.Helper()
	d := joinEnv(t)
	d.env = append(d.env, "JIG_PRINCIPAL=ana", "NO_COLOR=1")
	if transport == "http" {
		server := d.serve()
		// Whoever reaches the server needs neither Temporal nor the database.
		d.env = append(d.env, "JIG_URL="+server.url, "JIG_API_KEY="+d.apiKey(jig.DefaultTenant, everything()...), "JIG_TEMPORAL_ADDRESS=127.0.0.1:1",
			"TEMPORAL_ADDRESS=127.0.0.1:1", "JIG_DATABASE_URL=", "JIG_SERVER_DATABASE_URL=")
	}
	return &transportRunner{d, map[string]string{}}
}

// does runs a command with JSON output, which must end with an exit code, and returns the output. NAME in the arguments is the name of the environment.
func (c *transportRunner) does(code int, args ...string) map[string]any {
	c.t.Helper()
	step := strings.Join(args, " ")
	named := make([]string, len(args))
	for i, arg := range args {
		named[i] = strings.ReplaceAll(arg, "NAME", c.name)
	}
	got := c.jig(append(named, "--output", "json")...)
	require.Equal(c.t, code, got.code, "%s\n%s\n%s", step, got.out, got.err)
	text := got.out
	if strings.TrimSpace(text) == "" {
		lines := strings.Split(strings.TrimSpace(got.err), "\n")
		text = lines[len(lines)-1]
	}
	var first map[string]any
	_ = json.Unmarshal([]byte(strings.Split(strings.TrimSpace(text), "\n")[0]), &first) //nolint:errcheck // some commands print a text
	// Other tests may have started so many sessions that there are more pages.
	delete(first, "next_cursor")
	c.said[step] = strings.Join(slices.Sorted(maps.Keys(first)), " ")
	if e, ok := first["error"].(map[string]any); ok {
		c.said[step] += fmt.Sprint(" ", e["code"])
	}
	return first
}

// waiting waits until a call waits in a session.
func (c *transportRunner) waiting(session string) {
	c.t.Helper()
	require.True(c.t, eventually(c.t.Context(), patience, func() bool {
		got := c.jig("approvals", "--session", session, "--output", "json")
		return got.code == 0 && strings.Contains(got.out, `"call":"1.1"`)
	}))
}

// work runs every command that needs the engine.
func (c *transportRunner) work() {
	c.t.Helper()
	c.put("writer.md", writer())
	c.put("policy.yaml", "kind: policy\nname: probe\nrules:\n  - name: writes\n    when: tool.name == 'file.write'\n    verdict: ask\n    reason: it writes\n")
	c.put("spec.yaml", "kind: composition\nname: probe\ndescription: Reads a file for a test.\nsteps:\n  - id: list\n    tool: file.list\n    input: {path: .}\noutput: ${steps.list.data}\n")

	c.does(0, "run", "writer.md", "--id", "one-NAME", "--detach")
	c.waiting("one-" + c.name)
	c.does(0, "status", "one-NAME")
	c.does(0, "approvals", "show", "one-NAME", "1.1")
	c.does(0, "approvals", "statistics")
	c.does(3, "result", "one-NAME")
	c.does(1, "approve", "one-NAME", "1.1", "--digest", "stale")
	c.does(0, "approve", "one-NAME", "1.1", "--note", "looks right")
	c.does(0, "run", "writer.md", "--id", "one-NAME") // the session exists; this waits for its end
	c.does(0, "result", "one-NAME")
	c.does(0, "result", "one-NAME", "1.1")
	c.does(0, "transcript", "one-NAME")
	c.does(0, "events", "one-NAME")
	c.does(0, "watch", "one-NAME")
	c.does(0, "sessions", "--status", "completed")
	c.does(0, "message", "one-NAME", "and again")
	c.does(1, "run", "writer.md", "--id", "one-NAME", "--task", "another")

	c.does(0, "run", "writer.md", "--id", "two-NAME", "--detach")
	c.waiting("two-" + c.name)
	c.does(0, "delegate", "two-NAME", "1.1", "--to", "ben")
	c.does(0, "cancel", "two-NAME", "--reason", "not needed")
	c.does(0, "run", "writer.md", "--id", "three-NAME", "--detach")
	c.waiting("three-" + c.name)
	c.does(0, "deny", "three-NAME", "1.1", "--reason", "no")
	c.does(4, "run", "writer.md", "--id", "three-NAME")

	c.does(0, "trigger", "file.list", "--input", "path=.")
	c.does(1, "trigger", "no.tool")
	c.does(3, "trigger", "file.write", "--input", `{"path": "a.txt", "content": "x"}`, "--id", "four-NAME", "--no-wait")
	c.does(0, "trigger", "file.write", "--input", `{"path": "a.txt", "content": "x"}`, "--id", "four-NAME", "--yes")
	c.does(3, "trigger", "person.ask", "--input", "question=why?", "--id", "five-NAME", "--no-wait")
	c.does(1, "reconcile", "five-NAME", "1.1", "--outcome", "happened")
	c.does(0, "answer", "five-NAME", "1.1", "because")
	c.does(0, "run", "spec.yaml", "--id", "six-NAME")

	c.does(0, "pause", "--session", "one-NAME", "--reason", "wait")
	c.does(0, "pause", "--list")
	c.does(0, "resume", "--session", "one-NAME")
	granted := c.does(0, "grant", "create", "--tool", "http.post", "--uses", "2", "--yes")
	text, err := json.Marshal(granted)
	require.NoError(c.t, err)
	var made struct {
		Result struct {
			Data struct {
				GrantID string `json:"grant_id"`
			}
		}
	}
	require.NoError(c.t, json.Unmarshal(text, &made))
	grant := made.Result.Data.GrantID
	require.NotEmpty(c.t, grant, "%v", granted)
	c.does(0, "grant", "list")
	got := c.jig("grant", "revoke", grant, "--output", "json")
	require.Zero(c.t, got.code, got.err)

	c.does(0, "catalog")
	c.does(0, "catalog", "show", "file.write")
	c.does(0, "validate", "writer.md")
	c.does(0, "explain", "spec.yaml")
	c.does(0, "policy", "list")
	c.does(0, "policy", "backtest", "policy.yaml")
	c.does(0, "policy", "explain", "policy.yaml", "--tool", "file.write")
	c.does(0, "audit", "list", "--session", "one-NAME")
	c.does(0, "audit", "head")
	c.does(0, "audit", "export")
	c.does(0, "usage")
	c.does(0, "people", "list")
	c.does(3, "key", "disable", "nothing-NAME", "--id", "seven-NAME", "--no-wait")
	c.does(0, "deny", "seven-NAME", "1.1", "--reason", "no such key")
	c.does(1, "status", "ent_none")

	c.does(0, "schedule", "create", "s-NAME", "--tool", "file.list", "--input", "path=.", "--every", "24h", "--paused")
	c.does(1, "schedule", "create", "s-NAME", "--tool", "file.list", "--input", "path=.", "--every", "24h")
	c.does(0, "schedule", "list")
	c.does(0, "schedule", "describe", "s-NAME")
	c.does(0, "schedule", "resume", "s-NAME", "--note", "go")
	c.does(0, "schedule", "pause", "s-NAME")
	c.does(0, "schedule", "trigger", "s-NAME")
	c.does(0, "schedule", "delete", "s-NAME")
	c.does(1, "schedule", "describe", "s-NAME")
	c.does(1, "status", "nothing-NAME")
	c.does(1, "approve", "nothing-NAME", "1.1")
}

// Every command works over HTTP as it does with Temporal: the same exit codes, the same members of the output, the same codes of errors.
func TestCommands_WorkOverBothTransports(t *testing.T) {
	t.Parallel()
	said := map[string]map[string]string{}
	for _, transport := range []string{"direct", "http"} {
		c := transportRunnerOn(t, transport)
		c.work()
		said[transport] = c.said
	}
	// Over HTTP, a schedule also says which API key created it, and who made that key.
	for step, members := range said["direct"] {
		if names := strings.Fields(members); slices.Contains(names, "catch_up") {
			said["direct"][step] = strings.Join(slices.Sorted(slices.Values(append(names, "credential", "maker"))), " ")
		}
	}
	require.Equal(t, said["direct"], said["http"])
}

// The tenant and the principal are those of the credential; commands say so if the user names other ones.
func TestCommands_OverHTTPActForTheCredential(t *testing.T) {
	t.Parallel()
	c := transportRunnerOn(t, "http")
	for _, args := range [][]string{{"sessions", "--tenant", "other"}, {"sessions", "--as", "ben"}} {
		got := c.jig(args...)
		require.Equal(t, 1, got.code, got.err)
		require.Contains(t, got.err, "the credential belongs to")
	}
	got := c.jig("worker", "--url", "http://127.0.0.1:1")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, "does not work over HTTP")
	c.env = append(c.env, "JIG_API_KEY=jig_aaaaaaaaaaaaaaaa_"+strings.Repeat("a", 52))
	got = c.jig("sessions")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "no valid credential")
	c.env = append(c.env, "JIG_API_KEY=")
	got = c.jig("sessions")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, "JIG_API_KEY")
	c.env = append(c.env, "JIG_URL=http://127.0.0.1:1", "JIG_API_KEY=x")
	got = c.jig("sessions")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, "http://127.0.0.1:1 does not answer")
}

// A follower of a tenant gets what happens in all its sessions, and continues on another server without a gap.
func TestAPI_TenantEventsResumeOnAnotherServer(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	first, second := d.serve(), d.serve()
	tenant := "inbox-" + d.name[:8]
	key := d.apiKey(tenant, everything()...)
	a, b := apiClient{first, key}, apiClient{second, key}
	begin := get[struct {
		Next string `json:"next_cursor"`
	}](a, "/v1/events").Next
	one := []string{}
	read := func(c apiClient, last string, until jig.EventType) string {
		_, content := c.open(http.MethodGet, "/v1/events", nil, "Accept", "text/event-stream", "Last-Event-ID", last)
		lines := bufio.NewScanner(content)
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				last = id
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "{}" {
				var e jig.Event
				require.NoError(t, json.Unmarshal([]byte(data), &e))
				one = append(one, e.SessionID+" "+string(e.Type))
				if e.Type == until {
					return last
				}
			}
		}
		require.Fail(t, "the stream ended")
		return ""
	}
	for _, id := range []string{"x", "y"} {
		answer, body := a.send(http.MethodPost, "/v1/sessions", map[string]any{"id": id, "document": writer()})
		require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	}
	last := read(a, begin, jig.EventToolNeedsApproval)
	first.kill()
	for id, answers := range map[string]string{"x": "approve", "y": "deny"} { // both write the same file
		asked := b.waits(id)
		answer, body := b.send(http.MethodPost, "/v1/approvals:decide", map[string]any{"decisions": []any{
			map[string]any{"session_id": id, "call": asked.Call, "answer": answers, "digest": asked.Digest},
			map[string]any{"session_id": "nobody", "call": "1.1", "answer": "approve", "digest": "d"},
		}})
		require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
		require.Contains(t, string(body), `"outcome":"accepted"`)
		require.Contains(t, string(body), `"outcome":"failed"`)
	}
	last = read(b, last, jig.EventSessionCompleted)
	read(b, last, jig.EventSessionCompleted)
	seen := map[string]int{}
	for _, e := range one {
		seen[e]++
	}
	for id, decided := range map[string]jig.EventType{"x": jig.EventToolApproved, "y": jig.EventToolDenied} {
		for _, name := range []jig.EventType{jig.EventSessionStarted, jig.EventToolNeedsApproval, decided, jig.EventSessionCompleted} {
			require.Equal(t, 1, seen[tenant+"."+id+" "+string(name)], "%v", one)
		}
	}
}
