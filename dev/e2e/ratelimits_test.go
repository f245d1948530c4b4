package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// rateLimitEnv is a tenant with rate limits.
type rateLimitEnv struct {
	*testEnv
	tenant string
}

// withRateLimits gives a new tenant rate limits.
func (d *testEnv) withRateLimits(tenant, limits string) rateLimitEnv {
	d.t.Helper()
	p := rateLimitEnv{testEnv: d, tenant: d.name + "-" + tenant}
	p.limit(limits)
	return p
}

// limit registers the tenant's limits, and waits until all workers know them.
func (p rateLimitEnv) limit(limits string) {
	p.t.Helper()
	p.register("kind: rate_limit\nname: apis\nlimits:\n" + limits)
	p.knows()
}

// knows waits until all workers know the tenant's documents as they are now.
func (p rateLimitEnv) knows() {
	p.t.Helper()
	canary := "canary-" + strings.ToLower(strings.TrimPrefix(jig.NewSessionID(), jig.SessionPrefix))
	p.register("kind: rate_limit\nname: canary\nlimits: [{name: " + canary + ", tools: [test.whoami], rate: 1, per: 1d, max_wait: 1s}]\n")
	in := callInput("test.whoami", map[string]any{})
	in.Tenant = p.tenant
	require.True(p.t, eventually(p.t.Context(), patience, func() bool {
		// A worker that knows the limit lets the call wait for a second, after which all workers know it.
		result, err := p.Trigger(p.t.Context(), in, "")
		return err == nil && result.Result != nil && result.Result.Error != nil && strings.Contains(result.Result.Error.Message, canary)
	}))
}

// register registers a document in the tenant.
func (p rateLimitEnv) register(document string) {
	p.t.Helper()
	p.registerIn(p.tenant, map[string]string{"limits.yaml": document})
}

// begins starts a session whose first pass makes calls of a tool, with the given inputs.
func (p rateLimitEnv) begins(tool string, inputs []map[string]any, settings ...string) string {
	p.t.Helper()
	var calls []string
	for _, in := range inputs {
		raw, err := json.Marshal(in)
		require.NoError(p.t, err)
		calls = append(calls, fmt.Sprintf("{tool: %s, input: %s}", tool, raw))
	}
	document := agent(`["test.*"]`, "    - {when: pass == 1, calls: ["+strings.Join(calls, ", ")+"]}\n    - {answer: done}\n", settings...)
	started, err := p.Start(p.t.Context(), client.StartOptions{
		Tenant: p.tenant, Document: document, DocumentName: "probe.md", Principal: jig.Principal{ID: "tester"},
	})
	require.NoError(p.t, err)
	return started.SessionID
}

// reaches waits until the status of a session is as expected.
func (p rateLimitEnv) reaches(id string, done func(jig.SessionView) bool) (view jig.SessionView) {
	p.t.Helper()
	require.True(p.t, eventually(p.t.Context(), patience, func() bool {
		got, err := p.Status(p.t.Context(), p.tenant, id)
		view = got
		return err == nil && done(got)
	}), "%+v", view)
	return view
}

// effects returns inputs for calls whose effects are named a, b, c and so on.
func effects(r *receiver, n int) []map[string]any {
	var list []map[string]any
	for i := range n {
		list = append(list, map[string]any{"url": r.URL, "name": string(rune('a' + i))})
	}
	return list
}

// limited returns how many calls of a session wait for a limit.
func limited(v jig.SessionView, limit string) (n int) {
	for _, c := range v.Calls {
		if c.Status == jig.CallReserved && strings.HasPrefix(c.Summary, "waits: limit "+limit+" of rate limit apis allows ") {
			n++
		}
	}
	return n
}

// Two workers together let as many calls begin as the limit allows. One of them is killed, and the calls that wait begin on the other when the
// limit is raised. Each runs once.
func TestRateLimits_TwoWorkersOneKilled(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	newTestEnv(t, "JIG_TASK_QUEUE="+d.queue).start()
	p := d.withRateLimits("rate", "  - {name: daily, tools: [test.effect], rate: 1, per: 1d, burst: 3}\n")
	id := p.begins("test.effect", effects(r, 7))
	view := p.reaches(id, func(v jig.SessionView) bool {
		return v.Counts[jig.CallSucceeded] == 3 && limited(v, "daily") == 4
	})
	require.Equal(t, jig.StatusWorking, view.Status, "nobody has to do anything")
	described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
	require.Len(t, described.GetPendingActivities(), 4)
	for _, a := range described.GetPendingActivities() {
		if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			require.Contains(t, a.GetLastFailure().GetMessage(), "is held back: limit daily of rate limit apis allows 1 call per 1d")
		}
	}
	require.Len(t, p.eventsOf(id, jig.EventToolHeld), 4)
	d.kill()
	p.limit("  - {name: daily, tools: [test.effect], rate: 100, per: 1s}\n")
	p.reaches(id, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
	for _, e := range effects(r, 7) {
		requests, _ := r.count(e["name"].(string)) //nolint:errcheck // effects gives them names
		require.Equal(t, 1, requests)
	}
	require.Len(t, p.eventsOf(id, jig.EventToolStarted), 7, "waiting uses up no attempt")
}

// eventsOf returns events of a session of the tenant.
func (p rateLimitEnv) eventsOf(id string, want jig.EventType) (list []jig.Event) {
	p.t.Helper()
	all, err := p.Events(p.t.Context(), p.tenant, id, 0)
	require.NoError(p.t, err)
	for _, e := range all {
		if e.Type == want {
			list = append(list, e)
		}
	}
	return list
}

// A call whose worker dies keeps its place among those that run, until another worker has ended it.
func TestRateLimits_ConcurrencySurvivesAKilledWorker(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	p := d.withRateLimits("place", "  - {name: one, tools: [test.keyed], concurrency: 1}\n")
	inputs := effects(r, 3)
	inputs[0]["after"] = 5_000
	id := p.begins("test.keyed", inputs[:1])
	require.True(t, eventually(t.Context(), patience, func() bool { n, _ := r.count("a"); return n == 1 }))
	others := p.begins("test.keyed", inputs[1:])
	p.reaches(others, func(v jig.SessionView) bool { return limited(v, "one") == 2 })
	d.kill()
	d.start()
	p.reaches(others, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
	p.reaches(id, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
	require.Equal(t, []string{"a", "a"}, r.order[:2], "the others wait until it has ended")
	require.ElementsMatch(t, []string{"b", "c"}, r.order[2:])
}

// A session that a limit holds back begins once the limit allows it, also if its worker was killed meanwhile. A canceled one does not begin.
func TestRateLimits_SessionsWaitToBegin(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	p := d.withRateLimits("starts", "  - {name: slowly, sessions: true, rate: 1, per: 1m}\n")
	waits := func(v jig.SessionView) bool {
		return len(v.Held) == 1 && strings.HasPrefix(v.Held[0], "limit slowly of rate limit apis allows 1 session per 1m")
	}
	first := p.begins("test.effect", effects(r, 1))
	p.reaches(first, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
	second := p.begins("test.effect", effects(r, 1))
	p.reaches(second, waits)
	third := p.begins("test.effect", effects(r, 1))
	p.reaches(third, waits)
	require.Len(t, p.eventsOf(third, jig.EventSessionHeld), 1)
	require.NoError(t, p.Cancel(t.Context(), p.tenant, second))
	p.reaches(second, func(v jig.SessionView) bool { return v.Status == jig.StatusCanceled })
	d.kill()
	d.start()
	view := p.reaches(third, func(v jig.SessionView) bool { return v.Status.Final() })
	require.Equal(t, jig.StatusCompleted, view.Status)
	require.Empty(t, view.Held)
	require.Empty(t, p.eventsOf(second, jig.EventPassStarted))
}

// A call stops waiting when its session is canceled, when the session's deadline passes, and when it has waited as long as its limit allows.
func TestRateLimits_WaitingEnds(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		p := d.withRateLimits("canceled", "  - {name: daily, tools: [test.effect], rate: 1, per: 1d}\n")
		id := p.begins("test.effect", effects(r, 2))
		p.reaches(id, func(v jig.SessionView) bool { return limited(v, "daily") == 1 })
		require.NoError(t, p.Cancel(t.Context(), p.tenant, id))
		view := p.reaches(id, func(v jig.SessionView) bool { return v.Status.Final() })
		require.Equal(t, jig.StatusCanceled, view.Status)
		require.Equal(t, 1, view.Counts[jig.CallCanceled])
	})
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		p := d.withRateLimits("deadline", "  - {name: daily, tools: [test.effect], rate: 1, per: 1d}\n")
		id := p.begins("test.effect", effects(r, 2), "deadline: 5s")
		view := p.reaches(id, func(v jig.SessionView) bool { return v.Status.Final() })
		require.Equal(t, jig.StatusFailed, view.Status)
		require.Equal(t, jig.ReasonDeadline, view.Reason)
		require.Equal(t, 1, view.Counts[jig.CallCanceled])
	})
	t.Run("max_wait", func(t *testing.T) {
		t.Parallel()
		p := d.withRateLimits("max-wait", "  - {name: daily, tools: [test.effect], rate: 1, per: 1d, max_wait: 2s}\n")
		id := p.begins("test.effect", effects(r, 2))
		view := p.reaches(id, func(v jig.SessionView) bool { return v.Status.Final() })
		require.Equal(t, jig.StatusCompleted, view.Status, "the session goes on")
		require.Equal(t, 1, view.Counts[jig.CallFailed])
		var failed *jig.Error
		for _, c := range view.Calls {
			if c.Error != nil {
				failed = c.Error
			}
		}
		require.Equal(t, jig.CodeRateLimited, failed.Code)
		require.Contains(t, failed.Message, "the call has waited for 2s, as long as max_wait allows: limit daily of rate limit apis allows 1 call per 1d")
	})
}

// Compositions, calls of agents and quick reads wait too, each in its own way.
func TestRateLimits_EveryKindOfCall(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	for kind, row := range map[string]struct {
		tool  string
		input map[string]any
	}{
		"quick": {"test.quick", map[string]any{"value": "a"}},
		"read":  {"test.echo", map[string]any{"value": "a"}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := d.withRateLimits(kind, "  - {name: slow, tools: ["+row.tool+"], rate: 1, per: 1d}\n")
			second := map[string]any{"value": "b"}
			id := p.begins(row.tool, []map[string]any{row.input, second})
			p.reaches(id, func(v jig.SessionView) bool { return limited(v, "slow") == 1 && v.Counts[jig.CallSucceeded] == 1 })
			p.limit("  - {name: slow, tools: [" + row.tool + "], rate: 100, per: 1s}\n")
			p.reaches(id, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
		})
	}
	t.Run("composition", func(t *testing.T) {
		t.Parallel()
		const document = "kind: composition\nname: probe.twice\ndescription: Echoes.\nsteps: [{id: a, tool: test.echo, input: {value: a}}, {id: b, tool: test.echo, input: {value: b}}]\n"
		p := d.withRateLimits("composition", "  - {name: slow, tools: [probe.twice], rate: 1, per: 1d}\n  - {name: place, concurrency: 1}\n")
		in := protocol.CallInput{Tenant: p.tenant, Document: document, DocumentName: "twice.yaml", Principal: jig.Principal{ID: "tester"}}
		first, err := p.StartCall(t.Context(), in, "")
		require.NoError(t, err)
		p.reaches(first.SessionID, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
		second, err := p.StartCall(t.Context(), in, "")
		require.NoError(t, err)
		p.reaches(second.SessionID, func(v jig.SessionView) bool { return limited(v, "slow") == 1 })
		p.limit("  - {name: slow, tools: [probe.twice], rate: 100, per: 1s}\n")
		p.reaches(second.SessionID, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
	})
}
