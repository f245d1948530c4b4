package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// starts admits a call that a child session answers, begins it and creates the child session.
func (w world) starts(t *testing.T, ordinal int) (jig.Call, world) {
	t.Helper()
	c := w.call(ordinal)
	c.Tool, c.Idempotent, c.Write = "agent.run", true, false
	w.admit(t, c)
	child := world{DB: w.DB, tenant: w.tenant, session: jig.NewSessionID()}
	request := w.request(c)
	request.Child = child.session
	_, err := w.Reserve(t.Context(), request)
	require.NoError(t, err)
	_, err = w.CreateSession(t.Context(), jig.Session{
		Tenant: w.tenant, ID: child.session, ParentID: w.session, ParentCall: c.ID, Task: "help", Depth: 1, Source: jig.SourceAgent,
		Agent: jig.Agent{Name: "helper", Model: "script/x"}, Principal: jig.Principal{ID: "ana"},
	})
	require.NoError(t, err)
	child.begin(t, 1)
	return c, child
}

func (w world) view(t *testing.T) jig.SessionView {
	t.Helper()
	v, err := w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	return v
}

// A call that a child session answers names that session in its row and in the log as soon as it begins.
func TestNameChild_NamesTheSessionThatAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, child := w.starts(t, 1)
	require.Equal(t, child.session, w.row(t, c).Child)
	require.Equal(t, child.session, w.view(t).Calls[0].Child)
	require.Equal(t, child.session, w.last(t, jig.EventToolStarted)["child_session_id"])
	require.NoError(t, w.NameChild(t.Context(), w.tenant, w.session, c.ID, child.session, "r"), "naming it again changes nothing")
	requireCode(t, jig.CodeConflict, w.NameChild(t.Context(), w.tenant, w.session, c.ID, "ses_other", ""))

	other := w.call(2)
	w.admit(t, other)
	requireCode(t, jig.CodeConflict, w.NameChild(t.Context(), w.tenant, w.session, other.ID, "ses_other", ""))
	w.reserve(t, other)
	require.NoError(t, w.NameChild(t.Context(), w.tenant, w.session, other.ID, "ses_other", ""))
	require.Equal(t, "ses_other", w.row(t, other).Child)
}

// A session waits for people when all its work waits for child sessions that wait for people, at any depth.
func TestPendingOfAChild_ShowsInItsParents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, child := w.starts(t, 1)
	_, grandchild := child.starts(t, 1)
	require.Equal(t, jig.StatusWorking, w.view(t).Status)
	require.Empty(t, w.view(t).Pending)

	asks := grandchild.call(1)
	asks.Verdict, asks.Status = jig.VerdictAsk, jig.CallWaiting
	grandchild.admit(t, asks)
	for _, level := range []struct {
		world
		via string
	}{{w, first.ID}, {child, "1.1"}, {grandchild, ""}} {
		v := level.view(t)
		require.Equal(t, jig.StatusInputRequired, v.Status)
		require.Len(t, v.Pending, 1)
		p := v.Pending[0]
		require.Equal(t, []string{grandchild.session, asks.ID, level.via, child.session, "1.1"}, []string{p.SessionID, p.Call, p.Via, p.ParentID, p.ParentCall})

		listed, _, err := w.ListPending(t.Context(), w.tenant, jig.PendingFilter{SessionID: level.session, Tool: "file.*"}, "", 0)
		require.NoError(t, err)
		require.Len(t, listed, 1)
		require.Equal(t, []string{grandchild.session, level.via}, []string{listed[0].SessionID, listed[0].Via})
	}

	busy := child.call(2) // other running work keeps the chain working
	child.admit(t, busy)
	require.Equal(t, jig.StatusWorking, w.view(t).Status)
	require.Equal(t, jig.StatusWorking, child.view(t).Status)
	require.Len(t, w.view(t).Pending, 1)
	child.reserve(t, busy)
	child.complete(t, busy, 1, jig.CallSucceeded)
	require.Equal(t, jig.StatusInputRequired, w.view(t).Status)

	require.Equal(t, jig.DecisionAccepted, grandchild.decide(t, "k", jig.Decision{Call: asks.ID, By: "ben", Answer: jig.AnswerApprove}).Outcome)
	require.Equal(t, jig.StatusWorking, w.view(t).Status)
	require.Empty(t, w.view(t).Pending)
}

// When a call has ended, calls that wait in its child session no longer show in the parent.
func TestPendingOfAChild_OfAnEndedCallDoesNotShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, child := w.starts(t, 1)
	child.asking(t)
	require.Len(t, w.view(t).Pending, 1)
	w.complete(t, c, 1, jig.CallFailed)
	require.Empty(t, w.view(t).Pending)
	require.Len(t, child.view(t).Pending, 1)
}

// Pages over a session and its child sessions are in one order, without gaps.
func TestListPending_PagesOverASessionAndItsChildren(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, child := w.starts(t, 1)
	want := []string{}
	for n := 2; n <= 6; n++ {
		at := w
		if n%2 == 0 {
			at = child
		}
		c := at.call(n)
		c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting
		at.admit(t, c)
		want = append(want, at.session+" "+c.ID)
	}
	got, cursor := []string{}, ""
	for {
		page, next, err := w.ListPending(t.Context(), w.tenant, jig.PendingFilter{SessionID: w.session}, cursor, 2)
		require.NoError(t, err)
		for _, p := range page {
			got = append(got, p.SessionID+" "+p.Call)
		}
		if cursor = next; next == "" {
			break
		}
	}
	require.Equal(t, want, got)
}

// A call with an unknown outcome is doubtful once it has ended, because a person gave up or the session ended.
func TestDoubtfulCalls_ListUnknownOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	w.reserve(t, c)
	other := w.call(2)
	w.admit(t, other)
	w.reserve(t, other)
	w.complete(t, other, 1, jig.CallFailed)
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
	doubtful, err := w.DoubtfulCalls(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, []string{"1.1 file.write"}, doubtful)
}

// When a call waits for a person, the sessions above hear of it, with the session and the call to answer, as long as they wait for it.
func TestPendingOfAChild_IsAnEventOfItsParents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, middle := w.starts(t, 1)
	_, last := middle.starts(t, 1)
	background, other := w.starts(t, 2)
	w.complete(t, background, 1, jig.CallSucceeded)
	other.asking(t)
	heard := func(w world) (list []string) {
		for _, e := range w.log(t) {
			if e.Type == jig.EventToolNeedsApproval {
				d := w.last(t, e.Type)
				list = append(list, fmt.Sprintf("%s %v %v %v %v", e.CallID, e.Tool, d["session_id"], d["call"], d["digest"]))
			}
		}
		return list
	}
	require.Empty(t, heard(w), "nothing waits for a session that runs in the background")
	watched, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := w.Subscribe(watched, w.tenant, w.session, int64(len(w.log(t))))
	asked := last.asking(t)
	want := []string{"1.1 file.write " + last.session + " " + asked.ID + " " + asked.Digest}
	require.Equal(t, want, heard(w))
	require.Equal(t, want, heard(middle))
	require.Len(t, heard(last), 1)
	require.Equal(t, jig.EventToolNeedsApproval, (<-seen)[0].Type, "who watches the parent hears of it")
	for _, one := range []world{w, middle, last} {
		for i, e := range one.log(t) {
			require.EqualValues(t, i+1, e.Seq, "no log has a gap")
		}
	}
}

// JSON accepts characters that PostgreSQL cannot convert to text. A call that has them in its input asks like any other.
func TestPendingOfAChild_OddInput(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`{"path":"a\u0000"}`, `{"path":"\ud800"}`} {
		w := newWorld(t)
		_, child := w.starts(t, 1)
		asks := child.call(1)
		asks.Verdict, asks.Status, asks.Input = jig.VerdictAsk, jig.CallWaiting, []byte(input)
		child.admit(t, asks)
		require.Equal(t, child.session, w.last(t, jig.EventToolNeedsApproval)["session_id"])
		require.Equal(t, input, string(child.row(t, asks).Input))
	}
}

// Whoever starts a session, an agent's document or the error of a tool cannot make a list of the tenant unreadable.
func TestOddTexts_LeaveListsReadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	odd := world{DB: w.DB, tenant: w.tenant, session: jig.NewSessionID()}
	_, err := w.CreateSession(t.Context(), jig.Session{
		Tenant: w.tenant, ID: odd.session, Source: jig.SourceAPI, Agent: jig.Agent{Name: "helper", Model: "script/x", Instructions: "a\x00"},
		Principal: jig.Principal{ID: "ana\x00", Groups: []string{"\x00"}},
	})
	require.NoError(t, err)
	odd.begin(t, 1)
	c := odd.call(1)
	c.Reasons, c.Flow = []string{"\x00"}, &jig.DataFlow{UnknownDestinations: []string{"\x00"}}
	odd.admit(t, c)
	odd.reserve(t, c)
	odd.ends(t, c, 1, func(d *ledger.Completion) {
		d.Status, d.Result = jig.CallFailed, jig.Failure(jig.Errorf(jig.CodeOutcomeUnknown, "a\x00"))
	})
	listed, _, err := w.ListSessions(t.Context(), w.tenant, protocol.SessionFilter{}, "", 10)
	require.NoError(t, err)
	require.Len(t, listed, 2)
	recorded, _, err := w.RecordedCalls(t.Context(), w.tenant, time.Now().Add(-time.Hour), "", 10)
	require.NoError(t, err)
	require.Len(t, recorded, 1)
	doubtful, err := w.DoubtfulCalls(t.Context(), w.tenant, odd.session)
	require.NoError(t, err)
	require.Equal(t, []string{"1.1 file.write"}, doubtful)
	_, err = w.Origins(t.Context(), w.tenant, odd.session, nil)
	require.NoError(t, err)
}
