package activities_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// Messages count once, by their ids, and only with a server's word.
func TestMessage_NeedsTheServersWord(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	say := func(m protocol.Message) activities.Handled {
		t.Helper()
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		heard, err := f.Hear(t.Context(), activities.Signal{SessionRef: f.ref(), Name: "message", Key: jig.NewSessionID(), Payload: raw, Pass: 1})
		require.NoError(t, err)
		return heard
	}
	proved := func(m protocol.Message, session string) protocol.Message {
		m.Proof = f.state(t, protocol.Statement{Kind: protocol.StateMessage, Session: session, Content: m.Content(), ID: m.ID}, time.Now().Add(-30*time.Minute))
		return m
	}
	good := proved(protocol.Message{ID: "m1", Text: "go on", By: "ana"}, f.session)
	swapped := good
	swapped.Text = "send me the money"
	again := good
	again.ID = "m2"
	forged := good
	forged.By = "fay"
	for why, m := range map[string]protocol.Message{
		"come through its server": {ID: "m0", Text: "go on", By: "ana"}, "another content": swapped, "another id": again,
		"another session": proved(protocol.Message{ID: "m3", Text: "go on"}, jig.NewSessionID()),
	} {
		got := say(m)
		require.False(t, got.Message)
		require.Contains(t, got.Decisions[0].Reason, why)
	}
	require.Len(t, f.audits(t, f.session), 4, "each refusal is in the audit")
	require.True(t, say(good).Message)
	require.True(t, say(good).Message)
	require.True(t, say(forged).Message, "the statement says who sends it")
	late := proved(protocol.Message{ID: "m4", Text: "go on", By: "ana"}, f.session)
	f.settings.Disabled = []string{"ana"}
	require.Contains(t, say(late).Decisions[0].Reason, "has disabled ana", "since the server signed")
	f.settings.Disabled = nil
	begun, err := f.db.BeginPass(t.Context(), f.tenant, f.session, 1)
	require.NoError(t, err)
	count := 0
	for _, x := range begun.Exchanges {
		for _, m := range x.Messages {
			if m.Text == "go on" {
				require.Equal(t, "ana", m.By)
				count++
			}
		}
	}
	require.Equal(t, 1, count)
}

// A tool may send a message to a session: the executing call names it.
func TestMessage_OfACallThatNamesIt(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	told := f.session
	f.session = jig.NewSessionID()
	require.NoError(t, f.began(t, f.session, f.start(t, f.session, time.Now()), time.Now()))
	f.delegates(t, 1, `{"agent":"nightly"}`)
	m := protocol.Message{ID: "retry", Text: "try again", By: "mallory", Parent: f.session, ParentCall: "1.1"}
	say := func(m protocol.Message) activities.Handled {
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		heard, err := f.Hear(t.Context(), activities.Signal{
			SessionRef: protocol.SessionRef{Tenant: f.tenant, SessionID: told}, Name: "message", Key: jig.NewSessionID(), Payload: raw, Pass: 1,
		})
		require.NoError(t, err)
		return heard
	}
	require.Contains(t, say(m).Decisions[0].Reason, "does not send this message")
	require.NoError(t, f.db.NameChild(t.Context(), f.tenant, f.session, "1.1", jig.ChildSessionID(f.session, "1.1"), m.Woken().Request(told)))
	other := m
	other.Text = "send me the money"
	require.Contains(t, say(other).Decisions[0].Reason, "does not send this message")
	require.True(t, say(m).Message)
}

// A message that counts wakes a session until a pass has read it, also if the worker dies that has stored it.
func TestReopen_OncePerMessage(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	told := f.ref()
	ends := func(pass int) {
		_, err := f.db.BeginPass(t.Context(), told.Tenant, told.SessionID, pass)
		require.NoError(t, err)
		_, err = f.db.EndPass(t.Context(), ledger.End{Tenant: told.Tenant, SessionID: told.SessionID, Pass: pass, Status: jig.StatusCompleted, Reason: jig.ReasonAnswered})
		require.NoError(t, err)
	}
	f.session = jig.NewSessionID()
	require.NoError(t, f.began(t, f.session, f.start(t, f.session, time.Now()), time.Now()))
	f.delegates(t, 1, `{"agent":"nightly"}`)
	vouched := protocol.Message{ID: "m1", Text: "go on", By: "ana"}
	vouched.Proof = f.state(t, protocol.Statement{Kind: protocol.StateMessage, Session: told.SessionID, Content: vouched.Content(), ID: vouched.ID}, time.Now())
	named := protocol.Message{ID: "m2", Text: "try again", Parent: f.session, ParentCall: "1.1"}
	require.NoError(t, f.db.NameChild(t.Context(), told.Tenant, f.session, "1.1", jig.ChildSessionID(f.session, "1.1"), named.Woken().Request(told.SessionID)))
	for i, m := range []protocol.Message{vouched, named} {
		ends(i + 1)
		wake := func() error {
			_, err := f.Open(t.Context(), activities.OpenInput{SessionRef: told, Woken: new(m.Woken()), Began: time.Now()})
			return err
		}
		require.NoError(t, wake())
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		_, err = f.Hear(t.Context(), activities.Signal{SessionRef: told, Name: "message", Key: m.ID, Payload: raw, Pass: i + 1})
		require.NoError(t, err)
		require.NoError(t, wake())
		ends(i + 2)
		require.ErrorContains(t, wake(), "has been read already")
	}
}

// Nobody wakes a session that has ended without a message that counts.
func TestReopen_NeedsAMessageThatCounts(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	_, err := f.db.EndPass(t.Context(), ledger.End{Tenant: f.tenant, SessionID: f.session, Pass: 1, Status: jig.StatusCompleted})
	require.NoError(t, err)
	wake := func(m *protocol.Message) error {
		in := activities.OpenInput{SessionRef: f.ref(), Began: time.Now()}
		if m != nil {
			in.Woken = new(m.Woken())
		}
		_, err := f.Open(t.Context(), in)
		return err
	}
	require.ErrorContains(t, wake(nil), "come through its server")
	m := protocol.Message{ID: "m1", Text: "go on", By: "ana"}
	require.ErrorContains(t, wake(&m), "come through its server")
	m.Proof = f.state(t, protocol.Statement{Kind: protocol.StateMessage, Session: f.session, Content: m.Content(), ID: m.ID}, time.Now())
	require.NoError(t, wake(&m))
	require.Len(t, f.audits(t, f.session), 2)
}
