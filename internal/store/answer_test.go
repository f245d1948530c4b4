package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
)

// turn returns the model's turn of a pass, with the admission of some calls.
func (w world) turn(pass int, text string, calls ...jig.Call) ledger.Answer {
	a := ledger.Answer{Turn: chat.Turn{Text: text, Usage: chat.Usage{InputTokens: 100, OutputTokens: 20}}}
	a.Tenant, a.SessionID, a.Pass, a.Calls = w.tenant, w.session, pass, calls
	for _, c := range calls {
		if c.Verdict == jig.VerdictAsk {
			a.Approvals = append(a.Approvals, pendingOf(c))
		}
	}
	return a
}

// final returns an answer that ends the session.
func (w world) final(pass int, text string) ledger.Answer {
	a, end := w.turn(pass, text), w.end(pass, jig.StatusCompleted)
	end.Reason, end.Answer = jig.ReasonAnswered, text
	a.End = &end
	return a
}

func TestStoreAnswer_StoresTheTurnWithItsCalls(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 100_000} {
		w := newWorld(t)
		asking := w.call(2)
		asking.Verdict, asking.Status = jig.VerdictAsk, jig.CallWaiting
		a := w.turn(1, big(size), w.call(1), asking)
		ended, err := w.StoreAnswer(t.Context(), a)
		require.NoError(t, err)
		require.Nil(t, ended)
		state := w.state(t, 1)
		requireSame(t, a.Turn.Text, state.Turn.Text)
		require.Equal(t, int64(120), state.Session.Tokens)
		require.Equal(t, map[jig.CallStatus]int{jig.CallReserved: 1, jig.CallWaiting: 1}, state.Counts)
		require.Equal(t, []string{"tool.needs_approval"}, w.types(t))

		a.Turn.Text = "another"
		_, err = w.StoreAnswer(t.Context(), a)
		requireCode(t, jig.CodeConflict, err)
		state = w.state(t, 1)
		requireSame(t, big(size), state.Turn.Text)
		require.Equal(t, int64(120), state.Session.Tokens, "counted once")
		require.Len(t, w.types(t), 1)
	}
}

func TestStoreAnswer_EndsTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ended, err := w.StoreAnswer(t.Context(), w.final(1, "42"))
	require.NoError(t, err)
	require.Equal(t, w.final(1, "42").End, ended)
	require.Equal(t, []string{"pass.completed", "session.completed"}, w.types(t))
	_, err = w.StoreAnswer(t.Context(), w.turn(2, "more"))
	requireCode(t, jig.CodeConflict, err)
	require.Zero(t, w.state(t, 2).Turn)
}

// An answer that does not know of a message leaves the session open for it. A refusal ends the session all the same.
func TestStoreAnswer_AMessageKeepsTheSessionOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say(t, "m1", "and another thing")
	ended, err := w.StoreAnswer(t.Context(), w.final(1, "42"))
	require.NoError(t, err)
	require.Nil(t, ended)
	require.Equal(t, "42", w.state(t, 1).Turn.Text)
	begun, err := w.BeginPass(t.Context(), w.tenant, w.session, 2)
	require.NoError(t, err)
	require.Equal(t, 1, begun.MessagePass)
	require.Equal(t, []string{"message.added", "pass.completed", "pass.started"}, w.types(t))

	w.say(t, "m2", "wait")
	refusal := w.final(2, "no")
	refusal.EndsAnyway = true
	ended, err = w.StoreAnswer(t.Context(), refusal)
	require.NoError(t, err)
	require.Equal(t, "no", ended.Answer)
}

// The end of a pass that nobody recorded is recorded when the next pass begins, once.
func TestBeginPass_EndsThePassBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 {
		w.begin(t, 2)
	}
	require.Equal(t, []string{"pass.completed", "pass.started"}, w.types(t))
	_, err := w.EndPass(t.Context(), w.end(2, jig.StatusCompleted))
	require.NoError(t, err)
	w.begin(t, 3)
	require.Equal(t, []string{"pass.completed", "pass.started", "pass.completed", "session.completed", "pass.started"}, w.types(t))
}

// A session that is canceled between two passes has completed the first of them.
func TestCancelSession_BetweenPassesEndsTheLatest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := w.end(2, jig.StatusCanceled)
	require.NoError(t, w.CancelSession(t.Context(), end))
	require.Equal(t, []string{"pass.completed", "session.canceled"}, w.types(t))
}

// What a model says beside its calls is an event, once, before the events of the calls.
func TestTurn_TextBesideCallsIsAnEvent(t *testing.T) {
	t.Parallel()
	said := func(w world) (n int) {
		for _, e := range w.log(t) {
			if e.Type == jig.EventMessageAdded && e.Pass == 1 {
				require.Contains(t, string(e.Data), `"I write it now."`)
				require.Contains(t, string(e.Data), `"assistant"`)
				n++
			}
		}
		return n
	}
	asked := []jig.ToolCall{{ProviderID: "a", Name: "file.write", Input: []byte(`{}`)}}
	w := newWorld(t)
	answer := w.turn(1, "I write it now.", w.call(1))
	answer.Turn.Calls = asked
	_, err := w.StoreAnswer(t.Context(), answer)
	require.NoError(t, err)
	require.Equal(t, 1, said(w))

	w = newWorld(t)
	for range 2 {
		_, err = w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{Text: "I write it now.", Calls: asked})
		require.NoError(t, err)
	}
	require.Equal(t, 1, said(w), "the second turn of a pass is not stored")

	w = newWorld(t)
	_, err = w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{Text: "I write it now."})
	require.NoError(t, err)
	require.Zero(t, said(w), "the answer is in the event that ends the session")
}
