package store_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/store/storetest"
)

func (w world) receive(t *testing.T, key, name, data string) bool {
	t.Helper()
	isNew, err := w.Receive(t.Context(), w.tenant, w.session, key, plan.ReceivedEvent{Name: name, Data: []byte(data), By: "ana"})
	require.NoError(t, err)
	return isNew
}

func TestReceive_StoresAnEventOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.True(t, w.receive(t, "k1", "early", `1`))
	f, _ := w.frame(t, 1)
	require.Empty(t, f.Received, "it came before the composition began")
	before := len(w.types(t))
	require.True(t, w.receive(t, "k2", "paid", `{"amount":3}`))
	require.False(t, w.receive(t, "k2", "paid", `{"amount":4}`))
	require.True(t, w.receive(t, "k3", "paid", ``))
	require.Equal(t, []string{"custom.paid", "custom.paid"}, w.types(t)[before:])
	list := w.log(t)
	require.JSONEq(t, `{"data":{"amount":3},"by":"ana"}`, string(list[len(list)-2].Data))
	require.JSONEq(t, `{"by":"ana"}`, string(list[len(list)-1].Data))
	require.Equal(t, 1, list[len(list)-1].Pass)

	f = w.frameOf(t, f.CallID)
	require.Equal(t, []plan.ReceivedEvent{
		{ID: 2, Name: "paid", Data: json.RawMessage(`{"amount":3}`), By: "ana"}, {ID: 3, Name: "paid", By: "ana"},
	}, f.Received)
	other, _ := w.frame(t, 2)
	require.Empty(t, other.Received)
	w.receive(t, "k4", "sent", `"`+big(5000)+`"`)
	require.Contains(t, w.last(t, "custom.sent"), "data_preview")

	m := w.moving(f)
	m.Consumed = []int64{2, 4}
	f = w.move(t, m)
	require.Len(t, f.Received, 1)
	require.Equal(t, int64(3), f.Received[0].ID)
	m = w.moving(f)
	m.Consumed = []int64{2, 3}
	require.Empty(t, w.move(t, m).Received)
	other = w.frameOf(t, other.CallID)
	require.Len(t, other.Received, 1, "another composition may still wait for an event that this one consumed")
	require.Equal(t, int64(4), other.Received[0].ID)

	for field, e := range map[string]plan.ReceivedEvent{"name": {Data: []byte(`1`)}, "data": {Name: "x", Data: []byte(`{`)}} {
		_, err := w.Receive(t.Context(), w.tenant, w.session, "k9", e)
		requireCode(t, jig.CodeInvalidInput, err)
		require.Equal(t, field, jig.AsError(err).Field)
	}
	_, err := w.Receive(t.Context(), w.tenant, w.session, "", plan.ReceivedEvent{Name: "x"})
	requireCode(t, jig.CodeInvalidInput, err)
	_, err = w.Receive(t.Context(), w.tenant, "ses_none", "k9", plan.ReceivedEvent{Name: "x"})
	requireCode(t, jig.CodeNotFound, err)
}

// With concurrent senders, events are numbered without gaps and each key counts once.
func TestReceive_ConcurrentEventsAreNumbered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	errs, news := make([]error, 24), make([]bool, 24)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			news[i], errs[i] = w.Receive(t.Context(), w.tenant, w.session, fmt.Sprint("k", i%12), plan.ReceivedEvent{Name: "tick"})
		})
	}
	wg.Wait()
	count := 0
	for i := range errs {
		require.NoError(t, errs[i])
		if news[i] {
			count++
		}
	}
	require.Equal(t, 12, count)
	received := w.frameOf(t, f.CallID).Received
	require.Len(t, received, 12)
	for i, e := range received {
		require.Equal(t, int64(i+1), e.ID)
	}
	w.log(t) // checks the sequence numbers
}

func ids(events []plan.ReceivedEvent) []int64 {
	list := make([]int64, len(events))
	for i, e := range events {
		list[i] = e.ID
	}
	return list
}

// For the call that a session was started with, all events of the session count. For a composition that a model calls, those count that came
// since it was asked for, although it began later.
func TestReceive_EventsFromBeforeTheCompositionBegan(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string][]int64{jig.CallAgent: {1, 2}, "clerk": {2}} {
		w := newWorld(t)
		s, err := w.CreateSession(t.Context(), jig.Session{
			Tenant: w.tenant, ID: jig.NewSessionID(), Agent: jig.Agent{Name: agent, Version: "0123456789abcdef"}, Principal: jig.Principal{ID: "ana"},
		})
		require.NoError(t, err)
		w.session = s.ID
		require.True(t, w.receive(t, "k1", "paid", `1`))
		root := w.call(1)
		w.admit(t, root)
		require.True(t, w.receive(t, "k2", "paid", `2`))
		f, err := w.BeginFrame(t.Context(), w.composition(root, w.reserve(t, root).Fence))
		require.NoError(t, err)
		require.Equal(t, want, ids(f.Received), agent)

		// A composition inside of it gets those from before it began that no composition has consumed.
		m := w.moving(f, w.step(f, "inner"))
		m.Consumed = []int64{2}
		w.move(t, m)
		inner := w.call(1)
		inner.ID, inner.Frame = f.CallID+"/inner", f.CallID
		require.True(t, w.receive(t, "k3", "paid", `3`))
		in, err := w.BeginFrame(t.Context(), w.composition(inner, w.reserve(t, inner).Fence))
		require.NoError(t, err)
		require.Equal(t, append(want[:len(want)-1:len(want)-1], 3), ids(in.Received), agent)
	}
}

// A session takes a limited number of events. Sending one again is no new event.
func TestReceive_IsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	for i := range 1001 {
		require.True(t, w.receive(t, fmt.Sprint("k", i), "tick", ``))
	}
	require.Len(t, w.frameOf(t, f.CallID).Received, 1001, "all of them count")
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	full := func(column string, value int) {
		t.Helper()
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "select set_config('jig.tenant', $1, true)", w.tenant)
		require.NoError(t, err)
		tag, err := tx.Exec(t.Context(), "update received set "+column+" = $1 where session_id = $2 and n = (select max(n) from received where session_id = $2)", value, w.session)
		require.NoError(t, err)
		require.Equal(t, int64(1), tag.RowsAffected())
		require.NoError(t, tx.Commit(t.Context()))
	}
	send := func(key string) (bool, error) {
		return w.Receive(t.Context(), w.tenant, w.session, key, plan.ReceivedEvent{Name: "tick", Data: []byte(`"abcd"`)})
	}
	full("size", 16<<20-10)
	isNew, err := send("more")
	require.NoError(t, err, "ten bytes are left")
	require.True(t, isNew)
	_, err = send("too many bytes")
	requireCode(t, jig.CodeConflict, err)
	full("size", 0)
	full("n", 10_000)
	_, err = send("too many")
	requireCode(t, jig.CodeConflict, err)
	require.ErrorContains(t, err, "at most 10000")
	isNew, err = send("k7")
	require.NoError(t, err)
	require.False(t, isNew)
}
