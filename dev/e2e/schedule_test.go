package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// schedule creates a schedule on the command line and returns its name. The schedule is deleted at the end of the test, in the tenant that
// the arguments name.
func (d *testEnv) schedule(args ...string) string {
	d.t.Helper()
	name := strings.ToLower(strings.TrimPrefix(jig.NewSessionID(), jig.SessionPrefix))
	d.named(name, args...)
	return name
}

func (d *testEnv) named(name string, args ...string) {
	d.t.Helper()
	tenant := jig.DefaultTenant
	for i, arg := range args {
		if arg == "--tenant" {
			tenant = args[i+1]
		}
	}
	made := d.jig(append([]string{"schedule", "create", name}, args...)...)
	require.Zero(d.t, made.code, made.err)
	d.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), time.Minute)
		defer cancel()
		s, err := d.Schedule(ctx, tenant, name)
		if err == nil {
			err = d.DeleteSchedule(ctx, client.ScheduleRequest{Tenant: tenant, Name: name, By: jig.Principal{ID: s.Principal}})
		}
		if jig.CodeOf(err) != jig.CodeNotFound {
			require.NoError(d.t, err)
		}
	})
}

// described returns a schedule from the JSON output of the command line.
func (d *testEnv) described(name string, args ...string) client.Schedule {
	d.t.Helper()
	got := d.jig(append([]string{"schedule", "describe", name, "--output", "json"}, args...)...)
	require.Zero(d.t, got.code, got.err)
	var s client.Schedule
	require.NoError(d.t, json.Unmarshal([]byte(got.out), &s), got.out)
	return s
}

// scheduled waits until a schedule satisfies holds.
func (d *testEnv) scheduled(name string, holds func(client.Schedule) bool) client.Schedule {
	d.t.Helper()
	var s client.Schedule
	ok := eventually(d.t.Context(), patience, func() bool {
		var err error
		s, err = d.Schedule(d.t.Context(), jig.DefaultTenant, name)
		require.NoError(d.t, err)
		return holds(s)
	})
	require.True(d.t, ok, "schedule %s: still %+v", name, s)
	return s
}

// firings waits until a schedule has started n sessions and all of them have ended.
func (d *testEnv) firings(name string, n int) []client.ScheduledSession {
	d.t.Helper()
	return d.scheduled(name, func(s client.Schedule) bool {
		for _, session := range s.Recent {
			if !session.Status.Final() {
				return false
			}
		}
		return len(s.Recent) >= n
	}).Recent
}

func started(n int) func(client.Schedule) bool {
	return func(s client.Schedule) bool { return s.Counts != nil && s.Counts.Started >= n }
}

func TestScheduledTool_RunsUpToItsLimit(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	name := d.schedule("--tool", "test.echo", "--input", "value=hello", "--every", "2s", "--limit", "2")
	recent := d.firings(name, 2)
	require.Len(t, recent, 2)
	for _, session := range recent {
		require.Equal(t, jig.StatusCompleted, session.Status)
		require.Equal(t, jig.SessionPrefix+name+"-"+session.DueAt.UTC().Format(time.RFC3339), session.SessionID)
		require.Equal(t, int64(0), session.DueAt.Unix()%2)
		require.JSONEq(t, `{"value":"hello"}`, string(d.output(session.SessionID).Data))
		calls := d.stored(session.SessionID).Calls
		require.Len(t, calls, 1)
		require.Equal(t, jig.CallSucceeded, calls[0].Status)
	}
	s := d.described(name)
	require.Equal(t, "test.echo", s.Tool)
	require.NotNil(t, s.Remaining)
	require.Zero(t, *s.Remaining)
	require.Equal(t, 2, s.Counts.Started)
	require.Contains(t, d.jig("schedule", "describe", name).out, "test.echo")
}

func TestSchedule_SkipsWhileASessionWaitsForAPerson(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	name := d.schedule("--tool", "test.write", "--input", "url="+r.URL, "--input", "name=due", "--every", "1s")
	s := d.scheduled(name, func(s client.Schedule) bool { return s.Counts != nil && s.Counts.Skipped >= 2 })
	require.Equal(t, 1, s.Counts.Started)
	require.Len(t, s.Running, 1)
	first := s.Running[0].SessionID
	view := d.waiting(first)
	require.Equal(t, "1.1", view.Pending[0].Call)
	requests, _ := r.count("due")
	require.Zero(t, requests)

	d.signal(first, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	require.True(t, d.output(first).Success)
	s = d.scheduled(name, func(s client.Schedule) bool { return started(2)(s) && len(s.Running) == 1 })
	require.NotEqual(t, first, s.Running[0].SessionID, "the next session starts after the first has ended")
	requests, _ = r.count("due")
	require.Equal(t, 1, requests)
	require.Zero(t, d.jig("schedule", "delete", name).code)
	second := s.Running[0].SessionID
	d.waiting(second) // deleting a schedule does not affect the sessions it started
	require.NoError(t, d.Cancel(t.Context(), jig.DefaultTenant, second))
	require.Equal(t, jig.StatusCanceled, d.finish(second).Status)
}

func TestSchedule_StartsACompositionOnTime(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	tool := "probe.nightly" + strings.ToUpper(d.name[:4])
	d.register(map[string]string{"nightly.yaml": fmt.Sprintf(`kind: composition
name: %s
description: Echoes a number and says in whose name, for a schedule.
input_schema:
  type: object
  required: [count]
  properties: {count: {type: integer}}
steps:
  - id: each
    for_each: lists.range(input.count)
    tool: test.echo
    input: {value: "v${item}"}
output: {values: "${steps.each.map(r, r.data.value)}", by: "${principal.id}"}
`, tool)})
	name := d.schedule("--tool", tool, "--input", "count=3", "--every", "1s", "--limit", "1", "--as", "nora")
	recent := d.firings(name, 1)
	result := d.output(recent[0].SessionID)
	require.True(t, result.Success, "%+v", result.Error)
	require.JSONEq(t, `{"values":["v0","v1","v2"],"by":"nora"}`, string(result.Data), "count=3 is a number by the input schema")
}

func TestSchedule_StartsAnAgent(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	agentName := "nightly-" + d.name[:8]
	document := agent(`["test.*"]`, `    - when: pass == 1
      calls: [{tool: test.echo, input: {value: "${input.word}"}}]
    - answer: "heard ${calls[0].data.value}"
`)
	d.register(map[string]string{"nightly.md": strings.Replace(document, "name: probe", "name: "+agentName, 1)})
	name := d.schedule("--agent", agentName, "--task", "Listen.", "--input", "word=owl", "--every", "1s", "--limit", "1")
	recent := d.firings(name, 1)
	view := d.finish(recent[0].SessionID)
	require.Equal(t, jig.StatusCompleted, view.Status, "%+v", view.Error)
	require.Equal(t, "heard owl", view.Answer)
	s := d.described(name)
	require.Equal(t, agentName, s.Agent)
	require.Equal(t, "Listen.", s.Task)
}

func TestSchedule_IsTriggeredNow(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	name := d.schedule("--tool", "test.echo", "--input", "value=now", "--cron", "0 0 1 1 *", "--paused")
	got := d.jig("schedule", "trigger", name)
	require.Zero(t, got.code, got.err)
	id := strings.TrimSpace(got.out)
	require.NoError(t, jig.CheckSessionID(id), got.out)
	require.JSONEq(t, `{"value":"now"}`, string(d.output(id).Data))
	again := d.jig("schedule", "trigger", name, "--output", "json")
	require.Zero(t, again.code, again.err)
	var second struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(again.out), &second))
	require.NotEqual(t, id, second.SessionID)
	require.True(t, d.output(second.SessionID).Success)
	require.True(t, d.described(name).Paused)
}

func TestSchedule_IsPausedAndResumed(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	clock := d.schedule("--tool", "test.quick", "--input", "value=tick", "--every", "1s")
	name := d.schedule("--tool", "test.quick", "--input", "value=a", "--every", "1s")
	ticks := func(n int) { // wait for n seconds, by a schedule that starts every second
		now, err := d.Schedule(t.Context(), jig.DefaultTenant, clock)
		require.NoError(t, err)
		d.scheduled(clock, started(now.Counts.Started+n))
	}
	d.scheduled(name, started(1))
	paused := d.jig("schedule", "pause", name, "--note", "a freeze")
	require.Zero(t, paused.code, paused.err)
	ticks(2) // after this, sessions that were being started have started
	before := d.described(name)
	require.True(t, before.Paused)
	require.Equal(t, "a freeze", before.Note)
	ticks(3)
	require.Equal(t, before.Counts.Started, d.described(name).Counts.Started)
	require.True(t, eventually(t.Context(), patience, func() bool { return strings.Contains(d.jig("schedule", "list").out, "a freeze") }))

	resumed := d.jig("schedule", "resume", name)
	require.Zero(t, resumed.code, resumed.err)
	s := d.scheduled(name, started(before.Counts.Started+1))
	require.False(t, s.Paused)
}

func TestSchedule_IsDeleted(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	name := d.schedule("--tool", "test.quick", "--input", "value=a", "--cron", "0 0 1 1 *")
	shown := func() bool { return strings.Contains(d.jig("schedule", "list", "--output", "json").out, `"`+name+`"`) }
	require.True(t, eventually(t.Context(), patience, shown))
	taken := d.jig("schedule", "create", name, "--tool", "test.quick", "--input", "value=b", "--every", "1h")
	require.Equal(t, 1, taken.code)
	require.Contains(t, taken.err, "already")

	gone := d.jig("schedule", "delete", name)
	require.Zero(t, gone.code, gone.err)
	again := d.jig("schedule", "describe", name)
	require.Equal(t, 1, again.code)
	require.Contains(t, again.err, "no schedule")
	require.True(t, eventually(t.Context(), patience, func() bool { return !shown() }))
	unknown := d.jig("schedule", "create", name, "--tool", "test.quikc", "--every", "1h")
	require.Equal(t, 1, unknown.code)
	require.Contains(t, unknown.err, "test.quick")
}

func TestSchedule_OfTwoTenants(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	tenant := "acme-" + d.name[:8]
	name := d.schedule("--tool", "test.echo", "--input", "value=ours", "--cron", "0 0 1 1 *")
	d.named(name, "--tool", "test.echo", "--input", "value=theirs", "--cron", "0 0 1 1 *", "--tenant", tenant)
	by := jig.Principal{ID: d.described(name).Principal} // a trigger by others is a start in their own name
	ours, err := d.TriggerSchedule(t.Context(), client.ScheduleRequest{Name: name, By: by})
	require.NoError(t, err)
	theirs, err := d.TriggerSchedule(t.Context(), client.ScheduleRequest{Tenant: tenant, Name: name, By: by})
	require.NoError(t, err)
	require.NotEqual(t, ours, theirs)
	require.True(t, strings.HasPrefix(theirs, jig.SessionPrefix+tenant+":"+name+"-"), theirs)
	require.JSONEq(t, `{"value":"ours"}`, string(d.output(ours).Data))
	result, err := d.WaitCall(t.Context(), tenant, theirs)
	require.NoError(t, err)
	require.JSONEq(t, `{"value":"theirs"}`, string(result.Result.Data))

	var list struct {
		Schedules []client.Schedule `json:"schedules"`
	}
	require.True(t, eventually(t.Context(), patience, func() bool {
		got := d.jig("schedule", "list", "--tenant", tenant, "--output", "json")
		return got.code == 0 && json.Unmarshal([]byte(got.out), &list) == nil && len(list.Schedules) > 0
	}))
	require.Len(t, list.Schedules, 1, "a tenant sees only its own schedules")
	require.Equal(t, name, list.Schedules[0].Name)

	require.Zero(t, d.jig("schedule", "delete", name, "--tenant", tenant).code)
	require.Equal(t, "test.echo", d.described(name).Tool, "the other tenant's schedule stays")
}

// If a schedule fires while no worker is up, its session runs once a worker is back.
func TestSchedule_WhoseWorkerIsDown(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	name := d.schedule("--tool", "test.echo", "--input", "value=late", "--every", "1s", "--limit", "1", "--paused")
	d.kill()
	// jig asks a worker before it resumes a schedule, so the test resumes it in Temporal.
	handle := shared.temporal.ScheduleClient().GetHandle(t.Context(), "jig/"+jig.DefaultTenant+"/"+name)
	require.NoError(t, handle.Unpause(t.Context(), sdk.ScheduleUnpauseOptions{}))
	s := d.scheduled(name, started(1))
	require.Len(t, s.Running, 1, "no worker has run it")
	d.start()
	recent := d.firings(name, 1)
	require.Equal(t, s.Running[0].SessionID, recent[0].SessionID)
	require.JSONEq(t, `{"value":"late"}`, string(d.output(recent[0].SessionID).Data))
	require.Equal(t, 1, d.described(name).Counts.Started)
}
