package activities_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/tools"
)

// answering is a model that gives one answer.
type answering struct {
	anyModel
	answer chat.Turn
	err    error
	asked  int
	// before is called before it answers, if set.
	before func()
}

func (m *answering) Answer(context.Context, chat.Request, func(string)) (chat.Turn, error) {
	m.asked++
	if m.before != nil {
		m.before()
	}
	return m.answer, m.err
}

// thinking sets up an office whose model gives an answer, with a tool that runs without asking.
func thinking(t *testing.T, answer chat.Turn, change ...func(*office)) (*office, *answering) {
	t.Helper()
	m := &answering{answer: answer}
	draft := func(o *office) {
		o.extra = []tools.Tool{o.payment(jig.Tool{Permission: jig.PermissionDraft}, paid)}
		o.model = m
	}
	return newOffice(t, append([]func(*office){draft}, change...)...), m
}

func (o *office) thinks(t *testing.T, pass, limit int) activities.Thought {
	t.Helper()
	thought, err := o.Think(t.Context(), activities.ThinkInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: pass}, Limit: limit})
	require.NoError(t, err)
	return thought
}

func pays(orders ...string) chat.Turn {
	turn := chat.Turn{Stop: chat.StopCalls}
	for _, order := range orders {
		turn.Calls = append(turn.Calls, jig.ToolCall{ProviderID: order, Name: payTool, Input: json.RawMessage(`{"order":"` + order + `"}`)})
	}
	return turn
}

func TestThink_AdmitsTheCallsOfTheAnswer(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, pays("a", "b", "a"))
	thought := o.thinks(t, 1, 100)
	require.Equal(t, 3, thought.Calls)
	require.True(t, thought.Continues)
	require.Len(t, thought.Admitted.Calls, 2)
	require.Equal(t, jig.CallDuplicate, o.call(t, "1.3").Status)

	in := activities.AdmitInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: 1}, Limit: 100}
	again, err := o.Admit(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, *thought.Admitted, again, "the calls are admitted once")
	require.Equal(t, activities.Thought{Calls: 3}, o.thinks(t, 1, 100), "a retry leaves the rest to the workflow")
	require.Equal(t, 1, m.asked)

	// A call that an earlier pass made is a duplicate, and an answer with nothing else ends the session.
	m.answer = pays("b")
	thought = o.thinks(t, 2, 100)
	require.Equal(t, jig.ReasonAllToolsDuplicate, thought.Ended.Reason)
	require.Equal(t, "1.2", o.call(t, "2.1").DuplicateOf)
}

// A call from before the session's summary is still known.
func TestThink_KnowsTheCallsThatASummaryCovers(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, pays("a"))
	require.Len(t, o.thinks(t, 1, 100).Admitted.Calls, 1)
	m.answer = pays("b")
	require.Len(t, o.thinks(t, 2, 100).Admitted.Calls, 1)
	require.NoError(t, o.db.SaveSummary(t.Context(), o.tenant, o.session, 1, "a was paid"))
	m.answer = pays("a")
	require.Equal(t, jig.ReasonAllToolsDuplicate, o.thinks(t, 3, 100).Ended.Reason)
	require.Equal(t, "1.1", o.call(t, "3.1").DuplicateOf)
}

func TestThink_ReturnsAtMostTheLimit(t *testing.T) {
	t.Parallel()
	o, _ := thinking(t, pays("a", "b", "c"))
	thought := o.thinks(t, 1, 2)
	require.Len(t, thought.Admitted.Calls, 2)
	require.True(t, thought.Admitted.More)
}

func TestThink_EndsTheSessionWithAnAnswer(t *testing.T) {
	t.Parallel()
	o, _ := thinking(t, chat.Turn{Stop: chat.StopEnd, Text: "42"})
	thought := o.thinks(t, 1, 100)
	require.Equal(t, &activities.Settled{Status: jig.StatusCompleted, Reason: jig.ReasonAnswered, Answer: "42"}, thought.Ended)
	require.Equal(t, jig.StatusCompleted, o.stored(t, o.session).Status)

	long, _ := thinking(t, chat.Turn{Stop: chat.StopEnd, Text: string(make([]byte, jig.InlineBytes+1))})
	require.Equal(t, activities.Thought{Admitted: &activities.Admitted{Calls: []activities.CallRef{}}}, long.thinks(t, 1, 100), "the workflow settles a pass with a long answer")
	settled, err := long.Settle(t.Context(), activities.PassRef{SessionRef: long.ref(), Pass: 1})
	require.NoError(t, err)
	require.True(t, settled.Truncated)
}

// A message that arrives while the model answers keeps the session open.
func TestThink_AMessageDuringTheAnswerKeepsTheSessionOpen(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, chat.Turn{Stop: chat.StopEnd, Text: "42"})
	m.before = func() {
		_, err := o.db.AddMessage(t.Context(), o.tenant, o.session, "m", chat.Message{Text: "and another thing"})
		require.NoError(t, err)
	}
	thought := o.thinks(t, 1, 100)
	require.Nil(t, thought.Ended)
	require.True(t, thought.Continues)
	require.Equal(t, jig.StatusWorking, o.stored(t, o.session).Status)
}

// The last pass that the limits allow does not continue by itself: the workflow settles it when its calls have their results.
func TestThink_LeavesTheLastPassToSettle(t *testing.T) {
	t.Parallel()
	o, _ := thinking(t, pays("a"))
	thought := o.thinks(t, 50, 100)
	require.False(t, thought.Continues)
	require.Nil(t, thought.Ended)
	require.Len(t, thought.Admitted.Calls, 1)
}

// refusing is a store that cannot store an answer together with what follows from it.
type refusing struct{ activities.Store }

func (refusing) StoreAnswer(context.Context, ledger.Answer) (*ledger.End, error) {
	return nil, jig.Errorf(jig.CodeUnavailable, "try later")
}

// An answer that was paid for is kept even if its calls cannot be admitted at once.
func TestThink_KeepsAnAnswerWhoseCallsCannotBeAdmitted(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, pays("a"), func(o *office) { o.store = refusing{o.store} })
	for range 2 {
		require.Equal(t, activities.Thought{Calls: 1}, o.thinks(t, 1, 100))
	}
	require.Equal(t, 1, m.asked)
	in := activities.AdmitInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: 1}, Limit: 100}
	admitted, err := o.Admit(t.Context(), in)
	require.NoError(t, err)
	require.Len(t, admitted.Calls, 1)
}

// It keeps its warning, too.
func TestThink_KeepsTheWarningOfAnAnswerWhoseCallsCannotBeAdmitted(t *testing.T) {
	t.Parallel()
	answer := pays("a")
	answer.Warning = "it may not be complete"
	o, _ := thinking(t, answer, func(o *office) { o.store = refusing{o.store} })
	o.thinks(t, 1, 100)
	require.Contains(t, string(o.event(t, jig.EventModelWarning)), answer.Warning)
}

// The workflow learns from a turn whether the model is quick.
func TestThink_SaysHowQuickTheModelIs(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, chat.Turn{}, func(o *office) { o.modelName = "openai/small" })
	pass := 0
	quick := func() bool {
		pass++
		m.answer = pays("order " + strconv.Itoa(pass))
		return *o.thinks(t, pass, 100).Quick
	}
	require.False(t, quick(), "nothing is known yet")
	require.Eventually(t, quick, 2*time.Minute, time.Nanosecond)
	m.err = budget.Held("nothing is left")
	require.True(t, o.thinks(t, pass+1, 100).Paused)
	m.err = jig.Errorf(jig.CodeBudgetExhausted, "nothing is left")
	_, err := o.Think(t.Context(), activities.ThinkInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: pass + 1}, Limit: 100})
	require.Error(t, err)
	m.err = nil
	require.True(t, quick(), "a budget says nothing about the model")
	m.before = func() { o.clock += time.Minute }
	require.False(t, quick())
	require.Nil(t, o.thinks(t, pass, 100).Quick, "a retry did not ask the model")
}

// A worker that stops cancels what it runs. Temporal must run it again elsewhere; only an error that says something about the request is final.
func TestThink_IsRetriedIfItsWorkerStops(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, chat.Turn{})
	stopping, stop := context.WithCancel(t.Context())
	m.before = stop
	for _, final := range []bool{false, true} {
		m.err = &jig.Error{Code: jig.CodeCanceled, Message: "the request was canceled", Cause: context.Canceled}
		if final {
			m.err = jig.Errorf(jig.CodeCanceled, "the provider canceled the request")
		}
		_, err := o.Think(t.Context(), activities.ThinkInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: 1}, Limit: 100})
		var failed *temporal.ApplicationError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, final, failed.NonRetryable())
	}
	_, err := o.RunTool(stopping, activities.RunInput{SessionRef: o.ref(), Call: "1.1"})
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.NonRetryable(), "the database says the same about a request that is canceled")
}
