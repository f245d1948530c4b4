package store_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

func (w world) receive(t *testing.T, key, name, data string) bool {
	t.Helper()
	isNew, err := w.Receive(t.Context(), w.tenant, w.session, key, plan.ReceivedEvent{Name: name, Data: []byte(data), By: "ana"})
	require.NoError(t, err)
	return isNew
}

func TestReceive(t *testing.T) {
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
func TestReceiveRace(t *testing.T) {
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

func TestFrameReceivesAThousandAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	for i := range 1001 {
		w.receive(t, fmt.Sprint("k", i), "tick", ``)
	}
	received := w.frameOf(t, f.CallID).Received
	require.Len(t, received, 1000)
	m := w.moving(f)
	for _, e := range received {
		m.Consumed = append(m.Consumed, e.ID)
	}
	received = w.move(t, m).Received
	require.Len(t, received, 1)
	require.Equal(t, int64(1001), received[0].ID)
}
