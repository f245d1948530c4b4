package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// delegating returns an agent that passes its task to another agent and gives that agent's answer.
func delegating(to string) string {
	return agent(`["agent.run"]`, fmt.Sprintf(`    - when: pass == 1
      calls: [{tool: agent.run, input: {agent: %q, input: {url: "${input.url}", name: "${input.name}"}}}]
    - answer: "${calls[0].success ? calls[0].data.answer : calls[0].error.code}"
`, to), "agents: ["+to+"]")
}

func named(document, name string) string {
	return strings.Replace(document, "name: probe", "name: "+name, 1)
}

// Agent A starts B, B starts C, and C's call waits for a person. All three sessions show the call, also in their events; it is answered
// through A, and `jig run --no-wait` of A returns.
func TestApproval_InAChainOfAgents(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	tag := strings.ToLower(d.queue[len(d.queue)-6:])
	middle, last := "middle-"+tag, "last-"+tag
	d.register(map[string]string{"middle.md": named(delegating(last), middle), "last.md": named(agent(`["test.*"]`, gatedRules), last)})
	d.put("first.md", delegating(middle))
	began := d.jig("run", "first.md", "--input", "url="+r.URL, "--input", "name=w", "--no-wait", "--output", "json")
	require.Equal(t, 3, began.code, began.err)
	var started struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(began.out), &started), began.out)
	id := started.SessionID
	var view jig.SessionView
	require.True(t, eventually(t.Context(), patience, func() bool {
		var err error
		view, err = d.Status(t.Context(), jig.DefaultTenant, id)
		return err == nil && view.Status == jig.StatusInputRequired
	}))
	require.Len(t, view.Pending, 1)
	waits := view.Pending[0]
	require.Equal(t, []string{"1.1", "1.1", "1.1"}, []string{waits.Call, waits.Via, waits.ParentCall})
	require.Equal(t, last, waits.Agent)
	require.Equal(t, waits.ParentID, view.Calls[0].Child, "the child of the root started it")
	listed, err := d.Approvals(t.Context(), jig.DefaultTenant, id)
	require.NoError(t, err)
	require.Len(t, listed, 1)
	begun := d.events(id, jig.EventToolStarted)
	require.Len(t, begun, 1)
	require.Contains(t, string(begun[0].Data), view.Calls[0].Child)

	for _, session := range []string{id, waits.ParentID} {
		heard := d.events(session, jig.EventToolNeedsApproval)
		require.Len(t, heard, 1)
		require.Equal(t, []string{"1.1", "test.write"}, []string{heard[0].CallID, heard[0].Tool})
		require.Contains(t, string(heard[0].Data), waits.SessionID)
	}
	got := d.jig("events", id)
	require.Contains(t, got.out, " → "+view.Calls[0].Child)
	require.Contains(t, got.out, "1.1 test.write waits for approval · in "+waits.SessionID+" 1.1")

	got = d.jig("approve", id, "1.1", "--as", "ana")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "written", d.finish(id).Answer)
	requests, _ := r.count("w")
	require.Equal(t, 1, requests)
}

// An agent that starts itself stops five levels below the first session.
func TestAgents_StartAgentsAtMostFiveLevelsDeep(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	name := "deep-" + strings.ToLower(d.queue[len(d.queue)-6:])
	document := named(delegating(name), name)
	d.register(map[string]string{"deep.md": document})
	id := d.run(document, map[string]any{"url": "http://localhost", "name": "w"})
	require.Equal(t, string(jig.CodeBudgetExhausted), d.finish(id).Answer)
}
