package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

const racePolicy = `kind: policy
name: race
rules:
  - {name: pair, when: "tool.name == 'test.once' && call.input.name.startsWith('pair')", verdict: ask, approvers: {groups: [finance]}, quorum: 2, not_requester: true}
  - {name: vast, when: "tool.name == 'test.once' && call.input.name.endsWith('-vast')", verdict: ask, approvers: {people: [cfo]}}
`

// raceEnv is an environment with one worker, which any of the schedules of decisions may kill.
type raceEnv struct {
	tenantEnv
	receiver      *receiver
	restarting    sync.Mutex
	kills, resets atomic.Int64
}

// restart kills the worker and starts another.
func (a *raceEnv) restart() {
	a.restarting.Lock()
	defer a.restarting.Unlock()
	a.kill()
	a.start()
	a.kills.Add(1)
	// Temporal gives a workflow task more time after each worker that dies with it, at last minutes. On a slow machine no session would end
	// if workers were killed as soon as they are up.
	_ = a.answers() //nolint:errcheck // the sessions show whether the worker works
}

// raceRun plays one schedule: a session, and the concurrent actions on it that the seed determines.
type raceRun struct {
	*raceEnv
	random *rand.Rand
	id     string
	// names are the names that the calls send, by call.
	names map[string]string
	// log records the actions, for the message of a failure.
	mu  sync.Mutex
	log []string
}

func (m *raceRun) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// TestChaos_Race plays seeded schedules of concurrent decisions, with killed workers and resets of the workflow. Each call must end once and
// run at most once, and only if it was approved; the log and the audit must agree about it.
func TestChaos_Race(t *testing.T) {
	t.Parallel()
	schedules, seed := chaos(t, 500, 60, 12)
	a := &raceEnv{tenantEnv: newTenantEnv(t), receiver: newReceiver(t)}
	a.install("tenant.yaml", a.tenantDocument(""), a.trusting)
	a.install("race.yaml", racePolicy, a.trusting)
	require.True(t, eventually(t.Context(), patience, func() bool {
		id := a.trigger("test.once", map[string]any{"url": a.receiver.URL, "name": "pair-" + jig.NewSessionID()}).SessionID
		return underRule(a.waiting(id).Pending[0])
	}), "the policy is read within a second")

	list := make([]*raceRun, schedules)
	var playing sync.WaitGroup
	slots := make(chan struct{}, 12)
	for n := range list {
		list[n] = &raceRun{raceEnv: a, random: rand.New(rand.NewPCG(uint64(seed), uint64(1000+n))), names: map[string]string{}}
		slots <- struct{}{}
		playing.Go(func() {
			defer func() { <-slots }()
			if err := list[n].play(n); err != nil {
				t.Errorf("schedule %d, %s: %v\n%s", n, list[n].id, err, strings.Join(list[n].log, "\n"))
			}
		})
	}
	playing.Wait()
	require.False(t, t.Failed())
	t.Logf("%d schedules, %d killed workers, %d resets", schedules, a.kills.Load(), a.resets.Load())
	require.Positive(t, a.kills.Load())
	require.Positive(t, a.resets.Load())
	rows := map[string][]audit.Entry{}
	for _, e := range a.requireAudited(a.tenant) {
		rows[e.SessionID] = append(rows[e.SessionID], e)
	}
	for n, m := range list {
		m.requireOneStory(n, rows[m.id])
	}
}

// play starts the session, performs the seed's actions, and decides the calls that still wait.
func (m *raceRun) play(n int) error {
	if err := m.begin(n); err != nil {
		return err
	}
	for round := range 2 + m.random.IntN(3) {
		var acting sync.WaitGroup
		ready := make(chan struct{})
		for range 2 + m.random.IntN(3) {
			do := m.action()
			acting.Go(func() { <-ready; do() })
		}
		close(ready)
		if n%6 == 0 && round == 0 || m.random.IntN(15) == 0 {
			m.note("kill")
			m.restart()
		}
		if n%4 == 1 && round == 1 || m.random.IntN(8) == 0 {
			m.reset()
		}
		acting.Wait()
		eventually(m.t.Context(), time.Duration(m.random.IntN(300))*time.Millisecond, func() bool { return false })
	}
	return m.end()
}

// begin starts a single call, or a session with several calls and a question, and waits until something waits for a person.
func (m *raceRun) begin(n int) error {
	prefix := []string{"race", "pair"}[m.random.IntN(2)]
	input := func(call string) string {
		m.names[call] = fmt.Sprintf("%s-%d-%s", prefix, n, strings.ReplaceAll(call, ".", "-"))
		return fmt.Sprintf(`{"url":%q,"name":%q,"before":%d,"after":%d}`, m.receiver.URL, m.names[call], m.random.IntN(150), m.random.IntN(150))
	}
	m.id = newID(m.tenant)
	var err error
	if m.random.IntN(3) == 0 {
		in := callInput("test.once", nil)
		in.Tenant, in.Input = m.tenant, json.RawMessage(input("1.1"))
		_, err = m.StartCall(m.t.Context(), in, m.id)
	} else {
		_, err = m.Start(m.t.Context(), client.StartOptions{
			Tenant: m.tenant, ID: m.id, DocumentName: "probe.md", Principal: jig.Principal{ID: "tester"},
			Document: agent(`["*"]`, fmt.Sprintf(`    - when: pass == 1
      calls:
        - {tool: test.once, input: %s}
        - {tool: test.once, input: %s}
        - {tool: person.ask, input: {question: "Which one?", options: [red, blue]}}
    - answer: done
`, input("1.1"), input("1.2"))),
		})
	}
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	if !eventually(m.t.Context(), patience, func() bool {
		view, err := m.Status(m.t.Context(), m.tenant, m.id)
		return err == nil && len(view.Pending) > 0
	}) {
		return fmt.Errorf("nothing waits")
	}
	return nil
}

// action chooses a random action on the session. It draws all random numbers before it returns, so that a seed always gives the same
// actions.
func (m *raceRun) action() func() {
	by := []string{"ana", "ben", "cfo", "eve", "tester"}[m.random.IntN(5)]
	call := []string{"1.1", "1.1", "1.1", "1.2", "1.2", "1.3"}[m.random.IntN(6)]
	d := jig.Decision{Call: call, By: by, Answer: jig.AnswerApprove}
	update := m.random.IntN(2) == 0
	switch what := m.random.IntN(12); what {
	case 0, 1, 2:
	case 3, 4:
		d.Answer, d.Reason = jig.AnswerDeny, "no"
	case 5, 6:
		name := m.names[call] + []string{"-edited", "-vast"}[m.random.IntN(2)]
		d.Input = json.RawMessage(fmt.Sprintf(`{"url":%q,"name":%q}`, m.receiver.URL, name))
	case 7:
		d.Answer, d.To = jig.AnswerDelegate, "dora"
	case 8:
		d.Digest = "0000"
	case 9:
		return func() { m.twice(d) }
	case 10:
		reply := jig.Reply{Call: "1.3", By: by, Value: json.RawMessage([]string{`"red"`, `"green"`}[m.random.IntN(2)])}
		return func() { m.send(update, protocol.SignalAnswer, protocol.UpdateAnswer, reply, reply) }
	default:
		if m.random.IntN(3) == 0 {
			return func() { m.note("cancel: %v", m.Cancel(m.t.Context(), m.tenant, m.id)) }
		}
		word := jig.Reconciliation{Call: call, By: by, Outcome: jig.OutcomeGiveUp}
		return func() { m.send(update, protocol.SignalReconcile, protocol.UpdateReconcile, word, word) }
	}
	signal := map[jig.Answer]string{
		jig.AnswerApprove: protocol.SignalApprove, jig.AnswerDeny: protocol.SignalDeny, jig.AnswerDelegate: protocol.SignalDelegate,
	}[d.Answer]
	bare := d
	bare.Answer = ""
	return func() {
		m.send(update, signal, protocol.UpdateDecide, bare, protocol.Decisions{Decisions: []jig.Decision{d}})
	}
}

// send sends one decision by signal or by update. It only logs errors (no worker, an ended session), because the checks at the end cover only
// the outcomes of the calls.
func (m *raceRun) send(update bool, signal, name string, payload, updatePayload any) {
	if !update {
		m.note("signal %s %+v: %v", signal, payload, shared.temporal.SignalWorkflow(m.t.Context(), m.id, "", signal, payload))
		return
	}
	answer, err := m.updateOnce(name, name+"-"+jig.NewSessionID(), updatePayload)
	m.note("update %s %+v: %+v %v", name, updatePayload, answer, err)
}

func (m *raceRun) updateOnce(name, updateID string, payload any) (protocol.DecideResult, error) {
	var answer protocol.DecideResult
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	handle, err := shared.temporal.UpdateWorkflow(ctx, sdk.UpdateWorkflowOptions{
		UpdateID: updateID, WorkflowID: m.id, UpdateName: name, Args: []any{payload}, WaitForStage: sdk.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	return answer, err
}

// twice sends the same update twice at the same time, which must give the same answer, and the same signal twice.
func (m *raceRun) twice(d jig.Decision) {
	id := "twice-" + jig.NewSessionID()
	payload := protocol.Decisions{Decisions: []jig.Decision{d}}
	var answers [2]protocol.DecideResult
	var errs [2]error
	var sending sync.WaitGroup
	for i := range answers {
		sending.Go(func() { answers[i], errs[i] = m.updateOnce(protocol.UpdateDecide, id, payload) })
	}
	sending.Wait()
	m.note("twice %+v: %+v %v", d, answers, errs)
	if errs[0] == nil && errs[1] == nil && !slices.Equal(answers[0].Decisions, answers[1].Decisions) {
		m.t.Errorf("%s: one update has two answers: %+v", m.id, answers)
	}
	d.Answer = ""
	for range 2 {
		m.note("signal twice: %v", shared.temporal.SignalWorkflow(m.t.Context(), m.id, "", protocol.SignalApprove, d))
	}
}

// reset resets the current run to its first workflow task.
func (m *raceRun) reset() {
	described, err := shared.temporal.DescribeWorkflowExecution(m.t.Context(), m.id, "")
	if err == nil && described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		_, err = shared.temporal.ResetWorkflowExecution(m.t.Context(), &workflowservicepb.ResetWorkflowExecutionRequest{
			Namespace: shared.stack.Namespace(), WorkflowExecution: described.GetWorkflowExecutionInfo().GetExecution(),
			Reason: "a test", RequestId: jig.NewSessionID(), WorkflowTaskFinishEventId: 3,
		})
		if err == nil {
			m.resets.Add(1)
		}
	}
	m.note("reset: %v", err)
}

// end decides the calls and questions that still wait, until the session has ended in the store and in Temporal.
func (m *raceRun) end() error {
	deny, rounds := m.random.IntN(3) == 0, 0
	over := eventually(m.t.Context(), patience, func() bool {
		rounds++
		deny = deny || rounds > 20 // so many have delegated to the same person that the quorum cannot be reached any more
		view, err := m.Status(m.t.Context(), m.tenant, m.id)
		if err != nil {
			return false
		}
		for _, p := range view.Pending {
			m.settle(p, deny)
		}
		if !view.Status.Final() {
			eventually(m.t.Context(), 300*time.Millisecond, func() bool { return false })
			return false
		}
		described, err := shared.temporal.DescribeWorkflowExecution(m.t.Context(), m.id, "")
		return err == nil && described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	})
	if !over {
		view, err := m.Status(m.t.Context(), m.tenant, m.id)
		return fmt.Errorf("the session does not end: %+v, %w; its workflow tasks failed with %v; %s", view, err, m.taskFailures(m.id), m.stuck(m.id))
	}
	return nil
}

// reviewers returns people who can together decide every waiting call.
func reviewers() []string { return []string{"ana", "ben", "cfo", "dora"} }

// settle decides one waiting call or question. It reconciles an unknown outcome only after some seconds, because after a reset an abandoned
// attempt may still be about to have the effect.
func (m *raceRun) settle(p jig.Pending, deny bool) {
	switch p.Kind {
	case jig.PendingQuestion:
		for _, by := range reviewers() { // people who have delegated the decision can no longer decide
			m.send(true, "", protocol.UpdateAnswer, nil, jig.Reply{Call: p.Call, By: by, Value: json.RawMessage(`"blue"`)})
		}
	case jig.PendingReconcile:
		if time.Since(p.RequestedAt) < 10*time.Second {
			return
		}
		outcome := jig.OutcomeNotHappened
		if m.executions(p.Call) > 0 {
			outcome = jig.OutcomeHappened
		}
		for _, by := range reviewers() {
			m.send(true, "", protocol.UpdateReconcile, nil, jig.Reconciliation{Call: p.Call, By: by, Outcome: outcome, Attempt: p.Attempt})
		}
	case jig.PendingApproval:
		for _, by := range reviewers() {
			answer := jig.AnswerApprove
			if deny {
				answer = jig.AnswerDeny
			}
			m.send(true, "", protocol.UpdateDecide, nil, jig.Decision{Call: p.Call, By: by, Answer: answer})
		}
	}
}

// executions returns how often a call's effect reached the outside, with its original or an edited name.
func (m *raceRun) executions(call string) int {
	sum := 0
	for _, suffix := range []string{"", "-edited", "-vast"} {
		requests, _ := m.receiver.count(m.names[call] + suffix)
		sum += requests
	}
	return sum
}
