package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// standing returns the status of the session, which a list of sessions shows as well.
func (w world) standing(t *testing.T) jig.Status {
	t.Helper()
	status := w.view(t).Status
	page, _, err := w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{Status: status}, "", 0)
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.Equal(t, w.session, page[0].SessionID)
	return status
}

// A call that waits behind another one with its concurrency key, or behind a pause, cannot go on either: the session waits for a person.
func TestInputRequired_AlsoWhenOtherCallsAreHeldBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second, third, other := asks(w.call(1)), w.call(2), w.call(3), w.call(4)
	first.ConcurrencyKey, second.ConcurrencyKey, third.ConcurrencyKey, other.ConcurrencyKey = "a", "a", "a", "b"
	other.Tool, other.Digest = "mail.send", "d2"
	w.admit(t, first, second, third, other)
	require.Equal(t, jig.StatusWorking, w.standing(t), "1.4 may run")
	for _, pause := range []struct {
		scope  jig.PauseScope
		target string
	}{{jig.PauseTool, "mail.send"}, {jig.PauseSession, w.session}, {jig.PauseTenant, ""}} {
		w.pause(t, pause.scope, pause.target)
		require.Equal(t, jig.StatusInputRequired, w.standing(t), pause.scope)
		w.resume(t, pause.scope, pause.target)
		require.Equal(t, jig.StatusWorking, w.standing(t), pause.scope)
	}
	w.reserve(t, other)
	w.complete(t, other, 1, jig.CallSucceeded)
	require.Equal(t, jig.StatusInputRequired, w.standing(t), "1.2 and 1.3 wait behind 1.1")
	w.decide(t, "k", jig.Decision{Call: first.ID, Answer: jig.AnswerApprove, By: "ben"})
	require.Equal(t, jig.StatusWorking, w.standing(t))
}

// The same holds within a composition, and a call behind one that runs is not held back by people.
func TestInputRequired_AlsoWhenStepsAreHeldBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 1)
	first, second := w.step(f, "a"), w.step(f, "b")
	first.ConcurrencyKey, second.ConcurrencyKey = "a", "a"
	w.move(t, w.moving(f, asks(first), second))
	require.Equal(t, jig.StatusInputRequired, w.standing(t))
	w.decide(t, "k", jig.Decision{Call: first.ID, Answer: jig.AnswerApprove, By: "ben"})
	require.Equal(t, ledger.ReserveRun, w.reserve(t, first).Outcome)
	asking := asks(w.call(2))
	asking.Pass, asking.Ordinal = root.Pass, 2
	w.admit(t, asking)
	require.Equal(t, jig.StatusWorking, w.standing(t), "a runs, and b follows")
}
