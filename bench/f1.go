package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig/spec"
)

// fairQueue is the task queue of F1. Its worker runs in a process of its own.
const fairQueue = "bench-fair"

// The tenants of F1.
const (
	quietTenant = "bench-quiet"
	busyTenant  = "bench-busy"
)

// fairness measures F1: the time from a decision until the tool runs, for one tenant while another starts a great many sessions, beside the same
// time while nothing else happens.
func fairness(ctx context.Context, b *bench) ([]row, error) {
	w, err := b.spawn(ctx, fairQueue)
	if err != nil {
		return nil, err
	}
	defer func() { w.kill() }()
	quiet, busy := b.caller().at(fairQueue, quietTenant), b.caller().at(fairQueue, busyTenant)
	n := b.size.fairAnswers
	waiting, err := b.suspend(ctx, quiet, 3*n)
	if err != nil {
		return nil, err
	}
	own, err := b.suspend(ctx, busy, n)
	if err != nil {
		return nil, err
	}
	if _, err := b.answers(ctx, quiet, waiting[:n]); err != nil { // warm up
		return nil, err
	}
	idle, err := b.answers(ctx, quiet, waiting[n:2*n])
	if err != nil {
		return nil, err
	}
	if err := b.limitStarts(ctx, busyTenant); err != nil {
		return nil, err
	}
	var loaded, within []float64
	took, err := b.flooded(ctx, busy, func(ctx context.Context, over func() bool) (err error) {
		for i := 0; i < n && !over() && err == nil; i++ {
			var one []float64
			if one, err = b.answers(ctx, quiet, waiting[2*n+i:2*n+i+1]); err == nil {
				loaded = append(loaded, one...)
				one, err = b.answers(ctx, busy, own[i:i+1])
				within = append(within, one...)
			}
			if err == nil {
				err = pause(ctx, b.size.fairPause)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return fairRows(b.size, took, idle, loaded, within), nil
}

// limitStarts gives a tenant a rate limit for the sessions that it starts.
func (b *bench) limitStarts(ctx context.Context, tenant string) error {
	if b.size.fairStarts == 0 {
		return nil
	}
	body := fmt.Sprintf("kind: rate_limit\nname: starts\nlimits: [{name: sessions, sessions: true, rate: %d, per: 1s, burst: %[1]d}]\n", b.size.fairStarts)
	if err := b.engine.store.PutDocument(ctx, tenant, string(spec.KindRateLimit), "starts", fmt.Sprintf("%016x", b.size.fairStarts), []byte(body)); err != nil {
		return fmt.Errorf("store a rate limit: %w", err)
	}
	return pause(ctx, limitKnown)
}

// limitKnown is how long it takes until the worker knows a new rate limit.
const limitKnown = 2 * time.Second

func fairRows(s size, took time.Duration, idle, loaded, within []float64) []row {
	alone, beside, inside := spreadOf(idle), spreadOf(loaded), spreadOf(within)
	limit := "no limit"
	if s.fairStarts > 0 {
		limit = fmt.Sprintf("limited to %d a second", s.fairStarts)
	}
	what := fmt.Sprintf("a tenant starts %d sessions at once, %s, which take %s: decision sent → tool function entered", s.flood, limit, took.Round(time.Second))
	return []row{
		{
			figure: fmt.Sprintf("%s, for another tenant, p50 of %d; baseline: idle", what, len(loaded)), target: "≤ 2 × idle",
			jig: beside.show(1, " ms"), baseline: alone.show(1, " ms"), ratio: fmt.Sprintf("%.2f", beside.median/alone.median),
			verdict: judge(beside.median <= 2*alone.median),
		},
		{
			figure: "the same, p95", jig: fmt.Sprintf("%.1f ms", quantile(loaded, 0.95)), baseline: fmt.Sprintf("%.1f ms", quantile(idle, 0.95)),
			ratio: fmt.Sprintf("%.2f", quantile(loaded, 0.95)/quantile(idle, 0.95)), verdict: notJudged,
		},
		{
			figure: fmt.Sprintf("the same for the tenant that starts the sessions, p50 of %d", len(within)), jig: inside.show(1, " ms"),
			baseline: alone.show(1, " ms"), ratio: fmt.Sprintf("%.2f", inside.median/alone.median), verdict: notJudged,
		},
	}
}

// suspend starts n sessions whose only call waits for a person, and returns their ids.
func (b *bench) suspend(ctx context.Context, c caller, n int) ([]string, error) {
	ids := make([]string, n)
	err := atOnce(ctx, n, b.size.loadAtOnce, func(ctx context.Context, i int) error {
		ids[i] = newID(c.tenant)
		if err := jigSide().start(ctx, c, ids[i], askingPlan()); err != nil {
			return err
		}
		return b.untilSuspended(ctx, ids[i])
	})
	return ids, err
}

// answers approves the calls of sessions, one after another, and returns the milliseconds from each decision until the tool was entered.
func (b *bench) answers(ctx context.Context, c caller, ids []string) (times []float64, err error) {
	for _, id := range ids {
		if err := pause(ctx, thinkingTime); err != nil {
			return times, err
		}
		took, err := b.decide(ctx, c, id)
		if err != nil {
			return times, err
		}
		times = append(times, milliseconds(took))
	}
	return times, nil
}

// flooded starts a great many sessions of a tenant, and calls meanwhile once the first tenth has been started. over reports whether all sessions
// have ended. flooded returns how long they took.
func (b *bench) flooded(ctx context.Context, c caller, meanwhile func(ctx context.Context, over func() bool) error) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var started atomic.Int64
	var ended atomic.Bool
	began := time.Now()
	var took time.Duration
	failed := make(chan error, 1)
	go func() {
		err := atOnce(ctx, b.size.flood, b.size.loadAtOnce, func(ctx context.Context, _ int) error {
			err := jigSide().start(ctx, c, newID(c.tenant), plan{Passes: 1, Calls: 1, Tool: noopTool})
			started.Add(1)
			return err
		})
		b.say("%d sessions are started after %s", started.Load(), time.Since(began).Round(time.Second))
		if err == nil {
			err = b.untilCompleted(ctx, c.tenant, began, b.size.flood)
		}
		took = time.Since(began)
		ended.Store(true)
		failed <- err
	}()
	for started.Load() < int64(b.size.flood/10) && !ended.Load() {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
	if err := meanwhile(ctx, ended.Load); err != nil {
		return 0, err
	}
	b.say("the other tenant is done after %s", time.Since(began).Round(time.Second))
	err := <-failed
	return took, err
}

// untilCompleted waits until n sessions that a tenant has started since a time have completed.
func (b *bench) untilCompleted(ctx context.Context, tenant string, since time.Time, n int) error {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing can be lost
	if _, err := conn.Exec(ctx, "select set_config('jig.tenant', $1, false)", tenant); err != nil {
		return fmt.Errorf("set the tenant: %w", err)
	}
	for range 6000 {
		var completed int
		if err := conn.QueryRow(ctx, "select count(*) from sessions where status = 'completed' and created_at >= $1", since).Scan(&completed); err != nil {
			return fmt.Errorf("count the completed sessions: %w", err)
		}
		if completed >= n {
			return nil
		}
		if err := pause(ctx, time.Second/2); err != nil {
			return err
		}
	}
	return errors.New("the sessions did not complete within 50 minutes")
}
