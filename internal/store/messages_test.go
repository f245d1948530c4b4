package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
)

func (w world) say(t *testing.T, key, text string) bool {
	t.Helper()
	fresh, err := w.AddMessage(t.Context(), w.tenant, w.session, key, chat.Message{Text: text, By: "ana"})
	require.NoError(t, err)
	return fresh
}

func (w world) state(t *testing.T, pass int) ledger.PassState {
	t.Helper()
	state, err := w.PassState(t.Context(), w.tenant, w.session, pass)
	require.NoError(t, err)
	return state
}

func TestAddMessage_StoresOneForEachKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.True(t, w.say(t, "m1", "skip the old ones"))
	require.False(t, w.say(t, "m1", "skip the old ones"))
	require.True(t, w.say(t, "m2", "skip the old ones"))
	require.Equal(t, []string{"message.added", "message.added"}, w.types(t))
	require.Equal(t, map[string]any{"role": "user", "by": "ana", "text": "skip the old ones"}, w.last(t, jig.EventMessageAdded))
	_, err := w.AddMessage(t.Context(), w.tenant, "ses_none", "m", chat.Message{Text: "x"})
	requireCode(t, jig.CodeNotFound, err)

	var wg sync.WaitGroup
	fresh := make([]bool, 8)
	for i := range fresh {
		wg.Go(func() {
			fresh[i], _ = w.AddMessage(t.Context(), w.tenant, w.session, fmt.Sprint("k", i/4), chat.Message{Text: "x"}) //nolint:errcheck // the count below would be wrong after an error
		})
	}
	wg.Wait()
	n := 0
	for _, f := range fresh {
		if f {
			n++
		}
	}
	require.Equal(t, 2, n)
	require.Len(t, w.types(t), 4)
}

func TestHasMessage_FindsAnID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	has := func(id string) bool {
		t.Helper()
		has, err := w.HasMessage(t.Context(), w.tenant, w.session, id)
		require.NoError(t, err)
		return has
	}
	require.False(t, has("one"))
	w.say(t, jig.MessageKey("one"), "go on")
	w.say(t, "two", "a signal's own key is no id")
	require.True(t, has("one"))
	require.False(t, has("two"))
}

func TestPassState_CountsUnreadMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	state := w.state(t, 1)
	require.Zero(t, state.Unread, "the task was read")
	require.Zero(t, state.MessagePass)
	w.say(t, "m1", "one")
	w.say(t, "m2", "two")
	state = w.state(t, 1)
	require.Equal(t, 2, state.Unread)
	require.Equal(t, 1, state.MessagePass)
	w.begin(t, 2)
	w.begin(t, 3)
	state = w.state(t, 3)
	require.Zero(t, state.Unread)
	require.Equal(t, 1, state.MessagePass)
	w.say(t, "m3", "three")
	state = w.state(t, 3)
	require.Equal(t, 1, state.Unread)
	require.Equal(t, 3, state.MessagePass)
	_, err := w.PassState(t.Context(), w.tenant, "ses_none", 1)
	requireCode(t, jig.CodeNotFound, err)
}

func TestPassState_CountsCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit(t, w.call(1), w.call(2), w.call(3))
	w.reserve(t, w.call(1))
	w.complete(t, w.call(1), 1, jig.CallSucceeded)
	state := w.state(t, 1)
	require.Equal(t, map[jig.CallStatus]int{jig.CallSucceeded: 1, jig.CallReserved: 2}, state.Counts)
	require.Equal(t, chat.Turn{}, state.Turn, "a call that a person made has no turn")
	require.Empty(t, w.state(t, 2).Counts)
}

// A message is read by the pass after the one that was running when it arrived.
func TestBeginPass_ReturnsWhatTheSummaryDoesNotCover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say(t, "m1", "during the first")
	_, err := w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{Text: "first"})
	require.NoError(t, err)
	c := w.running(t, nil)
	w.reserve(t, c)
	w.complete(t, c, 1, jig.CallSucceeded)
	w.say(t, "m2", "after the first")
	w.begin(t, 2)
	w.say(t, "m3", "during the second")

	shape := func(summarized int) []string {
		require.NoError(t, w.SaveSummary(t.Context(), w.tenant, w.session, summarized, "before"))
		begun, err := w.BeginPass(t.Context(), w.tenant, w.session, 2)
		require.NoError(t, err)
		var lines []string
		for _, x := range begun.Exchanges {
			for _, m := range x.Messages {
				lines = append(lines, fmt.Sprintf("%d %s: %s", x.Pass, m.Role, m.Text))
			}
			if x.Turn != nil {
				lines = append(lines, fmt.Sprintf("%d turn: %s", x.Pass, x.Turn.Text))
			}
			for _, c := range x.Calls {
				lines = append(lines, fmt.Sprintf("%d %s: %s", x.Pass, c.ID, c.Result.Data))
			}
		}
		return lines
	}
	first := []string{"1 user: do it", "1 turn: first", `1 1.1: {"n":1}`}
	second := []string{"2 user: during the first", "2 user: after the first"}
	require.Equal(t, append(append(first, second...), "3 user: during the second"), shape(0))
	_, err = w.SaveTurn(t.Context(), w.tenant, w.session, 2, chat.Turn{Text: "second"})
	require.NoError(t, err)
	require.Equal(t, append(second, "2 turn: second", "3 user: during the second"), shape(1), "the turn did not see the message")
	require.Equal(t, []string{"3 user: during the second"}, shape(2))
}
