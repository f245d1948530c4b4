package activities_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/ratelimit"
	"github.com/jig-run/jig/internal/ratelimit/limiter"
)

// rated gives the office's tenant rate limits.
func rated(t *testing.T, limits string) func(*office) {
	t.Helper()
	return func(o *office) {
		require.NoError(t, o.db.PutDocument(t.Context(), o.tenant, "rate_limit", "apis", jig.NewSessionID(), []byte("kind: rate_limit\nname: apis\nlimits: ["+limits+"]")))
		o.rates = limiter.New(o.db, o.db)
	}
}

// waits checks that an attempt at a call runs nothing and is retried later, with the reason in its error.
func (o *office) waits(t *testing.T, id, why string) {
	t.Helper()
	_, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: id})
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.NonRetryable())
	require.Positive(t, failed.NextRetryDelay())
	require.Equal(t, "call "+id+" is held back: "+why, failed.Message())
}

const oncePerHour = "limit slow of rate limit apis allows 1 call per 1h"

// A call that waits for a limit stays as it is: it uses up no attempt, keeps its approval, and runs once the limit is raised.
func TestRateLimit_CallWaits(t *testing.T) {
	t.Parallel()
	o := newOffice(t, rated(t, "{name: slow, tools: [\"*\"], key: principal.id, rate: 1, per: 1h}"))
	first, second := o.asks(t, 1, refundTool, small), o.asks(t, 2, refundTool, `{"order":"b","amount":1}`)
	for _, c := range []jig.Call{first, second} {
		require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"}).Outcome)
	}
	require.Equal(t, jig.CallSucceeded, o.runs(t, first.ID))
	o.waits(t, second.ID, oncePerHour)
	o.waits(t, second.ID, oncePerHour)
	waiting := o.call(t, second.ID)
	require.Equal(t, jig.CallReserved, waiting.Status)
	require.Zero(t, waiting.Fence)
	require.Equal(t, jig.EventToolHeld, o.eventsOf(t, second.ID)[len(o.eventsOf(t, second.ID))-1])
	view, err := o.Status(t.Context(), protocol.StatusRequest{Tenant: o.tenant, SessionID: o.session})
	require.NoError(t, err)
	require.Equal(t, "waits: "+oncePerHour, view.Calls[1].Summary)

	rated(t, "{name: slow, tools: [\"*\"], key: principal.id, rate: 1000000, per: 1s}")(o)
	o.deploy(t)
	require.Eventually(t, func() bool {
		_, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: second.ID})
		return err == nil
	}, time.Minute, time.Millisecond)
	require.Equal(t, 1, o.call(t, second.ID).Fence)
	require.Len(t, o.ran, 2)
}

// A session that a person starts waits for its turn. One that another session starts does not: its call has had its turn.
func TestRateLimit_SessionsWait(t *testing.T) {
	t.Parallel()
	o := newOffice(t, rated(t, "{name: starts, sessions: true, rate: 1, per: 1h}"))
	opened, err := o.launches(t, protocol.StartSession{Document: document("agents: [nightly]")})
	require.NoError(t, err)
	require.Zero(t, opened.Wait)
	o.register(t, document())
	child := o.delegates(t, 1, `{"agent":"nightly","task":"x"}`)
	opened, err = o.opens(t, child.SessionID, child.Start)
	require.NoError(t, err)
	require.Zero(t, opened.Wait)

	opened, err = o.launches(t, protocol.StartSession{Document: document()})
	require.NoError(t, err)
	require.Positive(t, opened.Wait)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, o.AwaitStart(t.Context(), o.ref()), &failed)
	require.Equal(t, "the session is held back: limit starts of rate limit apis allows 1 session per 1h", failed.Message())
	require.Positive(t, failed.NextRetryDelay())
	wait, err := o.StartsIn(t.Context(), o.ref())
	require.NoError(t, err)
	require.Positive(t, wait)
	view, err := o.Status(t.Context(), protocol.StatusRequest{Tenant: o.tenant, SessionID: o.session})
	require.NoError(t, err)
	require.Equal(t, []string{"limit starts of rate limit apis allows 1 session per 1h"}, view.Held)

	rated(t, "{name: starts, sessions: true, rate: 1000000, per: 1s}")(o)
	o.deploy(t)
	require.Eventually(t, func() bool { return o.AwaitStart(t.Context(), o.ref()) == nil }, time.Minute, time.Millisecond)
	wait, err = o.StartsIn(t.Context(), o.ref())
	require.NoError(t, err)
	require.Zero(t, wait)
}

func TestRateLimit_QuickReads(t *testing.T) {
	t.Parallel()
	o, ledger, runs := reading(t, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return found(`{}`) })
	rated(t, "{name: slow, rate: 1, per: 1h}")(o)
	o.deploy(t)
	require.Equal(t, jig.CallSucceeded, o.runs(t, "1.1"))
	require.EqualValues(t, 1, ledger.reserved.Load(), "it is not run before the limit allows it")
	second := o.asks(t, 2, payTool, `{"again":true}`)
	list, err := o.RunLocal(t.Context(), activities.RunLocalInput{SessionRef: o.ref(), Calls: []string{second.ID}})
	require.NoError(t, err)
	require.True(t, list[0].Paused)
	require.Equal(t, oncePerHour, list[0].Held)
	require.EqualValues(t, 1, runs.Load())
}

// patient is a stand-in for limits.
type patient struct{ answers []ratelimit.Answer }

func (p *patient) Limited(context.Context, string, string) (bool, error) { return true, nil }

func (p *patient) Ask(context.Context, jig.Session, jig.Call, bool) (ratelimit.Answer, error) {
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer, nil
}

func TestRateLimit_FailsAfterMaxWait(t *testing.T) {
	t.Parallel()
	p := &patient{answers: []ratelimit.Answer{{Expired: true, Why: "it took too long"}}}
	o := newOffice(t, func(o *office) { o.rates = p })
	c := o.asks(t, 1, refundTool, small)
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"}).Outcome)
	require.Equal(t, jig.CallFailed, o.runs(t, c.ID))
	failed := o.call(t, c.ID)
	require.Equal(t, jig.CodeRateLimited, failed.Result.Error.Code)
	require.Equal(t, "it took too long", failed.Result.Error.Message)
	require.Zero(t, failed.Fence, "nothing was tried")
	require.Empty(t, o.ran)
	require.Equal(t, jig.CallFailed, o.runs(t, c.ID), "an attempt that comes later finds the result")
	require.Equal(t, jig.CallReserved, o.askedAgain(t, c), "the same call may be made again")
}

// askedAgain asks for a call once more, in the next pass, and approves it.
func (o *office) askedAgain(t *testing.T, c jig.Call) jig.CallStatus {
	t.Helper()
	again := o.asks(t, c.Pass+1, c.Tool, string(c.Input))
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", jig.Decision{Call: again.ID, By: "fay"}).Outcome)
	return o.call(t, again.ID).Status
}

// activity runs a call as an activity of a worker.
func (o *office) activity(t *testing.T, id string) error {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.RegisterActivity(o.Activities)
	_, err := env.ExecuteActivity(o.RunTool, activities.RunInput{SessionRef: o.ref(), Call: id})
	return err
}

// An attempt waits on its worker if its turn comes soon. Otherwise Temporal brings it back when its turn comes.
func TestRateLimit_ShortWaitsKeepTheirWorker(t *testing.T) {
	t.Parallel()
	p := &patient{answers: []ratelimit.Answer{{Wait: time.Millisecond}, {Wait: time.Millisecond}, {}, {Wait: 7 * time.Second, Why: "not yet"}}}
	o := newOffice(t, func(o *office) { o.rates = p })
	first, second := o.asks(t, 1, ordersTool, small), o.asks(t, 2, ordersTool, `{"order":"b","amount":1}`)
	require.NoError(t, o.activity(t, first.ID))
	require.Equal(t, jig.CallSucceeded, o.call(t, first.ID).Status)
	err := o.activity(t, second.ID)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 7*time.Second, failed.NextRetryDelay())
	require.Empty(t, p.answers)
}

// A composition waits before it begins.
func TestRateLimit_CompositionWaits(t *testing.T) {
	t.Parallel()
	p := &patient{answers: []ratelimit.Answer{{Wait: 7 * time.Second, Why: "not yet"}, {}, {}, {}, {}, {}}}
	o := newOffice(t, func(o *office) { o.rates = p })
	o.begins(t, "kind: composition\nname: test.one\ndescription: Reads orders.\nsteps: [{id: orders, tool: "+ordersTool+", input: {order: a}}]\n", `{}`)
	now := o.now()
	out, err := o.Compose(t.Context(), activities.ComposeInput{SessionRef: o.ref(), Call: "1.1", Now: now})
	require.NoError(t, err)
	require.Equal(t, now.Add(7*time.Second), out.Wake)
	require.Empty(t, out.Calls)
	require.True(t, o.composes(t).Done)
}
