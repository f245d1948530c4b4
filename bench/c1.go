package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/workflows"
)

// composing is the tenant of the compositions. It is separate, so that they are not among the tools of other benchmarks' sessions.
const composing = "bench-compositions"

// Names of the compositions.
const (
	chainActivity = "chain.activity"
	chainLocal    = "chain.local"
	loopActivity  = "loop.activity"
	loopLocal     = "loop.local"
)

// loopAtOnce is the number of iterations of a loop that run at the same time.
const loopAtOnce = 10

// chainDocument returns a composition whose steps run one after another. Each step's input is one more than the previous step's output.
func chainDocument(name, tool string, steps int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kind: composition\nname: %s\ndescription: Counts one per step.\nsteps:\n", name)
	for n := 1; n <= steps; n++ {
		value := "1"
		if n > 1 {
			value = fmt.Sprintf(`"${steps.s%d.data.n + 1}"`, n-1)
		}
		fmt.Fprintf(&b, "  - id: s%d\n    tool: %s\n    input: {n: %s}\n", n, tool, value)
	}
	fmt.Fprintf(&b, "output: {n: \"${steps.s%d.data.n}\"}\n", steps)
	return b.String()
}

// loopDocument returns a composition with one loop over the items of its input.
func loopDocument(name, tool string) string {
	return fmt.Sprintf(`kind: composition
name: %s
description: Calls a tool for each item.
input_schema:
  type: object
  required: [items]
  properties: {items: {type: array, items: {type: integer}}}
steps:
  - id: each
    for_each: input.items
    max_parallel: %d
    tool: %s
    input: {n: "${item}"}
output: {n: "${steps.each.filter(r, r.success).size()}"}
`, name, loopAtOnce, tool)
}

// register registers the compositions, as `jig catalog add` would.
func (b *bench) register(ctx context.Context) error {
	for name, document := range map[string]string{
		chainActivity: chainDocument(chainActivity, noopTool, b.size.steps),
		chainLocal:    chainDocument(chainLocal, quickTool, b.size.steps),
		loopActivity:  loopDocument(loopActivity, noopTool),
		loopLocal:     loopDocument(loopLocal, quickTool),
	} {
		tool, err := composition.NewEngine().Load(name, []byte(document))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := b.engine.store.PutDocument(ctx, composing, activities.DocumentSpec, name, tool.Contract.Version, []byte(document)); err != nil {
			return fmt.Errorf("register %s: %w", name, err)
		}
	}
	return nil
}

// chainSides returns the sides of C1 in the order of allSides. The tools of the first two are compositions.
func chainSides() []side {
	return []side{
		{name: "jig", tool: chainActivity, start: startComposition},
		{name: "jig local", tool: chainLocal, start: startComposition},
		{name: "B0", tool: noopTool, start: startSteps("Steps")},
		{name: "bare B0", tool: noopTool, start: startSteps("BareSteps")},
	}
}

func startComposition(ctx context.Context, c caller, id string, p plan) error {
	input := []byte(`{}`)
	if p.Tool == loopActivity || p.Tool == loopLocal {
		items := make([]int, p.Calls)
		for i := range items {
			items[i] = i + 1
		}
		var err error
		if input, err = json.Marshal(map[string]any{"items": items}); err != nil {
			return fmt.Errorf("encode the items: %w", err)
		}
	}
	_, err := c.jig.StartCall(ctx, client.CallInput{Tenant: c.tenant, Tool: p.Tool, Input: input, Principal: jig.Principal{ID: "bench"}}, id)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Tool, err)
	}
	return nil
}

func startSteps(workflow string) func(context.Context, caller, string, plan) error {
	return func(ctx context.Context, c caller, id string, p plan) error {
		_, err := c.temporal.ExecuteWorkflow(ctx, sdk.StartWorkflowOptions{ID: id, TaskQueue: c.queue, EnableEagerStart: true},
			workflow, StepsInput{Tenant: c.tenant, Tool: p.Tool, Steps: p.Calls})
		if err != nil {
			return fmt.Errorf("start a baseline: %w", err)
		}
		return nil
	}
}

// counted is the result of a chain: the output of a baseline, or the data of a composition's result.
type counted struct {
	toolOutput
	Result struct {
		Data  toolOutput `json:"data"`
		Error *jig.Error `json:"error"`
	} `json:"result"`
}

// runChain runs all steps of a side, checks that none is missing, and returns the session's id.
func (b *bench) runChain(ctx context.Context, s side) (string, error) {
	id := newID(composing)
	if err := s.start(ctx, b.caller().at(taskQueue, composing), id, plan{Passes: 1, Calls: b.size.steps, Tool: s.tool}); err != nil {
		return id, err
	}
	var end counted
	if err := b.temporal.GetWorkflow(ctx, id, "").Get(ctx, &end); err != nil {
		return id, fmt.Errorf("session %s of %s: %w", id, s.name, err)
	}
	if n := max(end.N, end.Result.Data.N); n != b.size.steps {
		return id, fmt.Errorf("session %s of %s made %d of %d steps: %w", id, s.name, n, b.size.steps, end.Result.Error)
	}
	return id, nil
}

// stepEvents holds the history events per step of each pair. own counts the composition's own runs; all also includes the session that called
// it. A baseline has only all.
type stepEvents struct{ own, all []float64 }

func (b *bench) countEvents(ctx context.Context, s side, id string, e *stepEvents) error {
	steps := float64(b.size.steps)
	session, err := b.runsOf(ctx, id)
	if err != nil {
		return err
	}
	all := session.events
	if !strings.HasSuffix(s.name, "B0") {
		child, err := b.runsOf(ctx, workflows.FrameWorkflowID(id, jig.CallID(1, 1)))
		if err != nil {
			return err
		}
		all += child.events
		e.own = append(e.own, float64(child.events)/steps)
	}
	e.all = append(e.all, float64(all)/steps)
	return nil
}

// compositions measures C1: steps per second of compositions, run one at a time and many at a time, and history events per step.
func compositions(ctx context.Context, b *bench) ([]row, error) {
	if err := b.register(ctx); err != nil {
		return nil, err
	}
	sides := chainSides()
	for _, s := range sides { // warm up
		if _, err := b.runChain(ctx, s); err != nil {
			return nil, err
		}
	}
	events := map[string]*stepEvents{}
	single, err := b.alternate(ctx, "c1", sides, func(ctx context.Context, s side) (float64, error) {
		if events[s.name] == nil {
			events[s.name] = &stepEvents{}
		}
		return b.stepsASecond(ctx, s, b.size.chains, 1, events[s.name])
	})
	if err != nil {
		return nil, err
	}
	many, err := b.alternate(ctx, "c1", sides, func(ctx context.Context, s side) (float64, error) {
		return b.stepsASecond(ctx, s, b.size.chainLoad, b.size.chainsAtOnce, &stepEvents{})
	})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("steps per second, compositions of %d sequential steps, ", b.size.steps)
	rows := b.compare(what+"one at a time, %s", single, "", 0, judgeSteps)
	rows = append(rows, b.compare(what+fmt.Sprintf("%d at a time, ", b.size.chainsAtOnce)+"%s", many, "", 0, judgeSteps)...)
	rows = append(rows, eventsAStep("quick local tools", "≤ 4", events["jig local"], events["B0"]),
		eventsAStep("activity tools", "– (Temporal's floor is 6)", events["jig"], events["B0"]))
	loops, err := b.loopEvents(ctx)
	return append(rows, loops...), err
}

// stepsASecond runs n compositions, at most limit at a time, and returns their steps per second.
func (b *bench) stepsASecond(ctx context.Context, s side, n, limit int, e *stepEvents) (float64, error) {
	var mu sync.Mutex
	var last string
	began := time.Now()
	err := atOnce(ctx, n, limit, func(ctx context.Context, _ int) error {
		id, err := b.runChain(ctx, s)
		mu.Lock()
		last = id
		mu.Unlock()
		return err
	})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return float64(n*b.size.steps) / took.Seconds(), b.countEvents(ctx, s, last, e)
}

// judgeSteps returns the target of C1 for the ratio to B0, and the verdict.
func judgeSteps(_ bool, ratio float64) (string, verdict) {
	const bound = 0.7
	return fmt.Sprintf("≥ %g × B0", bound), judge(ratio >= bound)
}

// eventsAStep returns the row for history events per step. It has a verdict only if the target is a bound.
func eventsAStep(tools, target string, jig, loop *stepEvents) row {
	own := spreadOf(jig.own)
	r := row{
		figure: "history events per sequential step, " + tools, target: target, verdict: notJudged,
		jig:      fmt.Sprintf("%s; with the calling session %.1f", own.show(1, ""), spreadOf(jig.all).median),
		baseline: spreadOf(loop.all).show(1, ""),
	}
	if strings.HasPrefix(target, "≤") {
		r.verdict = judge(own.median <= 4)
	}
	return r
}

// loopEvents counts the history events per iteration of a loop.
func (b *bench) loopEvents(ctx context.Context) ([]row, error) {
	var rows []row
	for _, one := range []struct{ tool, what string }{{loopActivity, "activity tools"}, {loopLocal, "quick local tools"}} {
		s := side{name: one.tool, tool: one.tool, start: startComposition}
		events := &stepEvents{}
		for range b.pairs {
			id, err := b.runChain(ctx, s)
			if err == nil {
				err = b.countEvents(ctx, s, id, events)
			}
			if err != nil {
				return rows, err
			}
		}
		rows = append(rows, row{
			figure: fmt.Sprintf("history events per iteration, a loop of %d, %d at a time, %s", b.size.steps, loopAtOnce, one.what),
			jig:    fmt.Sprintf("%s; with the calling session %.1f", spreadOf(events.own).show(1, ""), spreadOf(events.all).median),
			target: "≤ 4", verdict: judge(spreadOf(events.own).median <= 4),
		})
	}
	return rows, nil
}
