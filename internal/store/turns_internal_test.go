package store

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A tenant that waits for a connection is not behind all that another tenant waits for.
func TestTurns_TenantsAlternate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(1)
		require.NoError(t, q.take(t.Context(), "busy"))
		var mu sync.Mutex
		var order []string
		wait := func(tenant string) {
			go func() {
				if q.take(t.Context(), tenant) == nil {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, tenant)
				}
			}()
			synctest.Wait()
		}
		for _, tenant := range []string{"busy", "busy", "busy", "quiet", "other", "quiet"} {
			wait(tenant)
		}
		for range 6 {
			q.give()
			synctest.Wait()
		}
		require.Equal(t, []string{"busy", "quiet", "other", "busy", "quiet", "busy"}, order)
		q.give()
		require.NoError(t, q.take(t.Context(), "busy"), "it is free again")
	})
}

// A transaction that is canceled while it waits leaves the queue. If it got its turn at the same time, the next one gets that.
func TestTurns_CanceledWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(1)
		require.NoError(t, q.take(t.Context(), "a"))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- q.take(ctx, "b") }()
		synctest.Wait()
		next := make(chan error, 1)
		go func() { next <- q.take(t.Context(), "b") }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		q.give()
		require.NoError(t, <-next)

		turn := make(chan struct{}) // its turn came before it left
		q.leave("b", turn)
		require.NoError(t, q.take(t.Context(), "c"))
		require.Empty(t, q.queues)
		require.Zero(t, q.free)
	})
}

func TestTurns_NoneIsLost(t *testing.T) {
	t.Parallel()
	q := newTurns(3)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%3 == 0 {
				go cancel()
			}
			defer cancel()
			if q.take(ctx, string(rune('a'+i%5))) == nil {
				q.give()
			}
		})
	}
	all.Wait()
	require.Equal(t, 3, q.free)
	require.Empty(t, q.queues)
}
