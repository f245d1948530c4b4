package workflows_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/person"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/spec"
)

const day = 24 * time.Hour

// ruled compiles a policy document.
func ruled(t *testing.T, document string) policy.Set {
	t.Helper()
	read, err := spec.LoadPolicy("race.yaml", []byte(document))
	require.NoError(t, err)
	rules, err := policy.Compile(read, "v1")
	require.NoError(t, err)
	return policy.NewSet(rules)
}

// waiting returns policies with one rule that asks for race.write with the given terms.
func asking(t *testing.T, terms string) policy.Set {
	t.Helper()
	return ruled(t, raceDocument("  - {name: own, when: tool.name == 'race.write', verdict: ask"+terms+"}\n"))
}

func asks(tool, input string) jig.ToolCall {
	return jig.ToolCall{Name: tool, Input: json.RawMessage(input)}
}

// decided sends a decision as an update. The returned letter has the answer afterwards.
func (p *play) decided(at time.Duration, d jig.Decision) *letter {
	l := &letter{
		at: at, name: protocol.UpdateDecide, update: fmt.Sprintf("update-%d", len(p.letters)),
		payload: func() any { return protocol.Decisions{Decision: d} }, says: string(d.Answer),
	}
	p.letters = append(p.letters, l)
	return l
}

func (l *letter) ruling(t *testing.T) jig.Ruled {
	t.Helper()
	require.NoError(t, l.err)
	require.NotNil(t, l.answer, "%s was not answered", l.says)
	require.Len(t, l.answer.Decisions, 1)
	return l.answer.Decisions[0]
}

// notices counts the session's notices by kind.
func (p *play) notices() map[jig.NoticeKind]int {
	rows, err := p.conn.Query(p.t.Context(), "select kind from notices where session_id = $1", p.id)
	require.NoError(p.t, err)
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[jig.NoticeKind])
	require.NoError(p.t, err)
	counts := map[jig.NoticeKind]int{}
	for _, kind := range kinds {
		counts[kind]++
	}
	return counts
}

// due returns when the events of a type were due, relative to the start.
func (p *play) due(kind jig.EventType) []time.Duration {
	var list []time.Duration
	for _, e := range p.record().events {
		if e.Type != kind {
			continue
		}
		var data struct {
			Due time.Time `json:"due"`
		}
		require.NoError(p.t, json.Unmarshal(e.Data, &data))
		list = append(list, data.Due.Sub(p.began))
	}
	return list
}

// resultOf returns the result of a call as the model got it in the latest pass.
func (p *play) resultOf(call string) *jig.ToolResult {
	pass, ordinal, _, err := jig.ParseCallID(call)
	require.NoError(p.t, err)
	last := p.asked[len(p.asked)-1]
	require.Greater(p.t, len(last.Exchanges), pass-1)
	require.NotNil(p.t, last.Exchanges[pass-1].Calls[ordinal-1].Result, "the model got no result of call %s", call)
	return last.Exchanges[pass-1].Calls[ordinal-1].Result
}

// every returns the multiples of step up to until.
func every(step, until time.Duration) []time.Duration {
	var list []time.Duration
	for at := step; at <= until; at += step {
		list = append(list, at)
	}
	return list
}

// maxHistory is the maximum history length of a run that only waits: the length at which it starts no more calls, plus what may
// still be running.
const maxHistory = 650

// An approval waits for a month. People are reminded, escalations entitle other people to decide, and one of them approves it in the end.
func TestApproval_WaitsForAMonth(t *testing.T) {
	t.Parallel()
	for name, remind := range map[string]time.Duration{"reminded daily": day, "reminded hourly": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArena(t, storetest.New(t))
			p := a.play(t, asking(t, ", approvers: {groups: [finance]}, expires: 31d, remind: "+remind.String()+
				", escalate: [{after: 3d, approvers: {groups: [leads]}}, {after: 10d, approvers: {groups: [board]}}]"))
			p.estimated = true
			p.turns = [][]jig.ToolCall{{asks(raceWrite, `{"item":"a","amount":1}`)}}
			early := p.decided(9*day+time.Minute, jig.Decision{Call: "1.1", By: "max"})
			stranger := p.decided(20*day+time.Minute, jig.Decision{Call: "1.1", By: "nobody"})
			late := p.decided(29*day+time.Minute, jig.Decision{Call: "1.1", By: "max"})
			p.run(protocol.PassWorkflow, p.passInput())
			require.NoError(t, p.ended)

			require.Equal(t, jig.DecisionRefused, early.ruling(t).Outcome)
			require.Contains(t, early.ruling(t).Reason, "max may not decide this call")
			require.Equal(t, jig.DecisionRefused, stranger.ruling(t).Outcome)
			require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallReserved}, late.ruling(t))
			require.Len(t, p.effects[p.key("1.1")], 1)
			require.True(t, p.resultOf("1.1").Success)

			reminders := every(remind, 29*day)
			require.Equal(t, map[jig.NoticeKind]int{
				jig.NoticeRequested: 1, jig.NoticeReminder: len(reminders), jig.NoticeEscalated: 2, jig.NoticeDecided: 1,
			}, p.notices())
			require.Equal(t, reminders, p.due(jig.EventApprovalReminded))
			require.Equal(t, []time.Duration{3 * day, 10 * day}, p.due(jig.EventApprovalEscalated))
			require.Less(t, p.longest, maxHistory, "the longest history of %d runs", p.runs)
			if remind < day {
				require.Greater(t, p.runs, 4)
			}
			p.chainAnew()
			p.check()
		})
	}
}

// chainAnew makes the audit checks start again at the beginning of the chain.
func (p *play) chainAnew() {
	fresh := newChain(p.tenant)
	p.chain, p.audited = fresh, 0
}

// An approval that nobody decides for a week expires. Then the agent is told, or the session is canceled or fails. The same holds
// inside a composition.
func TestApproval_Expires(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{raceWrite, raceFlow} {
		for _, outcome := range []jig.ExpiryOutcome{jig.ExpiryDeny, jig.ExpiryCancel, jig.ExpiryFail} {
			t.Run(tool+" "+string(outcome), func(t *testing.T) {
				t.Parallel()
				a := newArena(t, storetest.New(t))
				p := a.play(t, asking(t, ", on_expiry: "+string(outcome))) // it waits as long as the agent's default says: a week
				p.turns = [][]jig.ToolCall{{asks(tool, `{"item":"a","amount":1}`)}}
				var before jig.SessionView
				p.at(7*day-time.Second, func() {
					var err error
					before, err = p.db.SessionView(t.Context(), p.tenant, p.id)
					require.NoError(t, err)
				})
				p.run(protocol.PassWorkflow, p.passInput())
				require.Len(t, before.Pending, 1)
				require.Empty(t, p.effects)
				require.WithinDuration(t, p.began.Add(7*day), p.now(), time.Hour)
				require.Equal(t, map[jig.NoticeKind]int{jig.NoticeRequested: 1, jig.NoticeExpired: 1}, p.notices())
				session, err := p.db.Session(t.Context(), p.tenant, p.id)
				require.NoError(t, err)
				switch outcome {
				case jig.ExpiryDeny:
					require.NoError(t, p.ended)
					require.Equal(t, jig.StatusCompleted, session.Status)
					require.Equal(t, jig.CodeExpired, p.resultOf("1.1").Error.Code)
				case jig.ExpiryCancel:
					require.True(t, temporal.IsCanceledError(p.ended), "%v", p.ended)
					require.Equal(t, jig.StatusCanceled, session.Status)
					require.Equal(t, jig.ReasonExpired, session.Reason)
				case jig.ExpiryFail:
					require.ErrorContains(t, p.ended, "nobody decided in time")
					require.Equal(t, jig.StatusFailed, session.Status)
					require.Equal(t, jig.ReasonExpired, session.Reason)
					require.Equal(t, jig.CodeExpired, session.Error.Code)
				}
				if outcome != jig.ExpiryDeny {
					require.Len(t, p.asked, 1, "the agent continued")
				}
				p.check()
			})
		}
	}
}

// A question waits for days, and an answer that does not fit does not change it. A question that nobody answers expires, and the
// agent is told.
func TestQuestion_Waits(t *testing.T) {
	t.Parallel()
	a := newArena(t, storetest.New(t))
	p := a.play(t, ruled(t, raceDocument("")))
	p.turns = [][]jig.ToolCall{
		{asks(person.AskTool, `{"question":"How many?","schema":{"type":"integer"},"expires":"6d"}`)},
		{asks(person.AskTool, `{"question":"And why?","expires":"2d"}`)},
	}
	answer := func(at time.Duration, value string) *letter {
		l := &letter{at: at, name: protocol.UpdateAnswer, update: value, payload: func() any {
			return jig.Reply{Call: "1.1", Value: json.RawMessage(value), By: "lea"}
		}, says: value}
		p.letters = append(p.letters, l)
		return l
	}
	wrong, asked := answer(4*day, `"many"`), p.decided(4*day, jig.Decision{Call: "1.1", By: "lea"})
	right, again := answer(5*day, `7`), answer(5*day, `8`)
	p.run(protocol.PassWorkflow, p.passInput())
	require.NoError(t, p.ended)
	require.Equal(t, jig.DecisionRefused, wrong.ruling(t).Outcome)
	require.Contains(t, wrong.ruling(t).Reason, "does not fit the question")
	require.Equal(t, jig.DecisionRefused, asked.ruling(t).Outcome)
	require.ElementsMatch(t, []string{jig.DecisionAccepted, jig.DecisionRefused}, []string{right.ruling(t).Outcome, again.ruling(t).Outcome})
	value := "7"
	if again.ruling(t).Outcome == jig.DecisionAccepted { // both came at the same time
		value = "8"
	}
	require.JSONEq(t, `{"answer":`+value+`,"by":"lea"}`, string(p.resultOf("1.1").Data))
	require.Equal(t, jig.CodeExpired, p.resultOf("2.1").Error.Code)
	require.WithinDuration(t, p.began.Add(7*day), p.now(), time.Hour)
	require.Equal(t, map[jig.NoticeKind]int{jig.NoticeRequested: 2, jig.NoticeDecided: 1, jig.NoticeExpired: 1}, p.notices())
	p.check()
}

// Twenty approvals in one pass are decided in any order. Approved calls run at once, denied ones are an error for the model, and
// the others wait.
func TestPass_RunsTwentyApprovals(t *testing.T) {
	t.Parallel()
	const calls, last = 20, 17
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 20))
			a := newArena(t, storetest.New(t))
			p := a.play(t, asking(t, ""))
			p.turns = [][]jig.ToolCall{{}}
			for i := range calls {
				p.turns[0] = append(p.turns[0], asks(raceWrite, fmt.Sprintf(`{"item":"item %d","amount":%d}`, i, i)))
			}
			denied := map[string]bool{}
			for i, n := range r.Perm(calls) {
				call, at := jig.CallID(1, n+1), time.Duration(i+1)*time.Hour
				if i >= last {
					at = 6*day - time.Hour // these wait
				}
				d := jig.Decision{Call: call, By: "fay", Answer: jig.AnswerApprove}
				if denied[call] = r.IntN(3) == 0; denied[call] {
					d.Answer, d.Reason = jig.AnswerDeny, "not "+call
				}
				p.decided(at, d)
				if i >= last {
					continue
				}
				p.at(at+30*time.Minute, func() { // while an activity runs, the clock is real, so a second may be too short
					p.mu.Lock()
					ran := len(p.effects[p.key(call)])
					p.mu.Unlock()
					require.Equal(t, !denied[call], ran == 1, "call %s", call)
					view, err := p.db.SessionView(t.Context(), p.tenant, p.id)
					require.NoError(t, err)
					require.Len(t, view.Pending, calls-i-1)
					require.Len(t, p.asked, 1, "the model was asked before all were decided")
				})
			}
			p.run(protocol.PassWorkflow, p.passInput())
			require.NoError(t, p.ended)
			for call, no := range denied {
				result := p.resultOf(call)
				require.Equal(t, !no, result.Success, "call %s", call)
				if no {
					require.Equal(t, jig.CodeDenied, result.Error.Code)
					require.Equal(t, "not "+call, result.Error.Message)
				}
			}
			p.check()
		})
	}
}
