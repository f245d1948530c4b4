package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// idle holds the cost of suspended sessions for a worker.
type idle struct {
	// growth is the increase of resident memory in MiB; share is the share of a CPU core used while nothing happens.
	growth, share float64
}

// suspension measures P6: memory and idle CPU of a worker whose sessions all wait for a person.
func suspension(ctx context.Context, b *bench) ([]row, error) {
	ours, err := b.suspended(ctx, jigSide())
	if err != nil {
		return nil, err
	}
	theirs, err := b.suspended(ctx, loopSide())
	if err != nil {
		return nil, err
	}
	n := b.size.suspended
	return []row{
		{
			figure: fmt.Sprintf("%d suspended approvals: resident memory of the worker, which keeps %d sessions", n, cachedSessions),
			target: "≤ +200 MB", jig: growth(ours.growth, n), baseline: growth(theirs.growth, n),
			ratio: fmt.Sprintf("%.2f", ours.growth/theirs.growth), verdict: judge(ours.growth*toFull(n) <= 200),
		},
		{
			figure: fmt.Sprintf("%d suspended approvals: CPU of the idle worker over %s", n, b.size.idle),
			target: "< 2 % of a core", jig: fmt.Sprintf("%.2f %%", ours.share*100),
			baseline: fmt.Sprintf("%.2f %%", theirs.share*100), verdict: judge(ours.share < 0.02),
		},
	}, nil
}

// toFull returns the factor from the memory growth with n sessions to that of a worker with a full cache. More sessions than the cache
// holds take no more memory, because they are in no worker's memory.
func toFull(n int) float64 { return max(1, float64(cachedSessions)/float64(n)) }

// growth formats the memory growth with n sessions. If they do not fill the cache, it adds an extrapolation to a full cache.
func growth(mb float64, n int) string {
	text := fmt.Sprintf("%+.0f MB", mb)
	if n < cachedSessions {
		text += fmt.Sprintf(" (extrapolated to %d: %+.0f MB)", cachedSessions, mb*toFull(n))
	}
	return text
}

// suspended suspends sessions of a side on a separate worker and measures that worker.
func (b *bench) suspended(ctx context.Context, s side) (idle, error) {
	name := "bench-idle-" + strings.ToLower(s.name)
	c := b.caller().at(name, name)
	w, err := b.spawn(ctx, name)
	if err != nil {
		return idle{}, err
	}
	defer w.kill()
	begin := func(n int) error {
		return atOnce(ctx, n, b.size.loadAtOnce, func(ctx context.Context, _ int) error {
			return s.start(ctx, c, newID(c.tenant), askingPlan())
		})
	}
	const warmth = 20
	if err := begin(warmth); err != nil {
		return idle{}, err
	}
	if err := b.untilWaiting(ctx, name, warmth); err != nil {
		return idle{}, err
	}
	if err := pause(ctx, min(5*time.Second, b.size.idle)); err != nil {
		return idle{}, err
	}
	before, err := w.memory()
	if err != nil {
		return idle{}, err
	}
	if err := begin(b.size.suspended); err != nil {
		return idle{}, err
	}
	if err := b.untilWaiting(ctx, name, warmth+b.size.suspended); err != nil {
		return idle{}, err
	}
	b.say("%s: %d sessions wait; watching the worker for %s", s.name, b.size.suspended, b.size.idle)
	return watch(ctx, w, b.size.idle, before)
}

// watch lets the worker settle and then measures its memory and CPU use.
func watch(ctx context.Context, w *process, during time.Duration, before float64) (idle, error) {
	if err := pause(ctx, min(10*time.Second, during)); err != nil {
		return idle{}, err
	}
	used, err := w.processor()
	if err != nil {
		return idle{}, err
	}
	if err := pause(ctx, during); err != nil {
		return idle{}, err
	}
	after, err := w.memory()
	if err != nil {
		return idle{}, err
	}
	later, err := w.processor()
	if err != nil {
		return idle{}, err
	}
	return idle{growth: (after - before) / (1 << 20), share: (later - used).Seconds() / during.Seconds()}, nil
}

// untilWaiting waits until a tenant has n open approvals.
func (b *bench) untilWaiting(ctx context.Context, tenant string, n int) error {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // nothing can be lost
	if _, err := conn.Exec(ctx, "select set_config('jig.tenant', $1, false)", tenant); err != nil {
		return fmt.Errorf("name the tenant: %w", err)
	}
	deadline := time.Now().Add(time.Minute + time.Duration(n)*100*time.Millisecond)
	for time.Now().Before(deadline) {
		var open int
		if err := conn.QueryRow(ctx, "select count(*) from approvals where status = 'open'").Scan(&open); err != nil {
			return fmt.Errorf("count the open approvals: %w", err)
		}
		if open >= n {
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("not all of the %d sessions were suspended in time", n)
}
