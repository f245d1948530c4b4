package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// lines returns the lines of the worker's log, which is JSON, about a session.
func (d *testEnv) lines(session string) []map[string]any {
	d.t.Helper()
	out, err := os.ReadFile(d.log.Name())
	require.NoError(d.t, err)
	var list []map[string]any
	for line := range strings.Lines(string(out)) {
		var entry map[string]any
		if strings.Contains(line, session) && json.Unmarshal([]byte(line), &entry) == nil {
			list = append(list, entry)
		}
	}
	return list
}

// The session's log has one event when a pause holds a call back, and whoever waits for the call sees it. The worker logs no error, but one line
// for each call that ended.
func TestPause_IsSeenByWhoeverWaits(t *testing.T) {
	t.Parallel()
	d := startEnv(t, "JIG_LOG_LEVEL=info", "JIG_LOG_FORMAT=json")
	file := d.file("probe.md", agent(`["test.*"]`, `    - when: pass == 1
      calls:
        - {tool: test.nothere, input: {}}
        - {tool: test.echo, input: {value: beside}}
        - {tool: test.fail, input: {name: broken}}
    - answer: done
`))
	request := client.PauseRequest{Tenant: jig.DefaultTenant, Scope: jig.PauseTool, Target: "test.echo", By: "ana", Reason: "the other side moves"}
	_, err := d.Pause(t.Context(), request)
	require.NoError(t, err)
	id := newID(jig.DefaultTenant)
	ended := make(chan commandResult, 1)
	go func() { ended <- d.jig("run", file, "--id", jig.ClientID(id)) }()
	tried := func() int { return len(d.eventsSoFar(id, jig.EventToolPaused)) }
	require.True(t, eventually(t.Context(), patience, func() bool { return tried() == 1 }))
	d.kill() // another worker that tries the call again does not repeat the event
	d.start()
	_, err = d.Resume(t.Context(), request)
	require.NoError(t, err)
	got := <-ended
	require.Equal(t, "done\n", got.out, got.err)
	require.Contains(t, got.err, "? 1.2 test.echo held back by a pause · tool test.echo: the other side moves (by ana, claimed)")
	require.Equal(t, 1, tried())

	calls := map[string]string{}
	for _, line := range d.lines(id) {
		require.NotEqual(t, "ERROR", line["level"], "%v", line)
		if line["msg"] == "call ended" {
			call := fmt.Sprint(line["call_id"])
			require.Empty(t, calls[call], "one line for each call")
			calls[call] = fmt.Sprint(line["status"])
			require.Equal(t, "INFO", line["level"])
		}
	}
	require.Equal(t, map[string]string{ // the first was refused and never ran
		"1.1": "failed", "1.2": "succeeded", "1.3": "failed",
	}, calls)
}

// A call that a person denies is logged like the others, once, also if the decision is sent twice; so is one that a person answers for.
func TestDeniedCalls_AreLogged(t *testing.T) {
	t.Parallel()
	d := startEnv(t, "JIG_LOG_LEVEL=info", "JIG_LOG_FORMAT=json")
	r := newReceiver(t)
	id := d.run(agent(`["test.*"]`, `    - when: pass == 1
      calls:
        - {tool: test.write, input: {url: "`+r.URL+`", name: a}}
        - {tool: test.write, input: {url: "`+r.URL+`", name: b}}
    - answer: done
`), nil)
	d.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 2 })
	for range 2 {
		d.jig("deny", id, "1.1", "--as", "ana", "--reason", "not today")
	}
	require.Zero(t, d.jig("approve", id, "1.2", "--as", "ana").code)
	require.Equal(t, "done", d.finish(id).Answer)
	logged := map[string][]string{}
	for _, line := range d.lines(id) {
		if line["msg"] == "call ended" {
			require.Equal(t, "INFO", line["level"])
			logged[fmt.Sprint(line["call_id"])] = append(logged[fmt.Sprint(line["call_id"])], fmt.Sprintf("%v %v", line["status"], line["error"]))
		}
	}
	require.Equal(t, map[string][]string{"1.1": {"denied not today"}, "1.2": {"succeeded <nil>"}}, logged)
}
