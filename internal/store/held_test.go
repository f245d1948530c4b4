package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// heldEvents lists the events of pauses, as type, call and scope.
func (w world) heldEvents(t *testing.T) []string {
	t.Helper()
	list := []string{}
	for _, e := range w.log(t) {
		if e.Type == jig.EventToolPaused || e.Type == jig.EventSessionPaused {
			list = append(list, fmt.Sprintf("%s %s %s", e.Type, e.CallID, w.last(t, e.Type)["scope"]))
		}
	}
	return list
}

// A pause is one event of each call that it holds back, however often the call is tried.
func TestNoteHeld_IsOneEventForEachPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit(t, w.call(1))
	note := func(call string) {
		t.Helper()
		for range 3 {
			require.NoError(t, w.NoteHeld(t.Context(), w.tenant, w.session, call))
		}
	}
	note("1.1")
	require.Empty(t, w.heldEvents(t), "nothing is paused")
	w.pause(t, jig.PauseTool, "file.write")
	note("1.1")
	note("9.9")
	note("")
	require.Equal(t, []string{"tool.paused 1.1 tool"}, w.heldEvents(t))
	require.Equal(t, []any{"file.write", "zoe", "look first"},
		[]any{w.last(t, jig.EventToolPaused)["target"], w.last(t, jig.EventToolPaused)["by"], w.last(t, jig.EventToolPaused)["reason"]})
	w.resume(t, jig.PauseTool, "file.write")
	note("1.1")
	w.pause(t, jig.PauseTool, "file.write")
	note("1.1")
	require.Equal(t, []string{"tool.paused 1.1 tool", "tool.paused 1.1 tool"}, w.heldEvents(t), "another pause is another event")

	w.reserve(t, w.call(1))
	w.resume(t, jig.PauseTool, "file.write")
	w.pause(t, jig.PauseTool, "file.write")
	note("1.1")
	require.Len(t, w.heldEvents(t), 2, "a pause does not hold back what has begun")
}

// The next pass is held back by a pause of the tenant, which the session's log says once.
func TestNoteHeld_OfAPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pause(t, jig.PauseTenant, "")
	for range 3 {
		require.NoError(t, w.NoteHeld(t.Context(), w.tenant, w.session, ""))
	}
	require.Equal(t, []string{"session.paused  tenant"}, w.heldEvents(t))
	w.resume(t, jig.PauseTenant, "")
	w.pause(t, jig.PauseSession, w.session)
	require.NoError(t, w.NoteHeld(t.Context(), w.tenant, w.session, ""))
	require.Len(t, w.heldEvents(t), 2, "the pause of the session has an event of its own")
}
