package composition_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

// A move says which steps wait, for what and until when, and the log has an event when a wait begins.
func TestWaits_AreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `kind: composition
name: t.waits
steps:
  - parallel:
      - {id: paid, wait_for: {event: paid, timeout: 10m}}
      - {id: sent, wait_for: {event: sent}}
      - {id: rest, wait: 1h}
`, `{}`, echo)
	at := func(d time.Duration) time.Time { return w.at.Now.Add(d).UTC() }
	move := w.advance(t)
	require.Equal(t, []jig.Wait{
		{Call: "paid", Event: "paid", Until: at(10 * time.Minute)}, {Call: "sent", Event: "sent"}, {Call: "rest", Until: at(time.Hour)},
	}, move.Waits)
	require.Len(t, move.Events, 3)
	require.Equal(t, jig.EventStepWaiting, move.Events[0].Type)
	require.Equal(t, "paid", move.Events[0].CallID)
	require.JSONEq(t, `{"event":"paid","until":"`+at(10*time.Minute).Format(time.RFC3339)+`"}`, string(move.Events[0].Data))

	there := newWorld(t, "kind: composition\nname: t.early\nsteps:\n  - {id: paid, wait_for: {event: paid}}\n", `{}`, echo)
	there.at.Events = []plan.ReceivedEvent{{ID: 1, Name: "paid", Data: json.RawMessage(`1`)}}
	early := there.advance(t)
	require.Empty(t, early.Events, "nothing waits for an event that is there already")
	require.True(t, early.Done)
}
