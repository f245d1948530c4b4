package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/spec"
)

// FillInput is the input of the extraction baseline: the entities of a session.
type FillInput struct {
	Tenant   string
	Session  string
	Entities []string
	AtOnce   int
	// Bare leaves out the store, to measure the cost of Temporal and the expressions alone.
	Bare bool
}

// Fill is the baseline B0 for the extraction of many entities: a workflow written by hand with the SDK. It starts a child workflow for each
// entity, at most AtOnce at a time. It returns the number of tasks that produced a value.
func Fill(ctx workflow.Context, in FillInput) (int, error) {
	var e *engine
	ctx = workflow.WithChildOptions(baselineOptions(ctx), workflow.ChildWorkflowOptions{})
	if !in.Bare {
		err := workflow.ExecuteLocalActivity(ctx, e.OpenFill, in).Get(ctx, nil)
		if err != nil {
			return 0, err //nolint:wrapcheck // a workflow returns Temporal's own errors
		}
	}
	room := workflow.NewSemaphore(ctx, int64(in.AtOnce))
	done, ended := 0, 0
	var failed error
	for _, id := range in.Entities {
		if err := room.Acquire(ctx, 1); err != nil {
			return done, err //nolint:wrapcheck // as above
		}
		if failed != nil {
			return done, failed
		}
		workflow.Go(ctx, func(ctx workflow.Context) {
			var tasks int
			one := FillOneInput{Tenant: in.Tenant, Session: in.Session, Entity: id, Bare: in.Bare}
			if err := workflow.ExecuteChildWorkflow(ctx, FillOne, one).Get(ctx, &tasks); err != nil {
				failed = err
			}
			done, ended = done+tasks, ended+1
			room.Release(1)
		})
	}
	if err := workflow.Await(ctx, func() bool { return ended == len(in.Entities) }); err != nil {
		return done, err //nolint:wrapcheck // as above
	}
	return done, failed
}

// FillOneInput names an entity to fill.
type FillOneInput struct {
	Tenant, Session, Entity string
	Bare                    bool
}

// fillSteps lists the tasks of sevenTasks, each with the tasks it waits for.
func fillSteps() []fillStep {
	return []fillStep{
		{id: "host"},
		{id: "owner"},
		{id: "short"},
		{id: "depth"},
		{id: "public", after: []string{"host"}},
		{id: "label", after: []string{"owner", "short"}},
		{id: "risk", after: []string{"public", "depth"}},
	}
}

type fillStep struct {
	id    string
	after []string
}

// FillOne is the child workflow of B0. It reads an entity and runs each task in a local activity, as soon as the tasks it waits for have
// values.
func FillOne(ctx workflow.Context, in FillOneInput) (int, error) {
	var e *engine
	ctx = baselineOptions(ctx)
	content := json.RawMessage(`{"path":"github.com/owner1/page1"}`)
	if !in.Bare {
		if err := workflow.ExecuteLocalActivity(ctx, e.ReadPage, in).Get(ctx, &content); err != nil {
			return 0, err //nolint:wrapcheck // a workflow returns Temporal's own errors
		}
	}
	values := map[string]json.RawMessage{}
	var failed error
	ended := 0
	for _, step := range fillSteps() {
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer func() { ended++ }()
			ready := func() bool {
				for _, id := range step.after {
					if values[id] == nil {
						return failed != nil
					}
				}
				return true
			}
			if err := workflow.Await(ctx, ready); err != nil || failed != nil {
				return
			}
			task := FillTaskInput{FillOneInput: in, Task: step.id, Content: content, Values: map[string]json.RawMessage{}}
			for _, id := range step.after {
				task.Values[id] = values[id]
			}
			var value json.RawMessage
			if err := workflow.ExecuteLocalActivity(ctx, e.FillTask, task).Get(ctx, &value); err != nil {
				failed = err
				return
			}
			values[step.id] = value
		})
	}
	if err := workflow.Await(ctx, func() bool { return ended == len(fillSteps()) }); err != nil {
		return 0, err //nolint:wrapcheck // as above
	}
	return len(values), failed
}

// FillTaskInput is a task with the values that its expression reads.
type FillTaskInput struct {
	FillOneInput
	Task    string
	Content json.RawMessage
	Values  map[string]json.RawMessage
}

// pages is the state of B0's activities: the compiled tasks of sevenTasks and a connection pool like the store's.
type pages struct {
	pool     *pgxpool.Pool
	tasks    map[string]entity.Task
	fields   map[string]entity.Field
	programs map[string]*expr.Program
}

func newPages(ctx context.Context, url string) (*pages, error) {
	t, err := spec.LoadEntityType(pageType, []byte(sevenTasks))
	if err != nil {
		return nil, fmt.Errorf("the entity type: %w", err)
	}
	env, err := expr.TaskUse().Env()
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	p := &pages{tasks: map[string]entity.Task{}, fields: map[string]entity.Field{}, programs: map[string]*expr.Program{}}
	for _, f := range t.Fields {
		p.fields[f.Task] = f
	}
	for _, task := range t.Tasks {
		p.tasks[task.ID] = task
		if p.programs[task.ID], err = env.CompileAs(task.Compute, expr.Any); err != nil {
			return nil, fmt.Errorf("compile %s: %w", task.ID, err)
		}
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database's address: %w", err)
	}
	config.MaxConns = poolConns
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return p, nil
}

// poolConns is the number of B0's database connections: as many as the store has on two cores.
const poolConns = 8

// OpenFill stores the session of a baseline.
func (e *engine) OpenFill(ctx context.Context, in FillInput) error {
	_, err := e.store.CreateSession(ctx, jig.Session{Tenant: in.Tenant, ID: in.Session, Agent: jig.Agent{Name: "bench"}, Principal: filler()})
	return err
}

// ReadPage returns an entity's content.
func (e *engine) ReadPage(ctx context.Context, in FillOneInput) (json.RawMessage, error) {
	entity, err := e.store.Entity(ctx, in.Tenant, in.Entity)
	return entity.Content, err
}

// FillTask computes the value of a task, checks it, and writes the value, its provenance, the ledger row and the events in one transaction.
func (e *engine) FillTask(ctx context.Context, in FillTaskInput) (json.RawMessage, error) {
	content, err := expr.FromJSON(in.Content)
	if err != nil {
		return nil, err
	}
	tasks := map[string]any{}
	for id, raw := range in.Values {
		if tasks[id], err = expr.FromJSON(raw); err != nil {
			return nil, err
		}
	}
	value, err := e.pages.programs[in.Task].EvalJSON(ctx, map[string]any{
		"tenant": in.Tenant, "now": time.Now().UTC(), "tasks": tasks,
		"entity": map[string]any{"id": in.Entity, "type": pageType, "title": "", "content": content},
	})
	if err != nil {
		return nil, err
	}
	if err := spec.CheckField(e.pages.fields[in.Task], value); err != nil || in.Bare {
		return value, err
	}
	return value, e.pages.write(ctx, in, value)
}

// write is the single transaction of a task.
func (p *pages) write(ctx context.Context, in FillTaskInput, value json.RawMessage) error {
	read, err := json.Marshal([]any{p.tasks[in.Task], in.Content, in.Values})
	if err != nil {
		return fmt.Errorf("encode what the task reads: %w", err)
	}
	sum := sha256.Sum256(read)
	provenance, err := json.Marshal(entity.Provenance{Task: in.Task, InputHash: hex.EncodeToString(sum[:]), At: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("write the provenance: %w", err)
	}
	told, err := json.Marshal(extraction.TaskEvent{EntityID: in.Entity, Task: in.Task, Kind: entity.TaskCompute})
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	updated, err := json.Marshal(extraction.EntityEvent{EntityID: in.Entity, Fields: []string{in.Task}, Task: in.Task})
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	call := "1.1/" + in.Entity + "/" + in.Task
	batch := &pgx.Batch{}
	batch.Queue("select set_config('jig.tenant', $1, true)", in.Tenant)
	batch.Queue(`update entities set content = content || jsonb_build_object($3::text, $4::jsonb),
		provenance = provenance || jsonb_build_object($3::text, $5::jsonb), revision = revision + 1, updated_at = clock_timestamp()
		where tenant_id = $1 and entity_id = $2 and deleted_at is null`, in.Tenant, in.Entity, in.Task, string(value), string(provenance))
	batch.Queue(`insert into calls (tenant_id, session_id, call_id, pass, ordinal, tool, verdict, status, fence, result, started_at, finished_at, idempotency_key)
		values ($1, $2, $3, 1, 1, 'bench.task', 'run', 'succeeded', 1, $4, now(), now(), $2 || '/' || $3) on conflict do nothing`,
		in.Tenant, in.Session, call, []byte(value))
	batch.Queue(`with n as (
			update sessions set last_seq = last_seq + 3, updated_at = clock_timestamp() where tenant_id = $1 and session_id = $2 returning last_seq)
		insert into events (tenant_id, session_id, seq, at, type, pass, call_id, data)
		select $1, $2, n.last_seq - 3 + e.ord, clock_timestamp(), e.type, 1, $3, e.data::json
		from n, unnest($4::text[], $5::text[]) with ordinality as e(type, data, ord)`,
		in.Tenant, in.Session, call,
		[]string{string(jig.EventTaskStarted), string(jig.EventTaskCompleted), string(jig.EventEntityUpdated)},
		[]string{string(told), string(told), string(updated)})
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	if err != nil {
		return fmt.Errorf("write task %s of %s: %w", in.Task, in.Entity, err)
	}
	return nil
}
