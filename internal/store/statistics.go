package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// maxReviewers is the maximum number of people, and also of tools, in the statistics; the busiest are kept.
const maxReviewers = 500

// openStatisticsRow is the row of the query StatisticsOpen.
type openStatisticsRow struct {
	Count, Approvals, Reconciles, Questions int
	Oldest                                  time.Time
	Age                                     []float64
}

// decidedStatisticsRow is a row of the query StatisticsDecided.
type decidedStatisticsRow struct {
	Tool                                                         string
	Open, Approved, Granted, Denied, Expired, Replaced, Canceled int
	Seconds                                                      []float64
}

// Statistics returns statistics on a tenant's approvals: those that wait now, and those decided since the time of the request. It lists at most 500 people
// and 500 tools, the busiest of each.
func (db *DB) Statistics(ctx context.Context, in protocol.StatisticsRequest) (protocol.ApprovalStats, error) {
	now, err := db.Now(ctx)
	if err != nil {
		return protocol.ApprovalStats{}, err
	}
	var open *openStatisticsRow
	var decided []decidedStatisticsRow
	var reviewers []protocol.ReviewerStats
	err = db.once(ctx, in.Tenant, func(t *tx) {
		first(t.queue("StatisticsOpen", in.Tenant, now), &open)
		list(t.queue("StatisticsDecided", in.Tenant, in.Since), &decided)
		list(t.queue("StatisticsReviewers", in.Tenant, in.Since, maxReviewers), &reviewers)
	})
	if err != nil {
		return protocol.ApprovalStats{}, err
	}
	f := protocol.ApprovalStats{
		Since: in.Since.UTC(), At: now, Reviewers: reviewers, Tools: []protocol.ToolStats{},
		Open: protocol.OpenStats{Kinds: map[jig.PendingKind]int{}}, Decided: protocol.DecidedStats{Outcomes: map[protocol.ApprovalOutcome]int{}},
	}
	if open != nil && open.Count > 0 {
		f.Open.Count, f.Open.Oldest, f.Open.Age = open.Count, open.Oldest, spread(open.Age)
		keep(f.Open.Kinds, jig.PendingApproval, open.Approvals)
		keep(f.Open.Kinds, jig.PendingReconcile, open.Reconciles)
		keep(f.Open.Kinds, jig.PendingQuestion, open.Questions)
	}
	for _, r := range decided {
		if r.Tool == "" {
			f.Decided = r.total()
		} else if len(f.Tools) < maxReviewers {
			f.Tools = append(f.Tools, r.ofTool())
		}
	}
	return f, nil
}

func (r decidedStatisticsRow) total() protocol.DecidedStats {
	d := protocol.DecidedStats{Outcomes: map[protocol.ApprovalOutcome]int{}, Time: spread(r.Seconds)}
	for outcome, n := range map[protocol.ApprovalOutcome]int{
		protocol.OutcomeApproved: r.Approved, protocol.OutcomeGranted: r.Granted, protocol.OutcomeDenied: r.Denied,
		protocol.OutcomeExpired: r.Expired, protocol.OutcomeReplaced: r.Replaced, protocol.OutcomeCanceled: r.Canceled,
	} {
		keep(d.Outcomes, outcome, n)
		d.Count += n
	}
	d.ExpiryRate = share(r.Expired, r.Expired+r.Approved+r.Denied)
	return d
}

func (r decidedStatisticsRow) ofTool() protocol.ToolStats {
	return protocol.ToolStats{
		Tool: r.Tool, Open: r.Open, Decided: r.Approved + r.Denied, Expired: r.Expired,
		ApprovedShare: share(r.Approved, r.Approved+r.Denied), Median: spread(r.Seconds).P50,
	}
}

// spread converts the result of percentile_cont for the fractions 0.5, 0.9 and 1. It returns zeros when there were no rows.
func spread(p []float64) protocol.Percentiles {
	if len(p) < 3 {
		return protocol.Percentiles{}
	}
	return protocol.Percentiles{P50: p[0], P90: p[1], Max: p[2]}
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// keep stores a number unless it is zero.
func keep[K comparable](m map[K]int, key K, n int) {
	if n != 0 {
		m[key] = n
	}
}

// OpenSessions counts the sessions that have not ended, over all tenants.
func (db *DB) OpenSessions(ctx context.Context) ([]protocol.SessionCount, error) {
	return ask(ctx, db, "", list[protocol.SessionCount], "SessionsOpenEverywhere")
}

// PendingDeliveries counts the notices that webhooks have not received yet, over all tenants.
func (db *DB) PendingDeliveries(ctx context.Context) ([]protocol.DeliveryCount, error) {
	return ask(ctx, db, "", list[protocol.DeliveryCount], "DeliveriesPendingEverywhere")
}

// maxBudgetsUsed is the maximum number of counters that BudgetsUsed returns.
const maxBudgetsUsed = 10_000

// BudgetsUsed returns, by tenant, the counters of limits of tenants and agents: those of the given day and those without a window; at most
// 10,000 in total. It leaves out the counters of sessions and passes, of which there are too many.
func (db *DB) BudgetsUsed(ctx context.Context, day string) (map[string][]budget.Used, error) {
	rows, err := ask(ctx, db, "", list[usedRow], "BudgetsUsedEverywhere", day, maxBudgetsUsed)
	used := map[string][]budget.Used{}
	for _, r := range rows {
		used[r.Tenant] = append(used[r.Tenant], r.used())
	}
	return used, err
}

// usedRow is a row of the query BudgetsUsedEverywhere.
type usedRow struct {
	Tenant string
	counterRow
}

// PoolStats describes the connections of a DB to its database.
type PoolStats struct {
	// InUse, Idle and Max count connections.
	InUse, Idle, Max int
	// Acquired counts the connections that were handed out, Waited those for which a caller had to wait, since the DB was opened. WaitTime is
	// how long callers have waited in total.
	Acquired, Waited int64
	WaitTime         time.Duration
}

// PoolStats returns the present state of the connections.
func (db *DB) PoolStats() PoolStats {
	s := db.pool.Stat()
	return PoolStats{
		InUse: int(s.AcquiredConns()), Idle: int(s.IdleConns()), Max: int(s.MaxConns()),
		Acquired: s.AcquireCount(), Waited: s.EmptyAcquireCount(), WaitTime: s.EmptyAcquireWaitTime(),
	}
}

// Limits of a page of recorded calls: the number of calls, and the total size of their inputs.
const (
	maxRecorded      = 500
	maxRecordedBytes = 16 << 20
)

// recordedRow is a row of the query CallsRecorded.
type recordedRow struct {
	jig.Call

	AgentName              string
	AgentVersion           string
	Registered             bool
	RootAgent, ParentAgent string
	Depth                  int
	Source                 jig.Source
	Principal              jig.Principal
	Task                   string
	SessionInput           json.RawMessage
	Writes                 int
}

// recordedCursor is the position where a page of recorded calls ended.
type recordedCursor struct {
	Session string `json:"session"`
	Call    string `json:"call"`
}

// RecordedCalls returns calls that were admitted since a time, session by session, with the data needed to evaluate policy for them. It
// starts after a cursor ("" for the first page); next is "" at the end. A page has at most limit calls (a limit below 1 or above 500 means
// 500) and at most 16 MiB of input, but at least one call. The session's pass and writes are those at the time of the call's admission.
func (db *DB) RecordedCalls(
	ctx context.Context, tenant string, since time.Time, after string, limit int,
) (recorded []ledger.RecordedCall, next string, err error) {
	var from recordedCursor
	of := pageOf{Tenant: tenant, List: "recorded_calls"}
	if err := db.cursors.open(of, after, &from); err != nil {
		return nil, "", err
	}
	if limit <= 0 || limit > maxRecorded {
		limit = maxRecorded
	}
	rows, err := ask(ctx, db, tenant, list[recordedRow], "CallsRecorded", tenant, since, from.Session, from.Call, limit, maxRecordedBytes)
	if err != nil {
		return nil, "", err
	}
	recorded = make([]ledger.RecordedCall, len(rows))
	for i := range rows {
		recorded[i] = rows[i].recorded()
	}
	if len(rows) > 0 { // a page may be short because of its bytes, so only an empty one is the end
		end := rows[len(rows)-1]
		next, err = db.cursors.seal(of, recordedCursor{end.SessionID, end.ID})
	}
	return recorded, next, err
}

func (r *recordedRow) recorded() ledger.RecordedCall {
	return ledger.RecordedCall{
		Call: r.Call,
		Session: jig.Session{
			Tenant: r.Tenant, ID: r.SessionID, Task: r.Task, Input: r.SessionInput, Pass: r.Pass, Writes: r.Writes, Principal: r.Principal,
			Agent:     jig.Agent{Name: r.AgentName, Version: r.AgentVersion, Registered: r.Registered},
			RootAgent: r.RootAgent, ParentAgent: r.ParentAgent, Depth: r.Depth, Source: r.Source,
		},
	}
}
