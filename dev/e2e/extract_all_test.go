package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/workflows"
)

// extractAll starts to fill many entities and returns the session.
func (g entityEnv) extractAll(input map[string]any) string {
	g.t.Helper()
	in := callInput("entities.extractAll", input)
	in.Tenant, in.Principal.Permissions = g.tenant, []string{"entities.*.read", "entities.*.write"}
	session := newID(g.tenant)
	go func() { _, _ = g.Trigger(g.t.Context(), in, session) }() //nolint:errcheck // it returns only at the end; the test waits for the session instead
	require.True(g.t, eventually(g.t.Context(), patience, func() bool {
		_, err := g.query(session)
		return err == nil
	}))
	return session
}

// all waits for the end of a batch and returns its result.
func (g entityEnv) all(session string) extraction.BatchResult {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 3*patience)
	defer cancel()
	done, err := g.WaitCall(ctx, g.tenant, session)
	require.NoError(g.t, err)
	require.Equal(g.t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	whole, err := g.WholeResult(g.t.Context(), g.tenant, done)
	require.NoError(g.t, err)
	var out extraction.BatchResult
	require.NoError(g.t, json.Unmarshal(whole.Data, &out))
	return out
}

// requireOnce checks the number of task events of each type, and that each task of each entity has exactly one.
func (g entityEnv) requireOnce(session string, kinds map[jig.EventType]int) {
	g.t.Helper()
	for kind, want := range kinds {
		told := map[string]int{}
		for _, e := range g.eventsOf(session, kind) {
			var about extraction.TaskEvent
			require.NoError(g.t, json.Unmarshal(e.Data, &about))
			told[about.EntityID+" "+about.Task]++
		}
		require.Len(g.t, told, want, kind)
		for task, times := range told {
			require.Equal(g.t, 1, times, "%s: %s", kind, task)
		}
	}
}

// requireSmallFrame checks the histories of the workflow runs that answer a call.
func (g entityEnv) requireSmallFrame(session, call string) biggest {
	g.t.Helper()
	b := g.histories(workflows.FrameWorkflowID(session, call))
	require.LessOrEqual(g.t, b.events, int64(1000))
	require.LessOrEqual(g.t, b.bytes, int64(1<<20))
	return b
}

func (g entityEnv) crowd(n int, content func(int) map[string]any) []entity.Entity {
	g.t.Helper()
	list := make([]entity.Entity, n)
	for i := range list {
		list[i] = g.entity(content(i))
	}
	return list
}

const crowdTasks = `fields:
  - {name: url, type: text}
  - {name: n, type: number, integer: true}
  - {name: facts, type: number, task: facts}
  - {name: share, type: number, task: share}
  - {name: note, type: text, task: note}
tasks:
  - {id: facts, tool: test.keyed, input: {url: "${entity.content.url}", name: "e${entity.content.n}", before: 5, after: 10}, value: result.status}
  - {id: share, compute: "100 / (entity.content.n % 10)"}
  - {id: note, depends_on: [facts], compute: "'status ' + string(tasks.facts)"}
`

// killTwice kills the worker at two random moments, like a power failure would, and starts another.
func (g entityEnv) killTwice(within time.Duration, seed int64) {
	random := rand.New(rand.NewPCG(uint64(seed), 3))
	for range 2 {
		<-time.After(time.Duration(random.Int64N(int64(within)))) // the time of the power failure
		g.kill()
		g.start()
	}
}

func TestExtractAll_SurvivesKills(t *testing.T) {
	t.Parallel()
	_, seed := chaos(t, 1, 1, 1)
	g, r := newEntityEnv(t, crowdTasks), newReceiver(t)
	entities := g.crowd(300, func(i int) map[string]any { return map[string]any{"url": r.URL, "n": i} })
	session := g.extractAll(map[string]any{"type": "thing", "max_parallel": 30})
	g.killTwice(3*time.Second, seed)
	out := g.all(session)
	require.Equal(t, 300, out.Matched)
	require.Equal(t, extraction.BatchCounts{Completed: 270, Partial: 30}, out.BatchCounts)
	require.Len(t, out.Failures, 30)
	require.Contains(t, out.Failures[0].Error.Message, "task share")
	g.requireOnce(session, map[jig.EventType]int{
		jig.EventTaskCompleted: 870, jig.EventTaskFailed: 30, jig.EventTaskStarted: 900, jig.EventTaskSkipped: 0,
	})
	for _, i := range []int{0, 7, 299} {
		now, err := g.db.Entity(t.Context(), g.tenant, entities[i].ID)
		require.NoError(t, err)
		require.Contains(t, string(now.Content), `"note": "status 204"`)
		_, keys := r.count(fmt.Sprintf("e%d", i))
		require.Equal(t, 1, keys)
		g.requireSmallFrame(session, "1.1/"+entities[i].ID)
	}
	require.GreaterOrEqual(t, g.requireSmallFrame(session, "1.1").runs, int64(3), "a long run continues as new")

	// A second run handles only the remaining entities.
	left := []any{map[string]any{"field": "share", "op": "eq", "value": nil}}
	out = g.all(g.extractAll(map[string]any{"type": "thing", "mode": "retry", "limit": 5, "where": left}))
	require.Equal(t, 5, out.Matched)
	require.Equal(t, extraction.BatchCounts{Partial: 5}, out.BatchCounts)
}

func TestExtractAll_Computes(t *testing.T) {
	t.Parallel()
	_, seed := chaos(t, 1, 1, 1)
	g := newEntityEnv(t, sevenTasks)
	entities := g.crowd(300, func(i int) map[string]any { return map[string]any{"path": fmt.Sprintf("github.com/jig-run/jig%d", i)} })
	session := g.extractAll(map[string]any{"type": "thing"})
	g.killTwice(time.Second, seed)
	out := g.all(session)
	require.Equal(t, extraction.BatchCounts{Completed: 300}, out.BatchCounts)
	require.Equal(t, 3, out.Pages)
	g.requireOnce(session, map[jig.EventType]int{jig.EventTaskStarted: 2400, jig.EventTaskCompleted: 2400})
	g.requireSmallFrame(session, "1.1")
	_, err := shared.temporal.DescribeWorkflowExecution(t.Context(), workflows.FrameWorkflowID(session, "1.1/"+entities[9].ID), "")
	require.Error(t, err, "an extraction that only computes needs no workflow of its own")

	var progress protocol.Progress
	value, err := shared.temporal.QueryWorkflow(t.Context(), workflows.FrameWorkflowID(session, "1.1"), "", protocol.QueryStatus)
	require.NoError(t, err)
	require.NoError(t, value.Get(&progress))
	require.Equal(t, protocol.Progress{Done: 300, Total: 300}, progress)
}

// A caller who lacks the permission to write the type, or who names an unknown type or field, gets an error before anything runs.
func TestExtractAll_ChecksPermissionsFirst(t *testing.T) {
	t.Parallel()
	g := joinTenantEnv(t).withEntityType(sevenTasks)
	g.entity(map[string]any{"path": "a/b/c"})
	for name, c := range map[string]struct {
		input       map[string]any
		permissions []string
		code        jig.Code
	}{
		"may not write": {map[string]any{"type": "thing"}, []string{"entities.thing.read"}, jig.CodeNotPermitted},
		"may not read":  {map[string]any{"type": "thing"}, []string{"entities.thing.write"}, jig.CodeNotFound},
		"no such type":  {map[string]any{"type": "thong"}, []string{"*"}, jig.CodeNotFound},
		"no such field": {map[string]any{"type": "thing", "fields": []string{"colour"}}, []string{"*"}, jig.CodeInvalidInput},
		"a bad filter": {
			map[string]any{"type": "thing", "where": []any{map[string]any{"field": "colour", "op": "eq", "value": 1}}}, []string{"*"}, jig.CodeInvalidInput,
		},
	} {
		in := callInput("entities.extractAll", c.input)
		in.Tenant, in.Principal.Permissions = g.tenant, c.permissions
		result, err := g.Trigger(t.Context(), in, "")
		require.NoError(t, err, name)
		done, err := g.WaitCall(t.Context(), g.tenant, result.SessionID)
		require.NoError(t, err, name)
		require.Equal(t, c.code, done.Result.Error.Code, "%s: %+v", name, done.Result.Error)
		require.Empty(t, g.eventsOf(result.SessionID, jig.EventTaskStarted), name)
	}
}

// The calls of a batch are calls of its session, so a batch fills nothing if the agent lacks the tools for these calls.
func TestExtractAll_RespectsTheToolsOfAnAgent(t *testing.T) {
	t.Parallel()
	g := joinTenantEnv(t).withEntityType(sevenTasks)
	e := g.entity(map[string]any{"path": "github.com/jig-run/jig"})
	for tools, worked := range map[string]string{`["entities.extractAll"]`: "0", `["entities.extractAll", "entities.filter", "entities.extract"]`: "1"} {
		started, err := g.Start(t.Context(), client.StartOptions{
			Tenant: g.tenant, DocumentName: "probe.md", Principal: jig.Principal{ID: "tester", Permissions: []string{"entities.*.read", "entities.*.write"}},
			Document: agent(tools, `    - when: pass == 1
      calls: [{tool: entities.extractAll, input: {type: thing}}]
    - answer: "${calls.filter(c, c.success).size()}"
`),
		})
		require.NoError(t, err)
		require.Equal(t, worked, g.finish(started.SessionID).Answer, tools)
		if worked == "0" {
			require.Empty(t, g.eventsOf(started.SessionID, jig.EventTaskStarted))
			require.Contains(t, string(g.eventsOf(started.SessionID, jig.EventToolFailed)[0].Data), string(jig.CodeNotPermitted))
		}
	}
	now, err := g.db.Entity(t.Context(), g.tenant, e.ID)
	require.NoError(t, err)
	require.Contains(t, string(now.Content), `"owner": "jig-run"`)
}

// Canceling a batch ends it and its waiting approvals.
func TestExtractAll_IsCanceled(t *testing.T) {
	t.Parallel()
	g, r := joinTenantEnv(t).withEntityType(graphTasks), newReceiver(t)
	g.crowd(5, func(i int) map[string]any { return map[string]any{"url": r.URL, "name": fmt.Sprintf("c%d", i)} })
	session := g.extractAll(map[string]any{"type": "thing", "max_parallel": 2})
	g.until(session, func(v jig.SessionView) bool { return v.Status == jig.StatusInputRequired && len(v.Pending) == 2 })
	require.NoError(t, g.Cancel(t.Context(), g.tenant, session))
	require.Equal(t, jig.StatusCanceled, g.finish(session).Status)
	require.True(t, eventually(t.Context(), patience, func() bool {
		described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), workflows.FrameWorkflowID(session, "1.1"), "")
		return err == nil && described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	}))
	for i := range 5 {
		requests, _ := r.count(fmt.Sprintf("c%d-publish", i))
		require.Zero(t, requests)
	}
}
