package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig"
)

// The number of sessions and tools over which the approvals are spread, and the number of pages read for each filter.
const (
	listedSessions = 50
	listedTools    = 20
	listedPages    = 200
)

// listing measures A1: reading filtered pages of waiting approvals in a tenant with a great many of them.
func listing(ctx context.Context, b *bench) ([]row, error) {
	const tenant = "bench-listing"
	if err := b.seedApprovals(ctx, tenant, b.size.listed); err != nil {
		return nil, err
	}
	var rows []row
	for _, one := range []struct {
		what   string
		filter jig.PendingFilter
	}{
		{"all", jig.PendingFilter{}},
		{"of one tool", jig.PendingFilter{Tool: "bench.t7"}},
		{"of one agent and requester, older than an hour", jig.PendingFilter{Agent: "agent3", RequestedBy: "p3", Before: time.Now().Add(-time.Hour)}},
		{"that matches nothing", jig.PendingFilter{Tool: "bench.none"}},
	} {
		took, err := b.listPages(ctx, tenant, one.filter)
		if err != nil {
			return nil, err
		}
		slices.Sort(took)
		p50, p99 := took[len(took)/2], took[int(math.Ceil(float64(len(took))*0.99))-1]
		rows = append(rows, row{
			figure: fmt.Sprintf("%d open approvals: a page of 40, %s, first pages and deep ones; p99 (p50)", b.size.listed, one.what),
			target: "< 100 ms", jig: fmt.Sprintf("%.1f ms (%.1f)", milliseconds(p99), milliseconds(p50)), verdict: judge(p99 < 100*time.Millisecond),
		})
	}
	return rows, nil
}

// listPages reads pages one after another and starts over after the last page.
func (b *bench) listPages(ctx context.Context, tenant string, filter jig.PendingFilter) ([]time.Duration, error) {
	took := make([]time.Duration, 0, listedPages)
	cursor := ""
	for range listedPages {
		began := time.Now()
		_, next, err := b.engine.store.ListPending(ctx, tenant, filter, cursor, 40)
		if err != nil {
			return nil, fmt.Errorf("list the waiting approvals: %w", err)
		}
		took, cursor = append(took, time.Since(began)), next
	}
	return took, nil
}

// seedApprovals stores waiting calls, spread over sessions, tools, agents and time.
func (b *bench) seedApprovals(ctx context.Context, tenant string, n int) error {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // nothing can be lost
	for i := range listedSessions {
		session := jig.Session{Tenant: tenant, ID: fmt.Sprintf("ses_listing_%d", i), Agent: jig.Agent{Name: "bench"}, Principal: jig.Principal{ID: "bench"}}
		if _, err := b.engine.store.CreateSession(ctx, session); err != nil {
			return fmt.Errorf("store a session: %w", err)
		}
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('jig.tenant', $1, true)", tenant); err != nil {
			return fmt.Errorf("set the tenant: %w", err)
		}
		if _, err := tx.Exec(ctx, insertApprovals, tenant, n, listedSessions, listedTools); err != nil {
			return fmt.Errorf("insert %d approvals: %w", n, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store approvals: %w", err)
	}
	return nil
}

// insertApprovals stores $2 calls of the tenant $1 and their approvals, in $3 sessions and of $4 tools.
const insertApprovals = `
	with c as (
		insert into calls (tenant_id, session_id, call_id, pass, ordinal, tool, verdict, status, idempotency_key)
		select $1, 'ses_listing_' || n % $3, '1.' || n, 1, n, 'bench.t' || n % $4, 'ask', 'waiting', 'ses_listing/1.' || n from generate_series(1, $2) n
		returning session_id, call_id, tool, ordinal)
	insert into approvals (tenant_id, session_id, call_id, kind, tool, agent, requested_by, requested_at, expires_at, summary, reasons, input, digest)
	select $1, c.session_id, c.call_id, 'approval', c.tool, 'agent' || c.ordinal % 10, 'p' || c.ordinal % 10,
		now() - c.ordinal * interval '1 second', now() + interval '7 days', 'Changes something.', '["it writes"]', '{"n": 1}', md5(c.call_id)
	from c`
