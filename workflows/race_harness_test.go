package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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
	"github.com/jig-run/jig/audit"
	"github.com/jig-run/jig/compose"
	"github.com/jig-run/jig/expr"
	"github.com/jig-run/jig/policy"
	"github.com/jig-run/jig/store"
	"github.com/jig-run/jig/store/storetest"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/tools/person"
	"github.com/jig-run/jig/tools/schema"
	"github.com/jig-run/jig/workflows"
)

// The tools of the arena, and the composition that writes.
const (
	raceWrite     = "race.write"
	raceRead      = "race.read"
	raceFlow      = "race.flow"
	raceRequester = "rita"
)

// raceFlowDocument is the composition: it reads, then writes.
const raceFlowDocument = `kind: composition
name: race.flow
description: Reads, then writes.
input_schema:
  type: object
  properties: {item: {type: string}, amount: {type: integer}}
  required: [item, amount]
steps:
  - id: look
    tool: race.read
    input: {item: "${input.item}"}
  - id: pay
    tool: race.write
    input: {item: "${steps.look.data.item}", amount: "${input.amount}"}
output: {paid: "${steps.pay.data}"}
`

// racePeople are those whom the tenants of the arenas know.
var racePeople = []jig.Principal{
	{ID: raceRequester, Groups: []string{"finance"}},
	{ID: "fay", Groups: []string{"finance"}},
	{ID: "fin", Groups: []string{"finance"}},
	{ID: "fred", Groups: []string{"finance", "legal"}},
	{ID: "lea", Groups: []string{"legal"}},
	{ID: "lou", Groups: []string{"leads"}},
	{ID: "max", Groups: []string{"board"}},
	{ID: "nobody"},
}

// arena is what schedules that follow one another share: a tenant, and tools that remember what they did.
type arena struct {
	db          *store.DB
	conn        *pgx.Conn
	tenant      string
	registry    *tools.Registry
	expressions *expr.Engine
	composer    *compose.Engine
	chain       *audit.Chain
	// audited is the number of the last audit row that was looked at.
	audited int64

	mu    sync.Mutex
	plays map[string]*play
}

func newArena(t *testing.T, db *store.DB) *arena {
	t.Helper()
	a := &arena{db: db, tenant: storetest.Tenant(t), composer: compose.NewEngine(), plays: map[string]*play{}}
	a.chain = audit.NewChain(a.tenant, 1)
	var err error
	a.registry, err = tools.NewRegistry(append(person.Tools(), a.tools()...)...)
	require.NoError(t, err)
	a.expressions, err = expr.NewEngine()
	require.NoError(t, err)
	a.conn, err = pgx.Connect(t.Context(), storetest.URL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.conn.Close(context.WithoutCancel(t.Context())) })
	_, err = a.conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", a.tenant)
	require.NoError(t, err)
	flow, err := a.composer.Contract(raceFlow, []byte(raceFlowDocument))
	require.NoError(t, err)
	require.NoError(t, db.PutDocument(t.Context(), a.tenant, activities.DocumentSpec, raceFlow, flow.Version, []byte(raceFlowDocument)))
	return a
}

// item is the input of race.read and the output of both tools, write the input of race.write.
type (
	piece struct {
		Item string `json:"item"`
	}
	paying struct {
		Item   string `json:"item"`
		Amount int    `json:"amount"`
	}
)

func (a *arena) tools() []tools.Tool {
	return []tools.Tool{
		tools.New(jig.Tool{
			Name: raceWrite, Description: "Writes.", Permission: jig.PermissionWrite, Risk: jig.RiskModerate, Execution: jig.ExecutionActivity,
		}, func(_ context.Context, inv jig.Invocation, in paying) (piece, error) {
			if a.of(inv.SessionID).effect(inv, in) {
				return piece{}, jig.Errorf(jig.CodeTimeout, "the connection was cut off")
			}
			return piece{Item: in.Item}, nil
		}),
		tools.New(jig.Tool{
			Name: raceRead, Description: "Reads.", Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Execution: jig.ExecutionLocal,
		}, func(_ context.Context, _ jig.Invocation, in piece) (piece, error) { return in, nil }),
	}
}

func (a *arena) of(session string) *play {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plays[session]
}

// Check takes any model.
func (a *arena) Check(string) error { return nil }

// Answer plays the session's turns, then ends it.
func (a *arena) Answer(_ context.Context, r jig.ModelRequest, _ func(string)) (jig.Turn, error) {
	p := a.of(r.SessionID)
	p.mu.Lock()
	p.asked = append(p.asked, r)
	p.mu.Unlock()
	if r.Pass < 1 || r.Pass > len(p.turns) {
		return jig.Turn{Text: "done", Stop: jig.StopEnd}, nil
	}
	turn := jig.Turn{Stop: jig.StopCalls}
	for i, one := range p.turns[r.Pass-1] {
		one.ProviderID = jig.CallID(r.Pass, i+1)
		turn.Calls = append(turn.Calls, one)
	}
	return turn, nil
}

// ParseAgent reads an agent that is JSON.
func (a *arena) ParseAgent(_ string, body []byte) (jig.Agent, error) {
	var agent jig.Agent
	err := json.Unmarshal(body, &agent)
	return agent, err
}

// New and Covers are what grants need of policy.
func (a *arena) New(r jig.GrantRequest, ceiling jig.GrantCeiling, tool jig.Tool, now time.Time) (jig.Grant, error) {
	return policy.NewGrant(r, ceiling, tool, now)
}

// Covers reports whether a grant is for a call.
func (a *arena) Covers(ctx context.Context, g jig.Grant, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (bool, error) {
	rule, err := policy.CompileGrant(g)
	if err != nil {
		return false, err
	}
	return rule.Covers(ctx, tool, call, session, now)
}

// checks is the schemas of compositions and questions.
type checks struct{ compiler *schema.Compiler }

// Validate checks a document against a schema; any fits none.
func (s checks) Validate(raw json.RawMessage, document []byte) error {
	if len(raw) == 0 {
		return nil
	}
	compiled, err := s.compiler.Compile(raw)
	if err != nil {
		return err
	}
	return compiled.Validate(document)
}

// Check refuses what is no schema.
func (s checks) Check(raw json.RawMessage) error {
	_, err := s.compiler.Compile(raw)
	return err
}

// FromPairs converts key=value pairs.
func (checks) FromPairs(raw json.RawMessage, pairs map[string]string) (json.RawMessage, error) {
	return schema.FromPairs(raw, pairs)
}

// effect is one execution of race.write.
type effect struct {
	input paying
	cut   bool
}

// letter is something that happens to a session at a moment: a signal, an update, or anything else.
type letter struct {
	// at is counted from the session's start.
	at   time.Duration
	name string
	// update is the id of an update; a signal has none.
	update string
	// payload is made when the letter is posted, once.
	payload func() any
	do      func()
	// says is for racePeople.
	says string

	made     any
	heard    bool
	accepted bool
	answer   *workflows.DecideResult
	err      error
}

// play is one session in virtual time: every run of its workflow, over the real activities and the real store.
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
	// cuts is how many of 100 executions are cut off, seed what decides which.
	cuts int
	seed uint64
	// history is the length that the first run's history has to begin with; estimated says that lengths are estimated at all.
	history   int
	estimated bool
	// needs says what a write takes by the policies of the schedule; nil: it is not checked.
	needs func(paying) []need

	mu      sync.Mutex
	effects map[string][]effect
	asked   []jig.ModelRequest
	posted  []*letter
	flying  atomic.Int64
	// runs counts those of the session's workflow, longest is the estimate of the longest history of them.
	runs, length, longest int
	ended                 error
	kind                  string
}

func (a *arena) play(t *testing.T, rules policy.Set) *play {
	t.Helper()
	p := &play{
		arena: a, t: t, id: jig.NewSessionID(), began: time.Now().UTC().Truncate(time.Second), effects: map[string][]effect{},
	}
	p.agent = "agent-" + strings.ToLower(strings.TrimPrefix(p.id, "ses_"))
	p.policies.Store(&rules)
	p.acts = activities.New(activities.Deps{
		Store: a.db, Catalogue: a.registry, Policy: p, Model: a, Expressions: a.expressions, Composer: a.composer, Agents: a,
		Schemas: checks{schema.NewCompiler(schema.Options{MaxInstanceBytes: tools.MaxInputBytes, ExactNumbers: true})}, Tenants: p,
		GrantRules: a, Logger: slog.New(slog.DiscardHandler), Now: p.now,
	})
	a.mu.Lock()
	a.plays[p.id] = p
	a.mu.Unlock()
	return p
}

func (p *play) now() time.Time { return p.env.Load().Now().UTC() }

// Rule rules by the policies that hold at the moment.
func (p *play) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (jig.Ruling, error) {
	return p.policies.Load().Rule(ctx, tool, call, session, now)
}

// Settings are those of a tenant that trusts what signals claim.
func (p *play) Settings(context.Context, string) (jig.TenantSettings, error) {
	return jig.TenantSettings{Signals: jig.SignalsTrusted, People: racePeople}, nil
}

// effect notes that race.write ran; it says whether the connection is cut off afterwards.
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

// signal and update add letters.
func (p *play) signal(at time.Duration, name string, payload any) *letter {
	l := &letter{at: at, name: name, payload: func() any { return payload }}
	p.letters = append(p.letters, l)
	return l
}

func (p *play) at(at time.Duration, do func()) {
	p.letters = append(p.letters, &letter{at: at, do: do})
}

// passInput starts the session of an agent.
func (p *play) passInput() workflows.PassInput {
	body, err := json.Marshal(jig.Agent{Name: p.agent, Version: "1", Model: "race/planner", Instructions: "Play.", Tools: []string{"*"}, Limits: p.limits})
	require.NoError(p.t, err)
	return workflows.PassInput{Tenant: p.tenant, Start: &workflows.StartSession{
		Document: string(body), DocumentName: "race.md", Task: "race", Principal: jig.Principal{ID: raceRequester},
	}}
}

func (p *play) callInput(tool string, input any) workflows.CallInput {
	raw, err := json.Marshal(input)
	require.NoError(p.t, err)
	return workflows.CallInput{Tenant: p.tenant, Tool: tool, Input: raw, Principal: jig.Principal{ID: raceRequester}}
}

// run plays every run of the session's workflow, until it ends and nobody speaks to it any more.
func (p *play) run(name string, in any) {
	p.kind = name
	for now := p.began; ; {
		env := p.environment(now)
		for _, l := range p.letters {
			if !l.heard {
				env.RegisterDelayedCallback(func() { p.post(env, l) }, max(0, p.began.Add(l.at).Sub(now)))
			}
		}
		env.ExecuteWorkflow(name, in)
		require.Eventually(p.t, func() bool { return p.flying.Load() == 0 }, 20*time.Second, 100*time.Microsecond)
		now = env.Now()
		p.longest = max(p.longest, p.length)
		var next *workflow.ContinueAsNewError
		p.ended = env.GetWorkflowError()
		if errors.As(p.ended, &next) {
			in = p.decoded(name, next)
			continue
		}
		spoken := p.nextMessage()
		if spoken == nil || name != workflows.PassWorkflow {
			return
		}
		// Signal-with-start: a message to a session that has ended begins its next pass.
		if at := p.began.Add(spoken.at); at.After(now) {
			now = at
		}
		in = workflows.PassInput{Tenant: p.tenant}
	}
}

func (p *play) decoded(name string, next *workflow.ContinueAsNewError) any {
	require.Equal(p.t, name, next.WorkflowType.Name)
	if name == workflows.CallWorkflow {
		var in workflows.CallInput
		require.NoError(p.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
		return in
	}
	var in workflows.PassInput
	require.NoError(p.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	return in
}

// nextMessage drops what was sent to a session that has ended, up to the first message.
func (p *play) nextMessage() *letter {
	for _, l := range p.letters {
		if l.heard {
			continue
		}
		if l.name == workflows.SignalMessage {
			return l
		}
		l.heard = true // nobody was there: the sender is told so
	}
	return nil
}

var errGone = errors.New("there is no such workflow")

// environment is a run of the workflow, from a moment on.
func (p *play) environment(now time.Time) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	env.SetStartTime(now)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: p.id, TaskQueue: workflows.TaskQueue})
	p.env.Store(env)
	p.posted = nil
	p.runs++
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&watcher{play: p, env: env, run: fmt.Sprintf("run-%d", p.runs)}}})
	names := make([]string, 0, 4)
	for _, tool := range p.registry.Tools() {
		names = append(names, tool.Name)
	}
	workflows.Register(env, p.acts, names)
	// A composition of an earlier run, which is over.
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(errGone)
	p.estimate(env)
	return env
}

// estimate counts the events that a server would have recorded: the test environment keeps none.
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

// post delivers a letter; one that finds the run over is for the next.
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
			if result, ok := answer.(workflows.DecideResult); ok && err == nil {
				l.answer = &result
			}
		},
	}, l.made)
}
