package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// patient returns a context with a generous time limit, so that a test that hangs fails.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestEvents_HaveNoGaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	errs := make([]error, 50)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := range 4 {
				data := json.RawMessage(fmt.Sprintf(`{"of":%d,"n":%d}`, i, n))
				e := jig.Event{Type: "custom.x", Pass: 1, CallID: "1.1", Tool: "file.write", Data: data}
				if errs[i] = w.AppendEvents(t.Context(), w.tenant, w.session, e, jig.Event{Type: "custom.y"}); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	list := w.log(t) // checks the sequence numbers
	require.Len(t, list, 3+50*4*2)
	last := map[int]int{}
	for i := 3; i < len(list); i += 2 {
		require.Equal(t, jig.EventType("custom.x"), list[i].Type)
		require.Equal(t, jig.EventType("custom.y"), list[i+1].Type, "events that were appended together stay together")
		var d struct{ Of, N int }
		require.NoError(t, json.Unmarshal(list[i].Data, &d))
		require.Equal(t, last[d.Of], d.N, "the events of each appender keep their order")
		last[d.Of]++
		require.False(t, list[i].At.IsZero())
	}
	requireCode(t, jig.CodeNotFound, w.AppendEvents(t.Context(), w.tenant, "ses_none", jig.Event{Type: "custom.x"}))
	require.NoError(t, w.AppendEvents(t.Context(), w.tenant, "ses_none"), "nothing to append")
}

func TestEvents_ArePaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, err := w.Events(t.Context(), w.tenant, w.session, 1, 1)
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.Equal(t, int64(2), page[0].Seq)
	page, err = w.Events(t.Context(), w.tenant, w.session, 3, 10)
	require.NoError(t, err)
	require.Empty(t, page)
}

// waited is the result of WaitEvents.
type waited struct {
	events []jig.Event
	err    error
}

func waitFor(ctx context.Context, db *store.DB, w world, after int64) <-chan waited {
	out := make(chan waited, 1)
	go func() {
		found, err := db.WaitEvents(ctx, w.tenant, w.session, after, 0)
		out <- waited{found, err}
	}()
	return out
}

func requireWatching(t *testing.T, db *store.DB, w world, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return db.Watching(w.tenant, w.session) == n }, 2*time.Minute, time.Millisecond)
}

// Waiters are woken by events of this process and of another, wherever they start.
func TestWaitEvents_WakesOnCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := patient(t)
	other := storetest.New(t)
	found, err := w.WaitEvents(ctx, w.tenant, w.session, 0, 2)
	require.NoError(t, err)
	require.Len(t, found, 2, "existing events are returned at once")
	var waiting []<-chan waited
	for range 5 {
		waiting = append(waiting, waitFor(ctx, w.DB, w, 3), waitFor(ctx, other, w, 3))
	}
	requireWatching(t, w.DB, w, 5)
	requireWatching(t, other, w, 5)
	require.NoError(t, w.AppendEvents(ctx, w.tenant, w.session, jig.Event{Type: "custom.x"}))
	for _, c := range waiting {
		got := <-c
		require.NoError(t, got.err)
		require.Len(t, got.events, 1)
		require.Equal(t, int64(4), got.events[0].Seq)
	}
}

func TestWaitEvents_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(patient(t))
	waiting := waitFor(ctx, w.DB, w, 3)
	requireWatching(t, w.DB, w, 1)
	cancel()
	require.Equal(t, waited{}, <-waiting, "no events and no error")

	db := storetest.New(t)
	waiting = waitFor(patient(t), db, w, 3)
	requireWatching(t, db, w, 1)
	db.Close()
	<-waiting // it returns
}

// A watcher that waits for a number far ahead does not keep others from receiving events.
func TestWaitEvents_AheadOfTheLogDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := patient(t)
	ahead, stop := context.WithCancel(ctx)
	defer stop()
	db := storetest.New(t)
	far := waitFor(ahead, db, w, 1000)
	requireWatching(t, db, w, 1)
	near := waitFor(ctx, db, w, 3)
	requireWatching(t, db, w, 2)
	require.NoError(t, w.AppendEvents(ctx, w.tenant, w.session, jig.Event{Type: "custom.x"}))
	require.Len(t, (<-near).events, 1)
	stop()
	require.Empty(t, (<-far).events)
}

func TestSubscribe_SendsEventsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	const n = 600
	other := storetest.New(t)
	var subscriptions []<-chan []jig.Event
	for _, after := range []int64{0, 0, 2, 3} {
		subscriptions = append(subscriptions, w.Subscribe(ctx, w.tenant, w.session, after), other.Subscribe(ctx, w.tenant, w.session, after))
	}
	done := make(chan error, 1)
	go func() {
		for i := range n {
			db := []*store.DB{w.DB, other}[i%2]
			if err := db.AppendEvents(ctx, w.tenant, w.session, jig.Event{Type: "custom.x"}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var wg sync.WaitGroup
	wrong := make([]string, len(subscriptions))
	for i, s := range subscriptions {
		wg.Go(func() {
			next := []int64{1, 1, 1, 1, 3, 3, 4, 4}[i]
			for batch := range s {
				for _, e := range batch {
					if e.Seq != next {
						wrong[i] = fmt.Sprintf("%d instead of %d", e.Seq, next)
						return
					}
					next++
				}
				if next == n+4 {
					return
				}
			}
			wrong[i] = fmt.Sprintf("closed before %d", next)
		})
	}
	wg.Wait()
	require.NoError(t, <-done)
	require.Equal(t, make([]string, len(subscriptions)), wrong)
	cancel()
	for _, s := range subscriptions {
		for range s { //nolint:revive // drains the channel until it is closed
		}
	}
}

// Everybody who may connect to the database can announce events that do not exist. That must not hide those that follow.
func TestSubscribe_SurvivesFalseAnnouncements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := patient(t)
	seen := int64(len(w.log(t)))
	events := w.Subscribe(ctx, w.tenant, w.session, seen)
	require.Eventually(t, func() bool { return w.Watching(w.tenant, w.session) > 0 }, time.Minute, time.Millisecond)
	w.Announced(w.tenant, w.session, seen+1000)
	require.Eventually(t, func() bool { return !w.Awaits(w.tenant, w.session) }, time.Minute, time.Millisecond, "it has looked for them")
	for range 3 { // the first may be found because the watcher looks for those that were announced
		require.NoError(t, w.AppendEvents(ctx, w.tenant, w.session, jig.Event{Type: "custom.x"}))
		batch := <-events
		require.Len(t, batch, 1)
		seen++
		require.Equal(t, seen, batch[0].Seq)
	}
}
