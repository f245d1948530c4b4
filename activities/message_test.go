package activities_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// Signals with the same content are separate messages, unless their sender gave them the same id.
func TestMessage_SameIDIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.open(t)
	say := func(m protocol.Message) activities.Handled {
		t.Helper()
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		heard, err := o.Hear(t.Context(), activities.Signal{SessionRef: o.ref(), Name: "message", Key: jig.NewSessionID(), Payload: raw, Pass: 1})
		require.NoError(t, err)
		return heard
	}
	count := func() (n int) {
		t.Helper()
		begun, err := o.db.BeginPass(t.Context(), o.tenant, o.session, 1)
		require.NoError(t, err)
		for _, x := range begun.Exchanges {
			for _, m := range x.Messages {
				if m.Text == "go on" {
					n++
				}
			}
		}
		return n
	}
	for range 2 {
		require.True(t, say(protocol.Message{Text: "go on"}).Message)
	}
	require.Equal(t, 2, count())
	for range 2 {
		require.True(t, say(protocol.Message{Text: "go on", ID: "ses_op/1.1"}).Message)
	}
	require.Equal(t, 3, count())
	has, err := o.db.HasMessage(t.Context(), o.tenant, o.session, "ses_op/1.1")
	require.NoError(t, err)
	require.True(t, has)
	refused := say(protocol.Message{Text: "go on", ID: strings.Repeat("x", 257)})
	require.Contains(t, refused.Decisions[0].Reason, "`id` has 257 bytes")
	require.Equal(t, 3, count())
}

// A message that is sent again after a pass has read it is not a reason for another pass: neither while the session runs nor, if its sender
// gave it an id, after it has ended.
func TestMessage_SentAgainStartsNoPass(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.open(t)
	again := protocol.Message{Text: "go on", ID: "m1", By: "ana"}
	say := func(m protocol.Message) bool {
		t.Helper()
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		heard, err := o.Hear(t.Context(), activities.Signal{SessionRef: o.ref(), Name: "message", Key: jig.NewSessionID(), Payload: raw, Pass: 1})
		require.NoError(t, err)
		return heard.Message
	}
	wakes := func(m protocol.Message) error {
		_, err := o.Open(t.Context(), activities.OpenInput{SessionRef: o.ref(), Woken: new(m.Woken())})
		return err
	}
	_, err := o.db.BeginPass(t.Context(), o.tenant, o.session, 1)
	require.NoError(t, err)
	require.True(t, say(again))
	require.True(t, say(again), "no pass has read it yet")
	_, err = o.db.BeginPass(t.Context(), o.tenant, o.session, 2)
	require.NoError(t, err)
	require.False(t, say(again))
	require.True(t, say(protocol.Message{Text: "go on", ID: "m2", By: "ana"}))

	_, err = o.db.BeginPass(t.Context(), o.tenant, o.session, 3)
	require.NoError(t, err)
	require.NoError(t, wakes(again), "a session that runs goes on")
	_, err = o.db.EndPass(t.Context(), ledger.End{Tenant: o.tenant, SessionID: o.session, Pass: 3, Status: jig.StatusCompleted})
	require.NoError(t, err)
	require.ErrorContains(t, wakes(again), "has been read already")
	require.NoError(t, wakes(protocol.Message{Text: "go on", ID: "m3", By: "ana"}))
	require.NoError(t, wakes(protocol.Message{Text: "go on", By: "ana"}))
}
