package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// BenchmarkEventAppend appends one event at a time, through the store and as the same statements in a raw pgx batch.
func BenchmarkEventAppend(b *testing.B) {
	db, tenant := storetest.New(b), storetest.Tenant(b)
	data := []byte(`{"summary":"done","attempt":1}`)
	b.Run("store", func(b *testing.B) {
		session := storetest.Session(b, db, tenant).ID
		for b.Loop() {
			require.NoError(b, db.AppendEvents(b.Context(), tenant, session, jig.Event{
				Type: "custom.bench", Pass: 1, CallID: "1.1", Tool: "bench.noop", Data: data,
			}))
		}
	})
	b.Run("pgx", func(b *testing.B) {
		session := storetest.Session(b, db, tenant).ID
		list, err := store.Queries()
		require.NoError(b, err)
		config, err := pgxpool.ParseConfig(storetest.URL(b))
		require.NoError(b, err)
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
		pool, err := pgxpool.NewWithConfig(b.Context(), config)
		require.NoError(b, err)
		defer pool.Close()
		for b.Loop() {
			batch := &pgx.Batch{}
			batch.Queue(list["TenantSet"], tenant)
			batch.Queue(list["EventsAppend"], tenant, session, []string{"custom.bench"}, []int32{1}, []string{"1.1"}, []string{"bench.noop"},
				[]string{string(data)})
			require.NoError(b, pool.SendBatch(b.Context(), batch).Close())
		}
	})
}

// BenchmarkDelivery measures the time from an append to its arrival at a subscriber of another store, which represents another process.
// 1,000 subscribers watch either one session each, or all of them the same session.
func BenchmarkDelivery(b *testing.B) {
	const subscribers = 1000
	for _, sessions := range []int{subscribers, 1} {
		b.Run(fmt.Sprintf("%d_sessions", sessions), func(b *testing.B) {
			writer, reader, tenant := storetest.New(b), storetest.New(b), storetest.Tenant(b)
			ids := make([]string, sessions)
			for i := range ids {
				ids[i] = storetest.Session(b, writer, tenant).ID
			}
			arrived := make(chan time.Time, subscribers)
			var ready sync.WaitGroup
			ready.Add(subscribers)
			for i := range subscribers {
				go func() {
					begun := false
					for list := range reader.Subscribe(b.Context(), tenant, ids[i%sessions], 0) {
						if !begun { // the events that every session starts with
							begun = true
							ready.Done()
							continue
						}
						for range list {
							arrived <- time.Now()
						}
					}
				}()
			}
			ready.Wait()
			var delays []time.Duration
			for n := 0; b.Loop(); n++ {
				sent := time.Now()
				require.NoError(b, writer.AppendEvents(b.Context(), tenant, ids[n%sessions], jig.Event{Type: "custom.bench"}))
				for range subscribers / sessions {
					delays = append(delays, (<-arrived).Sub(sent))
				}
			}
			slices.Sort(delays)
			b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
