package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/workflows"
)

// effect is one execution of race.write.
type effect struct {
	input paying
	cut   bool
}

// letter is something that happens to a session at a given time: a signal, an update, or anything else.
type letter struct {
	// at is the time since the session's start.
	at   time.Duration
	name string
	// update is the id of an update. It is empty for a signal.
	update string
	// payload returns the content. It is called once, when the signal is posted.
	payload func() any
	do      func()
	// says describes the signal in failure messages.
	says string

	made     any
	heard    bool
	accepted bool
	answer   *protocol.DecideResult
	err      error
}

// play runs one session in virtual time: every run of its workflow, with the real activities and the real store.
type play struct {
	*arena
	t        *testing.T
	id       string
	agent    string
	policies atomic.Pointer[policy.Set]
	acts     *activities.Activities
	env      atomic.Pointer[testsuite.TestWorkflowEnvironment]
	began    time.Time
	turns    [][]jig.ToolCall
	limits   jig.Limits
	letters  []*letter
	// cuts is the percentage of executions whose connection is cut afterwards. seed decides which ones.
	cuts int
	seed uint64
	// history is the initial history length of the first run. estimated turns on the estimation of history lengths.
	history   int
	estimated bool
	// needs returns what a write requires under the schedule's policies. If it is nil, this is not checked.
	needs func(paying) []need

	mu      sync.Mutex
	effects map[string][]effect
	asked   []chat.Request
	posted  []*letter
	flying  atomic.Int64
	// runs counts the runs of the session's workflow. length is the estimated history length of the current run, and longest the
	// longest so far.
	runs, length, longest int
	ended                 error
	kind                  string
	// resumed reports that a message began a pass of a session that had ended.
	resumed bool
}

func (a *arena) play(t *testing.T, rules policy.Set) *play {
	t.Helper()
	p := &play{
		arena: a, t: t, id: jig.NewSessionID(), effects: map[string][]effect{},
		began: time.Now().UTC().Truncate(time.Second), //nolint:forbidigo // the database compares some times with its own clock
	}
	p.agent = "agent-" + strings.ToLower(strings.TrimPrefix(p.id, "ses_"))
	p.policies.Store(&rules)
	p.acts = activities.New(activities.Deps{
		Store: a.db, Catalog: a.registry, Policy: verdicts{rule: p.Rule}, Model: a, Expressions: a.expressions, Composer: a.composer, ParseAgent: a.parseAgent,
		Schemas: schema.NewChecker(schema.Options{MaxInstanceBytes: tools.MaxInputBytes, ExactNumbers: true}), Tenants: p,
		Logger: slog.New(slog.DiscardHandler), Now: p.now,
	})
	a.mu.Lock()
	a.plays[p.id] = p
	a.mu.Unlock()
	return p
}

func (p *play) now() time.Time { return p.env.Load().Now().UTC() }

// Rule applies the current policies.
func (p *play) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (policy.Ruling, error) {
	return p.policies.Load().Rule(ctx, tool, call, session, now)
}

// Settings returns the settings of a tenant that trusts what signals claim.
func (p *play) Settings(context.Context, string) (tenancy.Settings, error) {
	return tenancy.Settings{Proof: jig.ProofClaimed, People: racePeople}, nil
}

func (p *play) Latest(ctx context.Context, tenant string) (tenancy.Settings, error) {
	return p.Settings(ctx, tenant)
}

// key returns the idempotency key of a call of the session.
func (p *play) key(call string) string {
	return jig.IdempotencyKey(p.db.Installation(), p.tenant, p.id, call)
}

// effect records that race.write ran, and reports whether its connection is cut afterwards.
func (p *play) effect(inv jig.Invocation, in paying) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.effects[inv.IdempotencyKey]
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s %d", p.seed, inv.CallID, len(list)) // never fails
	cut := int(h.Sum64()%100) < p.cuts
	p.effects[inv.IdempotencyKey] = append(list, effect{in, cut})
	return cut
}

// at schedules an action.
func (p *play) at(at time.Duration, do func()) {
	p.letters = append(p.letters, &letter{at: at, do: do})
}

// passInput returns the input that starts an agent session.
func (p *play) passInput() protocol.PassInput {
	body, err := json.Marshal(jig.Agent{Name: p.agent, Version: "1", Model: "race/planner", Instructions: "Play.", Tools: []string{"*"}, Limits: p.limits})
	require.NoError(p.t, err)
	return protocol.PassInput{Tenant: p.tenant, Start: &protocol.StartSession{
		Document: string(body), DocumentName: "race.md", Task: "race", Principal: jig.Principal{ID: raceRequester},
	}}
}

func (p *play) callInput(tool string, input any) protocol.CallInput {
	raw, err := json.Marshal(input)
	require.NoError(p.t, err)
	return protocol.CallInput{Tenant: p.tenant, Tool: tool, Input: raw, Principal: jig.Principal{ID: raceRequester}}
}

// run executes every run of the session's workflow, until the session has ended and no message is left.
func (p *play) run(name string, in any) {
	p.kind = name
	continued := false
	for now := p.began; ; {
		env := p.environment(now)
		if continued {
			env.SetContinuedExecutionRunID("before")
		}
		for _, at := range p.moments() {
			env.RegisterDelayedCallback(func() { p.postAll(env, at) }, max(0, p.began.Add(at).Sub(now)))
		}
		env.ExecuteWorkflow(name, in)
		require.Eventually(p.t, func() bool { return p.flying.Load() == 0 }, 2*time.Minute, 100*time.Microsecond)
		now = env.Now()
		p.longest = max(p.longest, p.length)
		var next *workflow.ContinueAsNewError
		p.ended = env.GetWorkflowError()
		if errors.As(p.ended, &next) {
			in, continued = p.decoded(name, next), true
			continue
		}
		spoken := p.nextMessage()
		if spoken == nil || name != protocol.PassWorkflow {
			return
		}
		// Signal-with-start: a message to a session that has ended begins its next pass.
		if at := p.began.Add(spoken.at); at.After(now) {
			now = at
		}
		in, p.resumed, continued = protocol.PassInput{Tenant: p.tenant}, true, false
	}
}

func (p *play) decoded(name string, next *workflow.ContinueAsNewError) any {
	require.Equal(p.t, name, next.WorkflowType.Name)
	if name == protocol.CallWorkflow {
		var in protocol.CallInput
		require.NoError(p.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
		return in
	}
	var in protocol.PassInput
	require.NoError(p.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	return in
}

// nextMessage returns the next message that was not delivered. It drops the signals and updates before it, because the session has ended.
func (p *play) nextMessage() *letter {
	for _, l := range p.letters {
		if l.heard {
			continue
		}
		if l.name == protocol.SignalMessage {
			return l
		}
		l.heard = true // there is no workflow, and the sender gets an error
	}
	return nil
}

var errGone = errors.New("there is no such workflow")

// environment creates a test environment for one run of the workflow, starting at the given time.
func (p *play) environment(now time.Time) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.SetStartTime(now)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: p.id, TaskQueue: protocol.TaskQueue})
	p.env.Store(env)
	p.posted = nil
	p.runs++
	env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, // on a busy machine a goroutine may wait for a processor
		Interceptors:             []interceptor.WorkerInterceptor{&watcher{play: p, env: env, run: fmt.Sprintf("run-%d", p.runs)}},
	})
	names := make([]string, 0, 4)
	for _, tool := range p.registry.Tools() {
		names = append(names, tool.Name)
	}
	workflows.Register(env, p.acts, names, "")
	// The signals go to compositions of earlier runs, which have ended.
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(errGone)
	p.estimate(env)
	return env
}

// estimate counts the events that a server would have recorded, because the test environment records none.
func (p *play) estimate(env *testsuite.TestWorkflowEnvironment) {
	if p.history == 0 && !p.estimated {
		return
	}
	p.length = p.history + 3
	p.history = 0
	const task = 3 // scheduled, started, completed
	grow := func(n int) {
		p.length += n
		env.SetCurrentHistoryLength(p.length)
	}
	grow(0)
	env.SetOnTimerScheduledListener(func(string, time.Duration) { grow(1) })
	env.SetOnTimerFiredListener(func(string) { grow(1 + task) })
	env.SetOnTimerCanceledListener(func(string) { grow(1) })
	env.SetOnLocalActivityCompletedListener(func(*activityInfo, converter.EncodedValue, error) { grow(1) })
	env.SetOnActivityCompletedListener(func(*activityInfo, converter.EncodedValue, error) { grow(3 + task) })
}

// moments returns the times at which undelivered letters are due.
func (p *play) moments() []time.Duration {
	var list []time.Duration
	for _, l := range p.letters {
		if !l.heard && !slices.Contains(list, l.at) {
			list = append(list, l.at)
		}
	}
	return list
}

// postAll delivers the signals of a given time, in order.
func (p *play) postAll(env *testsuite.TestWorkflowEnvironment, at time.Duration) {
	for _, l := range slices.Clone(p.letters) {
		if l.at == at && !l.heard {
			p.post(env, l)
		}
	}
}

// post delivers a letter. If the run has ended, the signal is kept for the next run.
func (p *play) post(env *testsuite.TestWorkflowEnvironment, l *letter) {
	if env.IsWorkflowCompleted() {
		return
	}
	if l.do != nil {
		l.heard = true
		l.do()
		return
	}
	if l.made == nil {
		l.made = l.payload()
	}
	if l.update == "" {
		p.posted = append(p.posted, l)
		env.SignalWorkflow(l.name, l.made)
		return
	}
	env.UpdateWorkflow(l.name, l.update, &testsuite.TestUpdateCallback{
		OnAccept: func() { l.heard, l.accepted = true, true },
		OnReject: func(err error) { l.heard, l.err = true, err },
		OnComplete: func(answer any, err error) {
			l.err = err
			if result, ok := answer.(protocol.DecideResult); ok && err == nil {
				l.answer = &result
			}
		},
	}, l.made)
}
