package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	workflowpb "go.temporal.io/api/workflow/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
)

// counters holds the values of PostgreSQL's counters at one time.
type counters struct {
	at time.Time
	// xids is the number of transactions that wrote, in all databases; commits that of all transactions of jig's database; visibility that of
	// rows inserted or updated in the table with Temporal's visibility records.
	xids, commits, visibility float64
}

// statistics reads counters.
type statistics struct{ jig, visibility *pgx.Conn }

// openStatistics connects to jig's database and, with the same role, to Temporal's visibility database on the same server.
func (b *bench) openStatistics(ctx context.Context) (*statistics, error) {
	config, err := pgx.ParseConfig(b.database)
	if err != nil {
		return nil, fmt.Errorf("read the database's URL: %w", err)
	}
	s := &statistics{}
	if s.jig, err = pgx.ConnectConfig(ctx, config.Copy()); err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	config.Database = "temporal_visibility"
	if s.visibility, err = pgx.ConnectConfig(ctx, config); err != nil {
		b.say("writes to Temporal's visibility store are not counted: %v", err)
	}
	return s, nil
}

func (s *statistics) close(ctx context.Context) {
	for _, conn := range []*pgx.Conn{s.jig, s.visibility} {
		if conn != nil {
			_ = conn.Close(ctx) // nothing can be lost
		}
	}
}

// read reads the counters. A connection reports its statistics at most once a second and, when it becomes idle, ten seconds later.
func (s *statistics) read(ctx context.Context) (counters, error) {
	c := counters{at: time.Now()}
	err := s.jig.QueryRow(ctx, `select pg_snapshot_xmax(pg_current_snapshot())::text::float8,
		(select xact_commit::float8 from pg_stat_database where datname = current_database())`).Scan(&c.xids, &c.commits)
	if err == nil && s.visibility != nil {
		err = s.visibility.QueryRow(ctx, `select coalesce(sum(n_tup_ins + n_tup_upd), 0)::float8 from pg_stat_user_tables
			where relname = 'executions_visibility'`).Scan(&c.visibility)
	}
	if err != nil {
		return c, fmt.Errorf("read PostgreSQL's statistics: %w", err)
	}
	return c, nil
}

// quiet reads counters until no visibility record was written for the time settle, because Temporal writes these records later than it
// answers. It returns the last two readings. It gives up waiting after ten readings.
func quiet(ctx context.Context, settle time.Duration, read func(context.Context) (counters, error)) (before, latest counters, err error) {
	for range 10 {
		if err := pause(ctx, settle); err != nil {
			return before, latest, err
		}
		before = latest
		if latest, err = read(ctx); err != nil || !before.at.IsZero() && before.visibility == latest.visibility {
			return before, latest, err
		}
	}
	return before, latest, nil
}

// since returns the difference to earlier counters.
func (c counters) since(earlier counters) counters {
	return counters{xids: c.xids - earlier.xids, commits: c.commits - earlier.commits, visibility: c.visibility - earlier.visibility}
}

// times multiplies the counts by f.
func (c counters) times(f float64) counters {
	return counters{xids: c.xids * f, commits: c.commits * f, visibility: c.visibility * f}
}

// work returns what was counted from began to ended, less what the idle server would have counted in that time. The sessions ran from began to
// done; transaction ids need no settling, so they are counted until then. The server was idle from ended to later.
func work(began, done, ended, later counters) counters {
	idle := later.since(ended).times(1 / later.at.Sub(ended.at).Seconds())
	counted := ended.since(began).since(idle.times(ended.at.Sub(began.at).Seconds()))
	counted.xids = done.xids - began.xids - idle.xids*done.at.Sub(began.at).Seconds()
	return counters{xids: max(0, counted.xids), commits: max(0, counted.commits), visibility: max(0, counted.visibility)}
}

// workCount says what a session of a side costs.
type workCount struct {
	counters
	events float64
}

// countWork counts, for each side, the work of a session of a plan.
func (b *bench) countWork(ctx context.Context, sides []contestant, p plan) (map[string]workCount, error) {
	statistics, err := b.openStatistics(ctx)
	if err != nil {
		return nil, err
	}
	defer statistics.close(ctx)
	_, began, err := quiet(ctx, b.size.settle, statistics.read)
	if err != nil {
		return nil, err
	}
	n := b.size.countedSessions
	counts := map[string]workCount{}
	for _, s := range sides {
		start := time.Now()
		if _, _, err := s.sessions(ctx, p, n, 1); err != nil {
			return nil, err
		}
		done, err := statistics.read(ctx)
		if err != nil {
			return nil, err
		}
		ended, later, err := quiet(ctx, b.size.settle, statistics.read)
		if err != nil {
			return nil, err
		}
		events, err := b.eventsSince(ctx, s.queue, start)
		if err != nil {
			return nil, err
		}
		counts[s.name] = workCount{counters: work(began, done, ended, later).times(1 / float64(n)), events: events / float64(n)}
		began = later
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
