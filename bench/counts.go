package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	workflowpb "go.temporal.io/api/workflow/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
)

// counters are what PostgreSQL has counted so far.
type counters struct {
	at time.Time
	// xids is the number of transactions that wrote, in all databases; commits that of all transactions of jig's database; visibility that of
	// rows inserted or updated in Temporal's visibility database.
	xids, commits, visibility float64
}

// readCounters reads the counters. A connection reports its statistics after its first transaction in a second and, when it is idle, after ten
// seconds, so callers wait for that long first.
func readCounters(ctx context.Context, conn *pgx.Conn) (counters, error) {
	c := counters{at: time.Now()}
	err := conn.QueryRow(ctx, `select pg_snapshot_xmax(pg_current_snapshot())::text::float8,
		(select xact_commit::float8 from pg_stat_database where datname = current_database()),
		coalesce((select (tup_inserted + tup_updated)::float8 from pg_stat_database where datname = 'temporal_visibility'), 0)`).
		Scan(&c.xids, &c.commits, &c.visibility)
	if err != nil {
		return c, fmt.Errorf("read PostgreSQL's statistics: %w", err)
	}
	return c, nil
}

// since returns the difference to earlier counters, less what an idle server would have counted in that time. idle is per second.
func (c counters) since(earlier, idle counters) counters {
	seconds := c.at.Sub(earlier.at).Seconds()
	return counters{
		xids:       c.xids - earlier.xids - idle.xids*seconds,
		commits:    c.commits - earlier.commits - idle.commits*seconds,
		visibility: c.visibility - earlier.visibility - idle.visibility*seconds,
	}
}

// per divides the counts by n.
func (c counters) per(n float64) counters {
	return counters{xids: c.xids / n, commits: c.commits / n, visibility: c.visibility / n}
}

// workCount says what a session of a side costs.
type workCount struct {
	counters
	events float64
}

// countWork counts, for each side, the work of a session of a plan.
func (b *bench) countWork(ctx context.Context, sides []contestant, p plan) (map[string]workCount, error) {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // nothing can be lost
	read := func() (counters, error) {
		if err := pause(ctx, b.size.settle); err != nil {
			return counters{}, err
		}
		return readCounters(ctx, conn)
	}
	before, err := read()
	if err != nil {
		return nil, err
	}
	latest, err := read()
	if err != nil {
		return nil, err
	}
	idle := latest.since(before, counters{}).per(latest.at.Sub(before.at).Seconds())
	counts := map[string]workCount{}
	for _, s := range sides {
		began := time.Now()
		if _, _, err := s.sessions(ctx, p, b.size.countedSessions, 1); err != nil {
			return nil, err
		}
		before = latest
		if latest, err = read(); err != nil {
			return nil, err
		}
		c := workCount{counters: latest.since(before, idle).per(float64(b.size.countedSessions))}
		if c.events, err = b.eventsSince(ctx, s.queue, began); err != nil {
			return nil, err
		}
		c.events /= float64(b.size.countedSessions)
		counts[s.name] = c
	}
	return counts, nil
}

// eventsSince returns the number of history events of the runs on task queues with a prefix that started at a time or later.
func (b *bench) eventsSince(ctx context.Context, queue string, since time.Time) (float64, error) {
	request := &workflowservicepb.ListWorkflowExecutionsRequest{
		Namespace: b.namespace, PageSize: 1000,
		Query: fmt.Sprintf("TaskQueue STARTS_WITH '%s' AND StartTime >= '%s'", queue, since.UTC().Format(time.RFC3339Nano)),
	}
	total := 0.0
	for {
		page, err := b.temporal.ListWorkflow(ctx, request)
		if err != nil {
			return 0, fmt.Errorf("list the runs on %s: %w", queue, err)
		}
		for _, run := range page.GetExecutions() {
			length, err := b.historyLength(ctx, run)
			if err != nil {
				return 0, err
			}
			total += length
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return total, nil
		}
	}
}

func (b *bench) historyLength(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) (float64, error) {
	described, err := b.temporal.DescribeWorkflowExecution(ctx, run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId())
	if err != nil {
		return 0, fmt.Errorf("describe %s: %w", run.GetExecution().GetWorkflowId(), err)
	}
	return float64(described.GetWorkflowExecutionInfo().GetHistoryLength()), nil
}
