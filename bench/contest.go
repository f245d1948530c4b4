package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jig-run/jig"
)

// contestant is a side of P18.
type contestant struct {
	name string
	// queue is the prefix of its task queues.
	queue string
	// sessions runs n sessions, at most atOnce at a time, and returns the milliseconds of each and the time for all.
	sessions func(ctx context.Context, p plan, n, atOnce int) ([]float64, time.Duration, error)
	// approvals runs n sessions one after another, whose only call waits for a person, and returns the milliseconds from each answer until the
	// tool's function is entered. It is nil for sides that are not asked.
	approvals func(ctx context.Context, n int) ([]float64, error)
}

// thinkingTime is how long a person of P18 takes to answer.
const thinkingTime = 50 * time.Millisecond

// setting is a way to configure jig in P18.
type setting struct {
	name         string
	tool         string
	passesPerRun int // 0 means jig's default
}

func contestSettings() []setting {
	return []setting{
		{name: "default", tool: noopTool},
		{name: "auto", tool: noopTool, passesPerRun: jig.PassesAuto},
		{name: "local", tool: quickTool},
		{name: "local and auto", tool: quickTool, passesPerRun: jig.PassesAuto},
	}
}

// The names of the sides that jig is compared with.
const (
	bareName  = "bare loop"
	rivalName = "agent-sdk-go"
)

// contestants returns the sides of P18: the bare loop, jig with each setting and, unless it is nil, the rival.
func (b *bench) contestants(r *rival) []contestant {
	sides := []contestant{b.own(side{name: bareName, start: startBaseline("BareLoop")}, agentSettings{model: standInModel, tools: noopTool})}
	for _, s := range contestSettings() {
		agent := agentSettings{model: standInModel, tools: s.tool, passesPerRun: s.passesPerRun}
		sides = append(sides, b.own(side{name: s.name, tool: s.tool, start: startJig}, agent))
	}
	sides[1].approvals = b.approvals
	if r != nil {
		sides = append(sides, contestant{name: rivalName, queue: rivalQueue, sessions: r.sessions, approvals: r.approvals})
	}
	return sides
}

// own returns a side that this process's worker runs.
func (b *bench) own(s side, agent agentSettings) contestant {
	c := b.caller()
	c.agent = agent
	return contestant{name: s.name, queue: c.queue, sessions: func(ctx context.Context, p plan, n, atOnceLimit int) ([]float64, time.Duration, error) {
		times := make([]float64, n)
		began := time.Now()
		err := atOnce(ctx, n, atOnceLimit, func(ctx context.Context, i int) error {
			start := time.Now()
			_, err := b.runSessionOf(ctx, s, c, p)
			times[i] = milliseconds(time.Since(start))
			return err
		})
		return times, time.Since(began), err
	}}
}

// approvals runs sessions of jig whose only call waits for a person, and measures from sending the decision until the tool is entered.
func (b *bench) approvals(ctx context.Context, n int) ([]float64, error) {
	c := b.caller()
	c.agent = agentSettings{model: standInModel, tools: writeTool}
	times := make([]float64, n)
	for i := range times {
		id := newID(c.tenant)
		if err := startJig(ctx, c, id, askingPlan()); err != nil {
			return nil, err
		}
		if err := b.untilSuspended(ctx, id); err != nil {
			return nil, err
		}
		if err := pause(ctx, thinkingTime); err != nil {
			return nil, err
		}
		took, err := b.decide(ctx, c, id)
		if err != nil {
			return nil, err
		}
		times[i] = milliseconds(took)
		if err := b.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return nil, fmt.Errorf("session %s: %w", id, err)
		}
	}
	return times, nil
}

// decide approves the first call of a session with jig's client and returns how long it took until the tool was entered.
func (b *bench) decide(ctx context.Context, c caller, id string) (time.Duration, error) {
	entered := b.entries.expect(id)
	began := time.Now()
	result, err := c.jig.Decide(ctx, c.tenant, id, []jig.Decision{{Call: jig.CallID(1, 1), By: "bench", Answer: jig.AnswerApprove}})
	if err != nil {
		return 0, fmt.Errorf("decide: %w", err)
	}
	if len(result.Decisions) != 1 || result.Decisions[0].Outcome != jig.DecisionAccepted {
		return 0, fmt.Errorf("the decision was refused: %+v", result.Decisions)
	}
	select {
	case e := <-entered:
		return e.At.Sub(began), nil
	case <-time.After(30 * time.Second):
		return 0, errors.New("the tool was not entered within 30 s")
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for the tool: %w", ctx.Err())
	}
}
