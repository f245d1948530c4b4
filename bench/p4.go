package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// askingPlan is a session whose only call waits for a person.
func askingPlan() plan { return plan{Passes: 1, Calls: 1, Tool: writeTool} }

// decisions measures P4: the time from a decision until the tool runs.
func decisions(ctx context.Context, b *bench) ([]row, error) {
	warm, err := b.warmDecisions(ctx)
	if err != nil {
		return nil, err
	}
	killed, err := b.decisionsAfterKill(ctx)
	return append(warm, killed...), err
}

func (b *bench) warmDecisions(ctx context.Context) ([]row, error) {
	var sent, accepted []float64
	err := b.profiled("p4", "jig", func() error {
		for range b.size.decisions {
			d, err := b.decided(ctx, b.caller(), newID(b.caller().tenant), nil)
			if err != nil {
				return err
			}
			sent, accepted = append(sent, milliseconds(d.fromSending)), append(accepted, milliseconds(d.fromAccepted))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p50 := spreadOf(sent)
	return []row{
		{
			figure: "update `decide` sent → tool function entered, p50, warm worker", target: "≤ 50 ms", jig: p50.show(1, " ms"),
			verdict: judge(p50.median <= 50),
		},
		{
			figure: "the same, measured from the time the client knows that it was accepted (below 0: the tool was faster)",
			jig:    spreadOf(accepted).show(1, " ms"), verdict: notJudged,
		},
	}, nil
}

// decision holds the time until the tool started, from the moment the decision was sent and from the moment it was accepted.
type decision struct{ fromSending, fromAccepted time.Duration }

// decided runs a session up to its approval, approves it, and waits for the tool. If between is not nil, it is called before the approval.
func (b *bench) decided(ctx context.Context, c caller, id string, between func() error) (decision, error) {
	var d decision
	if err := jigSide().start(ctx, c, id, askingPlan()); err != nil {
		return d, err
	}
	if err := b.untilSuspended(ctx, id); err != nil {
		return d, err
	}
	if between != nil {
		if err := between(); err != nil {
			return d, err
		}
	}
	entered := b.entries.expect(id)
	began := time.Now()
	handle, err := b.temporal.UpdateWorkflow(ctx, sdk.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: protocol.UpdateDecide, WaitForStage: sdk.WorkflowUpdateStageAccepted,
		Args: []any{protocol.Decisions{Decision: jig.Decision{Call: jig.CallID(1, 1), By: "bench", Answer: jig.AnswerApprove}}},
	})
	accepted := time.Now()
	if err != nil {
		return d, fmt.Errorf("decide: %w", err)
	}
	var result protocol.DecideResult
	if err := handle.Get(ctx, &result); err != nil {
		return d, fmt.Errorf("decide: %w", err)
	}
	if len(result.Decisions) != 1 || result.Decisions[0].Outcome != jig.DecisionAccepted {
		return d, fmt.Errorf("the decision was refused: %+v", result.Decisions)
	}
	select {
	case e := <-entered:
		d = decision{fromSending: e.At.Sub(began), fromAccepted: e.At.Sub(accepted)}
	case <-time.After(30 * time.Second):
		return d, errors.New("the tool was not entered within 30 s")
	case <-ctx.Done():
		return d, fmt.Errorf("waiting for the tool: %w", ctx.Err())
	}
	if err := b.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
		return d, fmt.Errorf("session %s: %w", id, err)
	}
	return d, nil
}

// untilSuspended waits until a session needs a person.
func (b *bench) untilSuspended(ctx context.Context, id string) error {
	for range 1000 {
		answer, err := b.temporal.QueryWorkflow(ctx, id, "", protocol.QueryStatus)
		if err != nil {
			return fmt.Errorf("ask for the status of %s: %w", id, err)
		}
		var view jig.SessionView
		if err := answer.Get(&view); err != nil {
			return fmt.Errorf("read the status of %s: %w", id, err)
		}
		if view.Status == jig.StatusInputRequired {
			return nil
		}
		if view.Status.Final() {
			return fmt.Errorf("session %s ended as %s: %s", id, view.Status, view.Reason)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("session %s was not suspended within 10 s", id)
}

// decisionsAfterKill measures decisions after the session's worker was killed and another one has started.
func (b *bench) decisionsAfterKill(ctx context.Context) ([]row, error) {
	const queue = "bench-kill"
	c := b.caller().at(queue, jig.DefaultTenant)
	w, err := b.spawn(ctx, queue)
	if err != nil {
		return nil, err
	}
	defer func() { w.kill() }()
	var times []float64
	for i := range b.size.kills {
		d, err := b.decided(ctx, c, newID(c.tenant), func() error {
			w.kill()
			w, err = b.spawn(ctx, queue)
			return err
		})
		if err != nil {
			return nil, err
		}
		times = append(times, d.fromSending.Seconds())
		b.say("kill %d of %d: %.2f s", i+1, b.size.kills, times[i])
	}
	s := spreadOf(times)
	return []row{{
		figure: "the same after SIGKILL of the session's worker, with another worker running; the slowest counts", target: "≤ 2 s",
		jig: s.show(2, " s"), baseline: "Temporal's sticky timeout: 5 s", verdict: judge(s.high <= 2),
	}}, nil
}
