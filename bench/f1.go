package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/serviceerror"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/remote"
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
	start, closeDoor, err := b.door(ctx, busy)
	if err != nil {
		return nil, err
	}
	defer closeDoor()
	accepted, completed, err := b.flooded(ctx, busy, start, func(ctx context.Context, over func() (bool, error)) error {
		for i := range n {
			if ended, err := over(); err != nil || ended {
				return err
			}
			one, err := b.answers(ctx, quiet, waiting[2*n+i:2*n+i+1])
			if err != nil {
				return err
			}
			loaded = append(loaded, one...)
			if one, err = b.answers(ctx, busy, own[i:i+1]); err != nil {
				return err
			}
			within = append(within, one...)
			if err := pause(ctx, b.size.fairPause); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return fairRows(b.size, accepted, completed, idle, loaded, within), nil
}

// A startFunc starts a session under an id. It waits until it is accepted.
type startFunc func(ctx context.Context, id string) error

// door returns what starts the sessions of the busy tenant: a client of a server that accepts only so many starts in a second or, without such a
// limit, a client of Temporal. closeDoor ends the server.
func (b *bench) door(ctx context.Context, c caller) (start startFunc, closeDoor func(), err error) {
	flood := plan{Passes: 1, Calls: 1, Tool: noopTool}
	if b.size.fairDoor == 0 {
		return func(ctx context.Context, id string) error { return jigSide().start(ctx, c, id, flood) }, func() {}, nil
	}
	list, key, err := b.apiServers(ctx, c.tenant, 1, "-queue", fairQueue, "-starts", strconv.Itoa(b.size.fairDoor))
	if err != nil {
		return nil, nil, err
	}
	through, err := remote.Dial(ctx, remote.Options{URL: list[0].url, Token: func(context.Context) (string, error) { return key, nil }})
	if err != nil {
		list.kill()
		return nil, nil, fmt.Errorf("reach the server: %w", err)
	}
	options, err := startOptions(c, flood)
	if err != nil {
		list.kill()
		return nil, nil, err
	}
	return func(ctx context.Context, id string) error {
		o := options
		o.ID = id
		for {
			if _, err := through.Start(ctx, o); jig.CodeOf(err) != jig.CodeRateLimited { // the client itself tries for 20 s
				return err
			}
		}
	}, func() { through.Close(); list.kill() }, nil
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

func fairRows(s size, accepted, completed int, idle, loaded, within []float64) []row {
	alone, beside, inside := spreadOf(idle), spreadOf(loaded), spreadOf(within)
	limit := "at Temporal"
	if s.fairDoor > 0 {
		limit = fmt.Sprintf("through a server that accepts %d a second", s.fairDoor)
	}
	if s.fairStarts > 0 {
		limit += fmt.Sprintf(", limited to %d a second", s.fairStarts)
	}
	what := fmt.Sprintf("a tenant starts %d sessions at once, %s; %d are accepted and %d end meanwhile: decision sent → tool function entered",
		s.flood, limit, accepted, completed)
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

// flooded starts a great many sessions of a tenant, and calls meanwhile once the first have been started. over reports whether all sessions have ended.
// flooded returns how many have been accepted and have ended, and ends the others.
func (b *bench) flooded(
	ctx context.Context, c caller, start startFunc, meanwhile func(ctx context.Context, over func() (bool, error)) error,
) (accepted, completed int, err error) {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return 0, 0, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing can be lost
	if _, err := conn.Exec(ctx, "select set_config('jig.tenant', $1, false)", c.tenant); err != nil {
		return 0, 0, fmt.Errorf("set the tenant: %w", err)
	}
	began := time.Now()
	over := func() (bool, error) {
		err := conn.QueryRow(ctx, "select count(*) from sessions where status = 'completed' and created_at >= $1", began).Scan(&completed)
		if err != nil {
			return false, fmt.Errorf("count the completed sessions: %w", err)
		}
		return completed >= b.size.flood, nil
	}
	ids := make([]string, b.size.flood)
	var started atomic.Int64
	starts, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		err := atOnce(starts, len(ids), b.size.loadAtOnce, func(ctx context.Context, i int) error {
			id := newID(c.tenant)
			if err := start(ctx, id); err != nil {
				return err
			}
			ids[i] = id
			started.Add(1)
			return nil
		})
		b.say("%d sessions are started after %s", started.Load(), time.Since(began).Round(time.Second))
		ended <- err
	}()
	for started.Load() < int64(b.size.fairAnswers) && err == nil {
		select {
		case err = <-ended:
			ended <- err
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err == nil {
		err = meanwhile(ctx, over)
	}
	if b.size.fairDoor > 0 { // those that have not been accepted yet would take too long
		stop()
	}
	if failed := <-ended; starts.Err() == nil {
		err = errors.Join(err, failed)
	}
	if err != nil {
		return 0, 0, err
	}
	if _, err := over(); err != nil {
		return 0, 0, err
	}
	b.say("%d sessions have ended after %s", completed, time.Since(began).Round(time.Second))
	return int(started.Load()), completed, atOnce(ctx, len(ids), b.size.loadAtOnce, func(ctx context.Context, i int) error {
		if ids[i] == "" {
			return nil
		}
		err := c.temporal.TerminateWorkflow(ctx, ids[i], "", "the measurement is over")
		if ended := new(serviceerror.NotFound); errors.As(err, &ended) {
			return nil
		}
		return err //nolint:wrapcheck // says enough
	})
}
