package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// names returns whose words a call rests on, with what they did.
func (w world) names(t *testing.T, session, call string, pass int, frame string) (names []string) {
	t.Helper()
	askers, err := w.Askers(t.Context(), jig.Call{Tenant: w.tenant, SessionID: session, ID: call, Pass: pass, Frame: frame})
	require.NoError(t, err)
	for _, a := range askers {
		names = append(names, a.By+" "+a.Principal)
	}
	return names
}

// A call rests on the words that its pass has read, and a session on those of the call that starts it.
func TestAskers_WordsFlowDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	said := func(session, who, how string) {
		require.NoError(t, w.Said(t.Context(), w.tenant, session, jig.Asker{Principal: who, By: how}))
	}
	w.begin(t, 1)
	said(w.session, "max", jig.AskedMessage)
	require.Contains(t, w.names(t, w.session, "1.2", 1, ""), "message max", "the pass has no turn, so the model may read it")
	_, err := w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{Stop: chat.StopCalls})
	require.NoError(t, err)
	said(w.session, "mia", jig.AskedMessage)
	said(w.session, "eve", jig.AskedEvent)
	said(w.session, "rex", jig.AskedReview)
	require.Contains(t, w.names(t, w.session, "1.1/x", 1, "1.1"), "review rex", "a composition may have read why a call was denied")
	require.NotContains(t, w.names(t, w.session, "1.2", 1, ""), "message mia", "no pass has read it")
	require.Contains(t, w.names(t, w.session, "1.2", 1, ""), "event eve")
	w.begin(t, 2)
	require.Contains(t, w.names(t, w.session, "2.1", 2, ""), "message mia")

	child := jig.Session{
		Tenant: w.tenant, ID: jig.NewSessionID(), ParentID: w.session, ParentCall: "2.1", Agent: jig.Agent{Name: "helper"}, Depth: 1,
		Principal: jig.Principal{ID: "nobody"}, Status: jig.StatusWorking,
	}
	_, err = w.CreateSession(t.Context(), child)
	require.NoError(t, err)
	require.ElementsMatch(t, w.names(t, w.session, "2.1", 2, ""), w.names(t, child.ID, "1.1", 1, ""))
	said(child.ID, "ina", jig.AskedAnswer)
	require.NotContains(t, w.names(t, w.session, "2.2", 2, ""), "answer ina")
	require.Contains(t, w.names(t, w.session, "2.2/x", 2, "2.2"), "answer ina", "a composition may have read what the child returned")
	require.Contains(t, w.names(t, w.session, "3.1", 3, ""), "answer ina")

	other := jig.Session{Tenant: w.tenant, ID: jig.NewSessionID(), Agent: jig.Agent{Name: "helper"}, Principal: jig.Principal{ID: "oda"}, Status: jig.StatusWorking}
	_, err = w.CreateSession(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, []string{"started oda"}, w.names(t, other.ID, "1.1", 1, ""))
	require.NoError(t, w.Repeats(t.Context(), w.tenant, other.ID, w.session))
	require.Contains(t, w.names(t, other.ID, "1.1", 1, ""), "message mia")
	require.NoError(t, w.SaidBy(t.Context(), other.ID, jig.Call{Tenant: w.tenant, SessionID: child.ID, Pass: 2}))
	require.Contains(t, w.names(t, other.ID, "2.1", 2, ""), "answer ina")
}
