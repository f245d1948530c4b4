package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// standing returns the status of the session, which a list of sessions shows as well.
func (w world) standing(t *testing.T) jig.Status {
	t.Helper()
	status := w.view(t).Status
	page, _, err := w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{Status: status, Children: true}, "", 0)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(page, func(s protocol.SessionItem) bool { return s.SessionID == w.session }))
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

// A session in which everything is paused waits for a person, who lifts the pause.
func TestInputRequired_WhenEverythingIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, other := w.call(1), w.call(2)
	other.Tool, other.Digest = "mail.send", "d2"
	w.admit(t, first, other)
	w.pause(t, jig.PauseTool, "mail.send")
	require.Equal(t, jig.StatusWorking, w.standing(t), "1.1 may run")
	w.pause(t, jig.PauseTool, "file.write")
	require.Equal(t, jig.StatusInputRequired, w.standing(t))
	w.resume(t, jig.PauseTool, "file.write")
	require.Equal(t, jig.StatusWorking, w.standing(t))
	w.reserve(t, first)
	require.Equal(t, jig.StatusWorking, w.standing(t), "a call that runs is not held back")
	w.complete(t, first, 1, jig.CallSucceeded)
	require.Equal(t, jig.StatusInputRequired, w.standing(t))
	w.resume(t, jig.PauseTool, "mail.send")
	w.reserve(t, other)
	w.complete(t, other, 1, jig.CallSucceeded)
	for _, pause := range []struct {
		scope  jig.PauseScope
		target string
	}{{jig.PauseSession, w.session}, {jig.PauseTenant, ""}} {
		w.pause(t, pause.scope, pause.target)
		require.Equal(t, jig.StatusInputRequired, w.standing(t), "the next pass is held back: %s", pause.scope)
		w.resume(t, pause.scope, pause.target)
	}
	w.pause(t, jig.PauseTool, "file.write")
	require.Equal(t, jig.StatusWorking, w.standing(t), "the next pass may begin")
}

// A session below one that is paused waits for a person, and so does the one that is paused.
func TestInputRequired_BelowAPausedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, child := w.starts(t, 1)
	_, grandchild := child.starts(t, 1)
	require.Equal(t, jig.StatusWorking, grandchild.standing(t))
	w.pause(t, jig.PauseSession, w.session)
	require.Equal(t, jig.StatusInputRequired, grandchild.standing(t), "its next pass is held back")
	require.Equal(t, jig.StatusInputRequired, child.standing(t))
	require.Equal(t, jig.StatusInputRequired, w.standing(t))
	call := grandchild.call(1)
	grandchild.admit(t, call)
	require.Equal(t, jig.StatusInputRequired, w.standing(t))
	held, err := w.HeldBack(t.Context(), w.tenant, grandchild.session, call.ID)
	require.NoError(t, err)
	require.True(t, held)
	w.resume(t, jig.PauseSession, w.session)
	require.Equal(t, jig.StatusWorking, grandchild.standing(t))
	require.Equal(t, jig.StatusWorking, w.standing(t))
}

// A call that waits for a rate limit is held back by people if only calls of its session, which wait for people, take up the limit.
func TestInputRequired_BehindARateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, root := w.frame(t, 1)
	behind := w.call(2)
	behind.Pass, behind.Ordinal = root.Pass, 2
	w.admit(t, behind)
	w.move(t, w.moving(f, asks(w.step(f, "a"))))
	require.Zero(t, w.asksLimits(t, root.ID, slots("a", 1)))
	require.Positive(t, w.asksLimits(t, behind.ID, slots("a", 1)).Wait)
	require.Equal(t, jig.StatusInputRequired, w.standing(t))
	require.Zero(t, w.asksLimits(t, root.ID, hourly("b", 1)))
	require.Positive(t, w.asksLimits(t, behind.ID, hourly("b", 1)).Wait)
	w.change(t, "update rate_calls set state = 'over' where session_id = $1 and limit_name = 'slots'", w.session)
	require.Equal(t, jig.StatusWorking, w.standing(t), "it goes on when the hour is over")
}

// A view lists what compositions wait for, and says when nothing in the session is running.
func TestSessionView_ShowsWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	require.False(t, w.view(t).Idle)
	paid := jig.Wait{Call: f.CallID + "/paid", Event: "paid", Until: time.Date(2026, 11, 27, 11, 10, 0, 0, time.UTC)}
	m := w.moving(f)
	m.Waits = []jig.Wait{paid}
	f = w.move(t, m)
	require.Equal(t, []jig.Wait{paid}, w.view(t).Waits)
	require.True(t, w.view(t).Idle)
	require.Equal(t, jig.StatusWorking, w.view(t).Status, "no person has to act")

	m = w.moving(f, w.step(f, "a"))
	m.Waits = []jig.Wait{paid}
	f = w.move(t, m)
	require.False(t, w.view(t).Idle, "a may run")
	w.pause(t, jig.PauseTool, "file.write")
	require.True(t, w.view(t).Idle)
	w.resume(t, jig.PauseTool, "file.write")
	w.reserve(t, w.step(f, "a"))
	w.complete(t, w.step(f, "a"), 1, jig.CallSucceeded)
	m = w.moving(f)
	m.Waits = []jig.Wait{{Call: f.CallID + "/b", Retries: true}}
	f = w.move(t, m)
	require.False(t, w.view(t).Idle, "b is tried again soon")
	require.Empty(t, w.move(t, w.moving(f)).Received)
	require.Empty(t, w.view(t).Waits)
}

// A view also lists what the sessions that answer calls wait for, at any depth, and says when nothing is running there either.
func TestSessionView_ShowsWaitsBelow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	via, child := w.starts(t, 1)
	_, grandchild := child.starts(t, 1)
	require.False(t, w.view(t).Idle)
	wait := ledger.ModelWait{Pass: 1, Code: jig.CodeRateLimited, Message: "slow down", Next: time.Date(2026, 11, 27, 11, 10, 0, 0, time.UTC)}
	require.NoError(t, w.NoteModelWait(t.Context(), w.tenant, grandchild.session, wait))
	at := via.ID + ", in session " + grandchild.session + ": "
	require.Equal(t, []string{at + "slow down; the model is asked again at 2026-11-27T11:10:00Z"}, w.view(t).Held)
	require.True(t, w.view(t).Idle)
	require.Equal(t, jig.StatusWorking, w.view(t).Status, "it passes by itself")

	f, _ := grandchild.frame(t, 1)
	require.False(t, w.view(t).Idle)
	m := grandchild.moving(f)
	m.Waits = []jig.Wait{{Call: f.CallID + "/paid", Event: "paid"}}
	grandchild.move(t, m)
	require.Equal(t, []jig.Wait{{Call: f.CallID + "/paid", Event: "paid", Via: via.ID, SessionID: grandchild.session}}, w.view(t).Waits)
	require.True(t, w.view(t).Idle)
	require.Equal(t, jig.StatusWorking, w.view(t).Status)
	require.Empty(t, grandchild.view(t).Waits[0].Via)

	behind := child.call(2)
	child.admit(t, behind)
	require.False(t, w.view(t).Idle, "it may run")
	require.Zero(t, child.asksLimits(t, child.call(1).ID, hourly("b", 1)))
	require.Positive(t, child.asksLimits(t, behind.ID, hourly("b", 1)).Wait)
	require.Contains(t, strings.Join(w.view(t).Held, "; "), via.ID+", in session "+child.session+": limit hourly")
	require.True(t, w.view(t).Idle)
}

// A view is of one moment: a call that is counted as waiting is also among those that people are shown.
func TestSessionView_ShowsOneMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	moved := make(chan error, 1)
	go func() {
		var err error
		for n := 0; n < 200 && err == nil; n++ {
			err = w.MoveFrame(t.Context(), w.moving(f, asks(w.step(f, fmt.Sprint("s", n)))))
			f.Revision++
		}
		moved <- err
	}()
	for len(moved) == 0 {
		view := w.view(t)
		require.Len(t, view.Pending, view.Counts[jig.CallWaiting])
	}
	require.NoError(t, <-moved)
	require.Len(t, w.view(t).Pending, 200)
}
