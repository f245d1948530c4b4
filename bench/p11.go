package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/workflows"
)

// filledAtOnce is the number of entities that both sides fill at the same time.
const filledAtOnce = extraction.DefaultBatchParallel

// extractions measures P11: tasks per second when filling many entities, and whether very many entities and very many tasks complete.
func extractions(ctx context.Context, b *bench) ([]row, error) {
	sides := []side{{name: "jig"}, {name: "B0"}, {name: "bare B0"}}
	for _, s := range sides { // warm up
		if _, err := b.tasksASecond(ctx, s, min(filledAtOnce, b.size.entities)); err != nil {
			return nil, err
		}
	}
	values, err := b.alternate(ctx, "p11", sides, func(ctx context.Context, s side) (float64, error) {
		return b.tasksASecond(ctx, s, b.size.entities)
	})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("tasks per second, extraction of %d entities of %d compute tasks, %d at a time", b.size.entities, len(fillSteps()), filledAtOnce)
	rows := compareFill(what, values)
	many, err := b.manyEntities(ctx)
	rows = append(rows, many...)
	if err != nil {
		return rows, err
	}
	graph, err := b.largeGraph(ctx)
	return append(rows, graph...), err
}

func compareFill(what string, values [][]float64) []row {
	const bound = 0.85
	jig, loop, bare := values[0], values[1], values[2]
	ratio := ratios(jig, loop)
	return []row{{
		figure: what, target: fmt.Sprintf("≥ %g × B0", bound), jig: spreadOf(jig).show(0, ""), baseline: spreadOf(loop).show(0, ""),
		ratio: ratio.show(2, ""), verdict: judge(ratio.median >= bound),
	}, {
		figure: what + ", bare B0 (no store), compared with B0", jig: spreadOf(bare).show(0, ""), baseline: spreadOf(loop).show(0, ""),
		ratio: ratios(bare, loop).show(2, ""), verdict: notJudged,
	}}
}

// tasksASecond fills n new entities in a new tenant and returns the tasks per second.
func (b *bench) tasksASecond(ctx context.Context, s side, n int) (float64, error) {
	tenant := newTenant("fill")
	session := newID(tenant)
	ids, err := b.fillTenant(ctx, tenant, sevenTasks, n)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if s.name == "jig" {
		err = b.fillAll(ctx, tenant, session, n)
	} else {
		err = b.fillByHand(ctx, FillInput{Tenant: tenant, Session: session, Entities: ids, AtOnce: filledAtOnce, Bare: s.name != "B0"})
	}
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	if s.name != "bare B0" {
		err = b.requireFilled(ctx, tenant, ids)
	}
	return float64(n*len(fillSteps())) / took.Seconds(), err
}

// newTenant returns the name of a new tenant, which not even an earlier run on the same database has used.
func newTenant(what string) string {
	return "bench-" + what + "-" + strings.TrimPrefix(jig.NewSessionID(), jig.SessionPrefix)
}

// fillAll fills all entities of a tenant with one call.
func (b *bench) fillAll(ctx context.Context, tenant, session string, n int) error {
	var out extraction.BatchResult
	input := fmt.Appendf(nil, `{"type":%q,"max_parallel":%d}`, pageType, filledAtOnce)
	if err := b.call(ctx, client.CallInput{Tenant: tenant, Tool: entities.ExtractAllTool, Input: input, Principal: filler()}, session, &out); err != nil {
		return err
	}
	if out.Completed != n || out.Matched != n {
		return fmt.Errorf("session %s completed %d of %d entities: %+v", session, out.Completed, n, out.Failures)
	}
	return nil
}

// call makes a call, waits for its end, and decodes its data.
func (b *bench) call(ctx context.Context, in client.CallInput, session string, data any) error {
	if _, err := b.jig.StartCall(ctx, in, session); err != nil {
		return fmt.Errorf("start %s: %w", in.Tool, err)
	}
	ended, err := b.jig.WaitCall(ctx, in.Tenant, session)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", in.Tool, err)
	}
	result, err := b.jig.WholeResult(ctx, in.Tenant, ended)
	if err != nil {
		return fmt.Errorf("read the result of %s: %w", in.Tool, err)
	}
	if result == nil || !result.Success {
		return fmt.Errorf("%s of session %s is %s: %+v", in.Tool, session, ended.Status, result)
	}
	if err := json.Unmarshal(result.Data, data); err != nil {
		return fmt.Errorf("read the result of %s: %w", in.Tool, err)
	}
	return nil
}

func (b *bench) fillByHand(ctx context.Context, in FillInput) error {
	run, err := b.temporal.ExecuteWorkflow(ctx, sdk.StartWorkflowOptions{ID: in.Session, TaskQueue: taskQueue, EnableEagerStart: true}, Fill, in)
	if err != nil {
		return fmt.Errorf("start a baseline: %w", err)
	}
	var tasks int
	if err := run.Get(ctx, &tasks); err != nil {
		return fmt.Errorf("wait for a baseline: %w", err)
	}
	if want := len(in.Entities) * len(fillSteps()); tasks != want {
		return fmt.Errorf("%d of %d tasks ended", tasks, want)
	}
	return nil
}

// requireFilled checks that the last entity has all its values and their provenance.
func (b *bench) requireFilled(ctx context.Context, tenant string, ids []string) error {
	e, err := b.engine.store.Entity(ctx, tenant, ids[len(ids)-1])
	if err != nil {
		return fmt.Errorf("read an entity: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(e.Content, &content); err != nil {
		return fmt.Errorf("read an entity: %w", err)
	}
	if content["risk"] != "low" || len(content) != len(fillSteps())+1 || len(e.Provenance) != len(fillSteps()) {
		return fmt.Errorf("entity %s is not filled: %s, %d values with provenance", e.ID, e.Content, len(e.Provenance))
	}
	return nil
}

// manyEntities fills very many entities with one task each.
func (b *bench) manyEntities(ctx context.Context) ([]row, error) {
	tenant, n := newTenant("many"), b.size.manyEntities
	session := newID(tenant)
	if _, err := b.fillTenant(ctx, tenant, oneTask, n); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := b.profiled("p11", "many", func() error { return b.fillAll(ctx, tenant, session, n) }); err != nil {
		return nil, err
	}
	rate := fmt.Sprintf("%.0f", float64(n)/time.Since(began).Seconds())
	return b.historyRows(ctx, session, fmt.Sprintf("%d entities of one compute task, by one call", n),
		row{figure: "entities per second", jig: rate, target: "all complete", verdict: met})
}

// largeGraph fills one entity with a graph of very many tasks.
func (b *bench) largeGraph(ctx context.Context) ([]row, error) {
	tenant, n := newTenant("graph"), b.size.graphTasks
	session := newID(tenant)
	ids, err := b.fillTenant(ctx, tenant, graphDocument(n), 1)
	if err != nil {
		return nil, err
	}
	var out extraction.Result
	input := fmt.Appendf(nil, `{"id":%q}`, ids[0])
	began := time.Now()
	err = b.profiled("p11", "graph", func() error {
		return b.call(ctx, client.CallInput{Tenant: tenant, Tool: entities.ExtractTool, Input: input, Principal: filler()}, session, &out)
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	if out.Counts != (extraction.Counts{Total: n, Completed: n}) {
		return nil, fmt.Errorf("session %s: %+v of %d tasks", session, out.Counts, n)
	}
	return b.historyRows(ctx, session, fmt.Sprintf("a graph of %d compute tasks", n),
		row{figure: "time", jig: took.Round(time.Millisecond).String(), target: "completes", verdict: met})
}

// historyRows returns the row first, followed by rows with the largest history of any run of the session and of its call's workflow.
func (b *bench) historyRows(ctx context.Context, session, what string, first row) ([]row, error) {
	all, err := b.runsOf(ctx, session)
	if err != nil {
		return nil, err
	}
	own, err := b.runsOf(ctx, workflows.FrameWorkflowID(session, jig.CallID(1, 1)))
	if err != nil {
		return nil, err
	}
	first.figure = what + ": " + first.figure
	events, bytes := max(all.maxEvents, own.maxEvents), max(all.maxBytes, own.maxBytes)
	what += fmt.Sprintf(" (%d runs)", all.count+own.count)
	return []row{first, {
		figure: what + ": most events of a run", target: fmt.Sprintf("≤ %d", mostEvents), jig: fmt.Sprint(events), verdict: judge(events <= mostEvents),
	}, {
		figure: what + ": largest history of a run", target: "≤ 1 MB", jig: fmt.Sprintf("%.0f KB", float64(bytes)/1024), verdict: judge(bytes <= mostBytes),
	}}, nil
}
