package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store/storetest"
)

// waitsUntil returns a wait for a provider.
func waitsUntil(call string, attempt int) ledger.ModelWait {
	return ledger.ModelWait{
		Pass: 1, Call: call, Code: jig.CodeRateLimited, Message: "slow\x00 down", Attempt: attempt, Next: time.Date(2026, 11, 27, 12, 0, 31, 0, time.UTC),
	}
}

// modelWaitOf returns the wait that is stored for a call or, if it is empty, for the session's pass.
func (w world) modelWaitOf(t *testing.T, tenant, call string) *ledger.ModelWait {
	t.Helper()
	wait, err := w.ModelWait(t.Context(), tenant, w.session, call)
	require.NoError(t, err)
	return wait
}

func TestModelWait_OfAPassLastsUntilItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, 1)
	require.Nil(t, w.modelWaitOf(t, w.tenant, ""))
	require.NoError(t, w.NoteModelWait(t.Context(), w.tenant, w.session, waitsUntil("", 1)))
	require.NoError(t, w.NoteModelWait(t.Context(), w.tenant, w.session, waitsUntil("", 2)))
	require.Equal(t, 2, w.modelWaitOf(t, w.tenant, "").Attempt)
	require.Equal(t, 2, w.count(t, jig.EventModelWaiting))
	require.Equal(t, []string{"slow\uFFFD down; the model is asked again at 2026-11-27T12:00:31Z"}, w.view(t).Held)
	_, err := w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{Text: "done"})
	require.NoError(t, err)
	require.Nil(t, w.modelWaitOf(t, w.tenant, ""))
	require.Empty(t, w.view(t).Held)
}

func TestModelWait_OfACallLastsUntilItsNextAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, 1)
	c := w.call(1)
	w.admit(t, c)
	fence := w.reserve(t, c).Fence
	require.NoError(t, w.NoteModelWait(t.Context(), w.tenant, w.session, waitsUntil(c.ID, fence)))
	require.Zero(t, w.count(t, jig.EventModelWaiting), "the attempt has not ended")
	w.ends(t, c, fence, failing(jig.CallReserved, false))
	require.NoError(t, w.NoteModelWait(t.Context(), w.tenant, w.session, waitsUntil(c.ID, fence+1)))
	require.Zero(t, w.count(t, jig.EventModelWaiting), "it is of another attempt")
	require.NoError(t, w.NoteModelWait(t.Context(), w.tenant, w.session, waitsUntil(c.ID, fence)))
	require.Equal(t, 1, w.count(t, jig.EventModelWaiting))
	require.Equal(t, fence, w.modelWaitOf(t, w.tenant, c.ID).Attempt)
	require.Nil(t, w.modelWaitOf(t, w.tenant, ""), "the pass does not wait")
	require.True(t, strings.HasPrefix(w.view(t).Calls[0].Summary, "waits: slow"), w.view(t).Calls[0].Summary)
	w.reserve(t, c)
	require.Empty(t, w.view(t).Calls[0].Summary)
}

// A tenant that knows the ids of another one learns nothing of its waits, and changes none.
func TestModelWait_IsOfOneTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thief := storetest.Tenant(t)
	storetest.Session(t, w.DB, thief)
	w.begin(t, 1)
	c := w.call(1)
	w.admit(t, c)
	fence := w.reserve(t, c).Fence
	w.ends(t, c, fence, failing(jig.CallReserved, false))
	for _, call := range []string{"", c.ID} {
		require.NoError(t, w.NoteModelWait(t.Context(), w.tenant, w.session, waitsUntil(call, fence)))
		require.NoError(t, w.NoteModelWait(t.Context(), thief, w.session, waitsUntil(call, fence)))
		require.NotNil(t, w.modelWaitOf(t, w.tenant, call))
		require.Nil(t, w.modelWaitOf(t, thief, call))
	}
	require.Equal(t, 2, w.count(t, jig.EventModelWaiting))
}

// A turn has its events however it is stored: as a row or as an artifact, with its calls or before they are admitted.
func TestSaveTurn_RecordsWhatStoreAnswerDoes(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]int{"a row": 1, "an artifact": jig.InlineBytes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			turn := chat.Turn{Text: strings.Repeat("a", long), Warning: "it may not be complete", Calls: []jig.ToolCall{{Name: "file.write"}}}
			w.begin(t, 1)
			for range 2 {
				_, err := w.SaveTurn(t.Context(), w.tenant, w.session, 1, turn)
				require.NoError(t, err)
			}
			require.Equal(t, "it may not be complete", w.last(t, jig.EventModelWarning)["message"])
			require.Equal(t, 1, w.count(t, jig.EventModelWarning))
			require.Equal(t, "assistant", w.last(t, jig.EventMessageAdded)["role"])
			for i, e := range w.log(t) {
				require.Equal(t, int64(i+1), e.Seq)
			}
		})
	}
}
