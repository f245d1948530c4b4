package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
)

const (
	// appenders is the number of sessions that get events at the same time.
	appenders = 8
	// deliveriesPerSecond is the rate of events for all subscribers together.
	deliveriesPerSecond = 250
)

// eventLog measures P10: appending events, and how soon subscribers receive them.
func eventLog(ctx context.Context, b *bench) ([]row, error) {
	appended, err := appending(ctx, b)
	if err != nil {
		return nil, err
	}
	delivered, err := delivering(ctx, b)
	return append(appended, delivered...), err
}

// rawAppend is the statement that the store runs for one event. The baseline sends it directly in one pgx batch.
const rawAppend = `with n as (
    update sessions s set last_seq = s.last_seq + cardinality($3::text[]), updated_at = clock_timestamp()
    where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, $2, n.last_seq - cardinality($3::text[]) + e.ord, clock_timestamp(), e.type, e.pass, e.call_id, e.tool, nullif(e.data, '')::json
    from n, unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::text[]) with ordinality as e(type, pass, call_id, tool, data, ord)
)
select n.last_seq from n`

func appending(ctx context.Context, b *bench) ([]row, error) {
	ids, err := b.sessions(ctx, appenders)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(b.database)
	if err != nil {
		return nil, fmt.Errorf("read the database's address: %w", err)
	}
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	config.MaxConns = appenders
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	data := []byte(`{"summary":"done","attempt":1}`)
	through := map[string]func(ctx context.Context, id string) error{
		"store": func(ctx context.Context, id string) error {
			return b.engine.store.AppendEvents(ctx, jig.DefaultTenant, id, jig.Event{
				Type: "custom.bench", Pass: 1, CallID: "1.1", Tool: noopTool, Data: data,
			})
		},
		"pgx": func(ctx context.Context, id string) error {
			batch := &pgx.Batch{}
			batch.Queue("select set_config('jig.tenant', $1, true)", jig.DefaultTenant)
			batch.Queue(rawAppend, jig.DefaultTenant, id, []string{"custom.bench"}, []int32{1}, []string{"1.1"}, []string{noopTool}, []string{string(data)})
			return pool.SendBatch(ctx, batch).Close()
		},
	}
	values, err := b.alternate(ctx, "p10", []side{{name: "store"}, {name: "pgx"}}, func(ctx context.Context, s side) (float64, error) {
		began := time.Now()
		err := atOnce(ctx, appenders, appenders, func(ctx context.Context, i int) error {
			for range b.size.appends / appenders {
				if err := through[s.name](ctx, ids[i]); err != nil {
					return fmt.Errorf("append through %s: %w", s.name, err)
				}
			}
			return nil
		})
		return float64(b.size.appends/appenders*appenders) / time.Since(began).Seconds(), err
	})
	if err != nil {
		return nil, err
	}
	ratio := ratios(values[0], values[1])
	return []row{{
		figure: fmt.Sprintf("events appended per second, %d sessions at once, one event at a time", appenders), target: "≥ 0.9 × pgx batch",
		jig: spreadOf(values[0]).show(0, ""), baseline: spreadOf(values[1]).show(0, ""), ratio: ratio.show(2, ""), verdict: judge(ratio.median >= 0.9),
	}}, nil
}

// sessions creates n sessions, only for their events.
func (b *bench) sessions(ctx context.Context, n int) ([]string, error) {
	ids := make([]string, n)
	err := atOnce(ctx, n, appenders, func(ctx context.Context, i int) error {
		ids[i] = jig.NewSessionID()
		_, err := b.engine.store.CreateSession(ctx, jig.Session{
			Tenant: jig.DefaultTenant, ID: ids[i], Agent: jig.Agent{Name: "bench"}, Status: jig.StatusWorking,
		})
		if err != nil {
			return fmt.Errorf("create a session: %w", err)
		}
		return nil
	})
	return ids, err
}

// delivering measures the time from an event's time stamp, which the database sets before the commit, until the subscriber has the event.
// The writer and the subscribers use separate stores, as they would in two processes.
func delivering(ctx context.Context, b *bench) ([]row, error) {
	ids, err := b.sessions(ctx, b.size.subscribers)
	if err != nil {
		return nil, err
	}
	listener, err := store.Open(ctx, b.database, store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	defer listener.Close()
	var mu sync.Mutex
	var delays []float64
	listening, stop := context.WithCancel(ctx)
	defer stop()
	var subscribers sync.WaitGroup
	for _, id := range ids {
		subscribers.Go(func() {
			subscribe(listening, listener, id, func(d time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				delays = append(delays, milliseconds(d))
			})
		})
	}
	if err := pause(ctx, time.Second); err != nil { // until all subscribers listen
		return nil, err
	}
	err = b.profiled("p10", "delivery", func() error { return b.deliver(ctx, ids) })
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // longer than the store's poll interval, so all events have arrived
		return nil, err
	}
	stop()
	subscribers.Wait()
	p99 := quantile(delays, 0.99)
	return []row{{
		figure: fmt.Sprintf("commit to subscriber p99, %d subscribers, %d events per second", len(ids), deliveriesPerSecond),
		target: "≤ 100 ms", jig: fmt.Sprintf("%.1f ms (p50 %.1f, slowest %.1f; %d of %d arrived)", p99, quantile(delays, 0.5),
			spreadOf(delays).high, len(delays), b.size.deliveries),
		verdict: judge(p99 <= 100 && len(delays) == b.size.deliveries),
	}}, nil
}

// deliver appends events to the sessions in turn, at a steady rate.
func (b *bench) deliver(ctx context.Context, ids []string) error {
	ticker := time.NewTicker(time.Second / deliveriesPerSecond)
	defer ticker.Stop()
	return atOnce(ctx, b.size.deliveries, appenders, func(ctx context.Context, i int) error {
		select {
		case <-ctx.Done():
			return fmt.Errorf("deliver: %w", ctx.Err())
		case <-ticker.C:
		}
		err := b.engine.store.AppendEvents(ctx, jig.DefaultTenant, ids[i%len(ids)], jig.Event{Type: "custom.bench"})
		if err != nil {
			return fmt.Errorf("deliver: %w", err)
		}
		return nil
	})
}

// subscribe reads a session's events as they arrive and reports the age of each event that deliver appended.
func subscribe(ctx context.Context, db *store.DB, id string, arrived func(time.Duration)) {
	for events := range db.Subscribe(ctx, jig.DefaultTenant, id, 0) {
		now := time.Now()
		for _, e := range events {
			if e.Type == "custom.bench" {
				arrived(now.Sub(e.At))
			}
		}
	}
}
