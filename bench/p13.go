package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jig-run/jig"
)

const (
	// streamServers is the number of servers over which the subscribers of P13 are spread.
	streamServers = 2
	// streamedType is the type of the events that P13 writes.
	streamedType = "custom.bench"
	// arrival is how long events may take to arrive before they count as lost.
	arrival = 20 * time.Second
)

// streamSide is a side of P13: servers with subscribers, and how an event is written.
type streamSide struct {
	servers servers
	// request names the address of a session's events and the credential.
	request func(ctx context.Context, server, session string) (*http.Request, error)
	write   func(ctx context.Context, session string) error
}

// streaming measures P13: the time from an event's time stamp, which the database sets before the commit, until its SSE subscriber has the event,
// beside the bare listener.
func streaming(ctx context.Context, b *bench) ([]row, error) {
	ids, err := b.sessions(ctx, b.size.subscribers)
	if err != nil {
		return nil, err
	}
	own, err := b.ownStreams(ctx)
	if err != nil {
		return nil, err
	}
	defer own.servers.kill()
	bare, done, err := b.bareStreams(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	of := map[string]streamSide{"jig": own, "bare listener": bare}
	middle := map[string][]float64{}
	values, err := b.alternate(ctx, "p13", []side{{name: "jig"}, {name: "bare listener"}}, func(ctx context.Context, s side) (float64, error) {
		delays, err := b.streamed(ctx, of[s.name], ids, b.size.streamed)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
		middle[s.name] = append(middle[s.name], quantile(delays, 0.5))
		return quantile(delays, 0.99), nil
	})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("commit to SSE subscriber, %d subscribers over %d servers, %d events per second, beside the bare listener", len(ids), streamServers, deliveriesPerSecond)
	rows := make([]row, 2)
	for i, one := range []struct {
		name      string
		jig, bare []float64
	}{{"p99", values[0], values[1]}, {"p50", middle["jig"], middle["bare listener"]}} {
		rows[i] = row{
			figure: what + ": " + one.name, jig: spreadOf(one.jig).show(1, " ms"), baseline: spreadOf(one.bare).show(1, " ms"),
			ratio: ratios(one.jig, one.bare).show(2, ""), verdict: notJudged,
		}
	}
	rows[0].target, rows[0].verdict = "≤ 100 ms", judge(spreadOf(values[0]).median <= 100)
	return rows, nil
}

// ownStreams returns jig's side: servers of the HTTP API, and events that a worker's store appends.
func (b *bench) ownStreams(ctx context.Context) (streamSide, error) {
	list, key, err := b.apiServers(ctx, jig.DefaultTenant, streamServers)
	return streamSide{
		servers: list,
		request: func(ctx context.Context, server, session string) (*http.Request, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/v1/sessions/"+session+"/events", nil) //nolint:gosec // the address of a server that this program started
			if err == nil {
				r.Header.Set("Accept", "text/event-stream")
				r.Header.Set("Authorization", "Bearer "+key)
			}
			return r, err //nolint:wrapcheck // it cannot fail
		},
		write: func(ctx context.Context, session string) error {
			return b.engine.store.AppendEvents(ctx, jig.DefaultTenant, session, jig.Event{Type: streamedType})
		},
	}, err
}

// bareStreams returns the baseline: the same statement that appends an event, with a notification in its transaction, which servers that a few
// lines make send on.
func (b *bench) bareStreams(ctx context.Context) (s streamSide, done func(), err error) {
	config, err := pgxpool.ParseConfig(b.database)
	if err != nil {
		return s, nil, fmt.Errorf("read the database's address: %w", err)
	}
	config.MaxConns = appenders
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return s, nil, fmt.Errorf("connect to the database: %w", err)
	}
	list, err := b.launchServers(ctx, streamServers, listenerCommand)
	if err != nil {
		pool.Close()
		return s, nil, err
	}
	return streamSide{
			servers: list,
			request: func(ctx context.Context, server, session string) (*http.Request, error) {
				return http.NewRequestWithContext(ctx, http.MethodGet, server+"/"+session, nil) //nolint:gosec // as above
			},
			write: func(ctx context.Context, session string) error {
				batch := &pgx.Batch{}
				batch.Queue("select set_config('jig.tenant', $1, true)", jig.DefaultTenant)
				batch.Queue(rawAppend, jig.DefaultTenant, session, []string{streamedType}, []int32{1}, []string{""}, []string{""}, []string{""})
				batch.Queue("select pg_notify($1, json_build_object('session_id', $2::text, 'at', clock_timestamp())::text)", listenerChannel, session)
				return pool.SendBatch(ctx, batch).Close()
			},
		}, func() {
			list.kill()
			pool.Close()
		}, nil
}

// streamed subscribes to each session, writes n events in turn, and returns how long each took to arrive.
func (b *bench) streamed(ctx context.Context, s streamSide, ids []string, n int) ([]float64, error) {
	began := time.Now()
	listening, stop := context.WithCancel(ctx)
	arrived := make(chan float64, n)
	var subscribers sync.WaitGroup
	defer subscribers.Wait()
	defer stop()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	err := atOnce(ctx, len(ids), appenders, func(_ context.Context, i int) error {
		request, err := s.request(listening, s.servers[i%len(s.servers)].url, ids[i])
		if err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("subscribe to %s: status %d", ids[i], answer.StatusCode)
		}
		subscribers.Go(func() {
			defer func() { _ = answer.Body.Close() }()
			hear(bufio.NewScanner(answer.Body), began, arrived)
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // until all servers listen, and longer than the store's poll interval
		return nil, err
	}
	ticker := time.NewTicker(time.Second / deliveriesPerSecond)
	defer ticker.Stop()
	err = atOnce(ctx, n, appenders, func(ctx context.Context, i int) error {
		select {
		case <-ctx.Done():
			return fmt.Errorf("write an event: %w", ctx.Err())
		case <-ticker.C:
		}
		if err := s.write(ctx, ids[i%len(ids)]); err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	delays := make([]float64, 0, n)
	late := time.After(arrival)
	for len(delays) < n {
		select {
		case d := <-arrived:
			delays = append(delays, d)
		case <-late:
			return nil, fmt.Errorf("%d of %d events have arrived after %s", len(delays), n, arrival)
		}
	}
	return delays, nil
}

// hear reports the age of each event of a stream that was written since a time, until the stream ends.
func hear(lines *bufio.Scanner, since time.Time, arrived chan<- float64) {
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		now := time.Now()
		var e struct{ At time.Time }
		if json.Unmarshal([]byte(data), &e) == nil && e.At.After(since) {
			arrived <- milliseconds(now.Sub(e.At))
		}
	}
}
